"""The curves of each part: the parts are silent when they should be, and the figures follow."""

import json

import learning_curves
import pytest
import torch
from kenmesh_networks import EVIDENCE_ON, build_batch, build_network, score


def test_each_part_alone_leaves_the_model_as_it_was():
    model = build_network(**EVIDENCE_ON)
    inputs = build_batch(model)
    whole = score(model, inputs)
    other = inputs | {"candidate_features": inputs["candidate_features"] + 1}
    with learning_curves.only(model, "network"):
        network = score(model, inputs)
        torch.testing.assert_close(score(model, other), network)
    with learning_curves.only(model, "evidence"):
        evidence = score(model, inputs)
        candidates = torch.zeros_like(whole, dtype=torch.bool).scatter(1, inputs["candidate_ids"], True)
        turned = inputs | {"input_ids": inputs["input_ids"].flip(1)}
        candidates &= (score(model, other) != evidence) & inputs["candidate_mask"].any(1, keepdim=True)
        torch.testing.assert_close(score(model, turned)[candidates], evidence[candidates])
    assert candidates.any() and not torch.allclose(network, whole) and not torch.allclose(evidence, whole)
    torch.testing.assert_close(score(model, inputs), whole)


def test_figures_of_every_epoch_are_the_last_line(tiny_prepared, tmp_path, capsys):
    plot = tmp_path / "curves.png"
    learning_curves.main(
        ["--data", str(tiny_prepared), "--plot", str(plot), "--articles", "20", "--set", "epochs=2"]
    )
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["benchmark"] == "learning_curves" and figures["options"] == {"epochs": 2}
    assert [point["epoch"] for point in figures["points"]] == [1, 2]
    for point in figures["points"]:
        parts = {f"{split}_{part}" for split in ("train", "validation") for part in learning_curves.PARTS}
        assert parts == point.keys() - {"epoch"} and all(0 <= point[name] <= 1 for name in parts)
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_a_model_without_evidence_has_one_part(tiny_prepared, capsys):
    learning_curves.main(
        ["--data", str(tiny_prepared), "--articles", "20", "--set", "epochs=1", "evidence=false"]
    )
    [point] = json.loads(capsys.readouterr().out.splitlines()[-1])["points"]
    assert point.keys() == {"epoch", "train_network", "validation_network"}


def test_a_share_of_the_articles_is_learned_from(tiny_prepared, monkeypatch):
    seen = []

    def stop(model, processor, rows, *others):
        seen.append(len(rows))
        raise KeyboardInterrupt

    monkeypatch.setattr(learning_curves, "build_trainer", stop)
    for share in ("1", "0.5"):
        with pytest.raises(KeyboardInterrupt):
            learning_curves.main(["--data", str(tiny_prepared), "--share", share])
    whole, part = seen
    assert 0 < part < whole
