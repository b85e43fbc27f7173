"""Each plot writes a PNG that shows something, also for sparse or empty numbers."""

import sys

import numpy as np
import pytest

from kenmesh_hf.errors import DependencyError, InputError
from kenmesh_hf.showing import plots


def ink(path):
    """Share of pixels that are not white; reading fails unless the file is an image."""
    from matplotlib.image import imread

    assert path.read_bytes().startswith(b"\x89PNG")
    return float((imread(path)[..., :3].min(-1) < 0.9).mean())


GROUPS = {name: {"MiF": value, "MaF": 0.0, "gold": 1234.0} for name, value in (("0", 0.0), ("1-99", 0.9))}


def test_group_bars_grow_with_the_metric(tmp_path):
    options = {"title": "by frequency", "x_label": "training articles"}
    tall = plots.plot_groups(tmp_path / "new" / "mif.png", GROUPS, **options)
    flat = plots.plot_groups(tmp_path / "maf.png", GROUPS, metric="MaF", **options)
    assert ink(tall) > ink(flat) + 0.1


def test_precision_recall_marks_chosen_points(tmp_path):
    curve = np.linspace(0.01, 1, 5000), np.linspace(1, 0.5, 5000)
    plain = plots.plot_precision_recall(tmp_path / "a.png", *curve)
    marked = plots.plot_precision_recall(tmp_path / "b.png", *curve, chosen={"F1": (0.5, 0.2)})
    assert 0 < ink(plain) < ink(marked)
    assert ink(plots.plot_precision_recall(tmp_path / "c.png", [], [])) > 0
    with pytest.raises(InputError, match="2 values of recall"):
        plots.plot_precision_recall(tmp_path / "d.png", [0, 1], [0])


def test_label_frequency_takes_unused_labels(tmp_path):
    assert ink(plots.plot_label_frequency(tmp_path / "a.png", [0, 3, 100, 0, 1])) > 0
    assert ink(plots.plot_label_frequency(tmp_path / "b.png", [0, 0])) > 0


def test_candidate_recall_draws_a_line_for_each_source(tmp_path):
    curves = {"tf-idf": ([100, 400, 1000], [0.8, 0.9, 0.95])}
    one = plots.plot_candidate_recall(tmp_path / "a.png", curves)
    curves["word2vec"] = ([90, 900], [0.7, 0.9])
    assert ink(one) < ink(plots.plot_candidate_recall(tmp_path / "b.png", curves))


def test_training_curves_come_from_a_trainer_log(tmp_path):
    log = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}, {"step": 2, "eval_loss": 1.5, "eval_MiF": 0.4}]
    log += [{"step": 4, "eval_loss": 1.2, "eval_MiF": 0.5}, {"step": 4, "train_runtime": 3.0}]
    full = plots.plot_training(tmp_path / "a.png", log)
    assert ink(full) > ink(plots.plot_training(tmp_path / "b.png", log[:2])) > 0
    assert ink(plots.plot_training(tmp_path / "c.png", [])) > 0


def test_missing_matplotlib_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(DependencyError, match=r"kenmesh-hf\[train\]"):
        plots.plot_label_frequency(tmp_path / "a.png", [1])
    assert not (tmp_path / "a.png").exists()


def test_curves_have_a_line_each(tmp_path):
    options = {"title": "parts", "x_label": "epoch", "y_label": "MiF"}
    one = plots.plot_curves(tmp_path / "a.png", {"network": [0.1, 0.2, 0.3]}, **options)
    two = plots.plot_curves(
        tmp_path / "b.png", {"network": [0.1, 0.2, 0.3], "evidence": [0.5, 0.5]}, **options
    )
    assert 0 < ink(one) < ink(two)
    assert ink(plots.plot_curves(tmp_path / "c.png", {}, **options)) > 0
