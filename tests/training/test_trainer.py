"""Training on a tiny corpus: it learns, it can be killed, and what it leaves is a complete model."""

import json
import shutil
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny import tiny_articles
from transformers import EarlyStoppingCallback

from kenmesh_hf.errors import InputError, MismatchError
from kenmesh_hf.modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor
from kenmesh_hf.preparing import load_prepared
from kenmesh_hf.training import TrainingOptions, build_optimizer, options_for, train, training_rows

QUIET = {"disable_tqdm": True, "logging_steps": 2}
QUICK = {"epochs": 3, "learning_rate": 0.02, "batch_size": 8, "residual": True}


@pytest.fixture(scope="module")
def trained(tiny_prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """The paper's network, trained without a break."""
    out = tmp_path_factory.mktemp("trained")
    return out, train(options_for(**QUICK), tiny_prepared, out, **QUIET)


def scores(summary: dict) -> list[float]:
    return [entry["eval_MiF"] for entry in summary["history"] if "eval_MiF" in entry]


def test_learns(trained: tuple[Path, dict]) -> None:
    values = scores(trained[1])
    assert len(values) == 3
    assert values[-1] > values[0] + 0.05
    assert trained[1]["best"]["MiF"] == max(values)
    losses = [entry["loss"] for entry in trained[1]["history"] if "loss" in entry]
    assert losses[-1] < losses[0]


def test_folder_is_a_complete_model(trained: tuple[Path, dict]) -> None:
    out, summary = trained
    model, processor = KenMeSHForMeSHIndexing.from_pretrained(out), KenMeSHProcessor.from_pretrained(out)
    assert processor.thresholds.global_threshold == summary["threshold"]
    assert "model.safetensors" in json.loads((out / "checksums.json").read_text(encoding="utf-8"))
    assert json.loads((out / "training.json").read_text(encoding="utf-8"))["options"]["epochs"] == 3
    assert (out / "training.png").read_bytes().startswith(b"\x89PNG")
    assert list((out / "runs").glob("events.*"))
    assert not (out / "checkpoints").exists()
    assert not [path for path in out.rglob("*") if path.suffix in (".bin", ".pt", ".pth", ".pkl")]
    article = tiny_articles(1, seed=5)[0]
    tags = MeSHIndexingPipeline(model=model, processor=processor)(
        {"title": article.title, "abstract": article.abstract}, top_k=len(article.descriptors)
    )
    assert len({tag["ui"] for tag in tags} & set(article.descriptors)) >= 2


def test_resumed_training_gives_the_same_weights(
    trained: tuple[Path, dict], tiny_prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(self, args, state, control, **kwargs):
        if state.epoch > 1.4:
            raise KeyboardInterrupt

    options = options_for(**QUICK)
    with monkeypatch.context() as patch:
        patch.setattr(EarlyStoppingCallback, "on_step_end", kill)
        with pytest.raises(KeyboardInterrupt):
            train(options, tiny_prepared, tmp_path, **QUIET)
    # A later checkpoint of which only a part was written when the kill came.
    (tmp_path / "checkpoints" / "checkpoint-9999").mkdir()
    with pytest.raises(InputError, match="resume"):
        train(options, tiny_prepared, tmp_path, **QUIET)
    with pytest.raises(MismatchError, match="learning_rate"):
        train(options_for(**(QUICK | {"learning_rate": 1.0})), tiny_prepared, tmp_path, resume=True)
    summary = train(options, tiny_prepared, tmp_path, resume=True, **QUIET)
    straight, resumed = (load_file(folder / "model.safetensors") for folder in (trained[0], tmp_path))
    assert all(torch.equal(weight, resumed[name]) for name, weight in straight.items())
    assert scores(summary) == scores(trained[1])


def test_trains_another_model_further(
    trained: tuple[Path, dict], tiny_prepared: Path, tmp_path: Path
) -> None:
    gentle = options_for(epochs=1, learning_rate=1e-5, batch_size=16)
    summary = train(gentle, tiny_prepared, tmp_path, start_from=trained[0], **QUIET)
    assert summary["options"]["start_from"] == trained[0].name
    assert abs(scores(summary)[0] - trained[1]["best"]["MiF"]) < 0.02


def test_stops_when_validation_gets_no_better(tiny_prepared: Path, tmp_path: Path) -> None:
    still = options_for("small", epochs=5, patience=1, learning_rate=0.0)
    summary = train(still, tiny_prepared, tmp_path, **QUIET)
    assert summary["epochs"] == 2
    # Nothing is learned, so this is the logistic regression that the evidence starts from.
    assert summary["best"]["MiF"] > 0.5


def test_learning_rate_falls_with_each_epoch() -> None:
    options = TrainingOptions(learning_rate=1.0, decay=0.5)
    optimizer, schedule = build_optimizer(torch.nn.Linear(1, 1), options, steps_per_epoch=2)
    rates = []
    for _ in range(5):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates == [1.0, 1.0, 0.5, 0.5, 0.25]


def test_rows_without_abstract_train_only_if_asked(tiny_prepared: Path) -> None:
    rows = load_prepared(tiny_prepared).train
    plain = rows.with_format(None).select(range(4))
    emptied = plain.map(lambda row, i: {"input_ids": [] if i == 2 else row["input_ids"]}, with_indices=True)
    assert training_rows(emptied, TrainingOptions())["pmid"] == [plain["pmid"][i] for i in (0, 1, 3)]
    assert len(training_rows(emptied, TrainingOptions(title_only=True))) == 4


def test_articles_known_to_be_too_old_are_left_out(tiny_prepared: Path) -> None:
    rows = load_prepared(tiny_prepared).train.with_format(None).select(range(4))
    years = [1979, None, 2001, 2020]
    rows = rows.map(lambda row, i: {"year": years[i]}, with_indices=True)
    assert training_rows(rows, TrainingOptions(since=2001))["year"] == [None, 2001, 2020]
    with pytest.raises(InputError, match="2030"):
        training_rows(rows.select([0, 2]), TrainingOptions(since=2030))


def test_unknown_preset_and_option_are_named() -> None:
    with pytest.raises(InputError, match="'huge'.*paper, small"):
        options_for("huge")
    with pytest.raises(InputError, match="'rate'.*learning_rate"):
        options_for(rate=1)


def test_every_option_has_a_description() -> None:
    assert all(field.metadata["help"] for field in fields(TrainingOptions))


def test_unfinished_dataset_is_refused(tiny_prepared: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_prepared, tmp_path / "data")
    (tmp_path / "data" / "report.json").unlink()
    with pytest.raises(InputError, match="kenmesh prepare"):
        train(TrainingOptions(), tmp_path / "data", tmp_path / "out")
