"""Training on a tiny corpus: it learns, it can be killed, and what it leaves is a complete model."""

import json
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from patience import PATIENCE
from safetensors.torch import load_file
from tiny import tiny_articles
from transformers import EarlyStoppingCallback

from kenmesh_hf.errors import InputError, MismatchError
from kenmesh_hf.modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor
from kenmesh_hf.preparing import load_prepared, write_rows
from kenmesh_hf.training import TrainingOptions, build_optimizer, options_for, train, trainer, training_rows
from kenmesh_hf.training.trainer import validation_rows

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
    assert same_weights(trained[0], tmp_path)
    assert scores(summary) == scores(trained[1])


def kill_at(patch: pytest.MonkeyPatch, last: int) -> None:
    """Trainings die after this step, before anything is saved there."""

    def kill(self, args, state, control, **kwargs):
        if state.global_step == last:
            raise KeyboardInterrupt

    patch.setattr(EarlyStoppingCallback, "on_step_end", kill)


def same_weights(*folders: Path) -> bool:
    one, other = (load_file(folder / "model.safetensors") for folder in folders)
    return all(torch.equal(weight, other[name]) for name, weight in one.items())


def test_goes_on_within_an_epoch_with_other_workers(
    trained: tuple[Path, dict], tiny_prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """25 steps are an epoch; checkpoints come after steps 10 and 20 of each, too."""
    monkeypatch.setattr(trainer, "SAVE_STEPS", 10)
    with monkeypatch.context() as patch:
        kill_at(patch, 48)
        with pytest.raises(KeyboardInterrupt):
            train(options_for(**QUICK), tiny_prepared, tmp_path, **QUIET)
    # The best one, and the last, of step 20 of the second epoch.
    assert {path.name for path in (tmp_path / "checkpoints").glob("checkpoint-*")} == {
        "checkpoint-25",
        "checkpoint-45",
    }
    # An earlier version did not write down options that it did not have.
    begun = tmp_path / "checkpoints" / "training.json"
    settings = json.loads(begun.read_text(encoding="utf-8"))
    for name in ("max_steps", "validation_articles", "num_workers"):
        del settings[name]
    begun.write_text(json.dumps(settings), encoding="utf-8")
    summary = train(options_for(**QUICK, num_workers=2), tiny_prepared, tmp_path, resume=True, **QUIET)
    assert same_weights(trained[0], tmp_path)
    assert scores(summary) == scores(trained[1])


@pytest.mark.parametrize("workers", [0, 1])
def test_rows_damaged_while_training_are_one_sentence(
    tiny_prepared: Path, tmp_path: Path, workers: int
) -> None:
    """Whoever meets them: this process, or one that loads rows for it."""
    data = shutil.copytree(tiny_prepared, tmp_path / "data")
    file = data / "data" / "train-00000.parquet"
    group = pq.read_metadata(file).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    [damaged] = [column for column in columns if column.path_in_schema.startswith("candidate_features")]
    content = bytearray(file.read_bytes())
    start = damaged.data_page_offset + damaged.total_compressed_size // 2
    content[start : start + 200] = bytes(200)
    file.write_bytes(content)
    with pytest.raises(InputError) as told:
        train(options_for(**QUICK, num_workers=workers), data, tmp_path / "out", **QUIET)
    assert str(told.value).startswith(f"{file} cannot be read (") and "\n" not in str(told.value)


def test_stops_within_an_epoch_if_told(
    tiny_prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_for(**(QUICK | {"max_steps": 30}))
    summary = train(options, tiny_prepared, tmp_path / "straight", **QUIET)
    evaluated = [entry for entry in summary["history"] if "eval_MiF" in entry]
    assert [entry["step"] for entry in evaluated] == [25, 30]
    assert summary["best"]["step"] == max(evaluated, key=lambda entry: entry["eval_MiF"])["step"]

    # Killed after the last checkpoint, while thresholds are looked for: not one step more is made.
    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "find_thresholds", kill)
        with pytest.raises(KeyboardInterrupt):
            train(options, tiny_prepared, tmp_path / "killed", **QUIET)
    again = train(options, tiny_prepared, tmp_path / "killed", resume=True, **QUIET)
    assert same_weights(tmp_path / "straight", tmp_path / "killed")
    assert (scores(again), again["threshold"]) == (scores(summary), summary["threshold"])
    assert again["best"]["step"] == summary["best"]["step"]


def test_validates_on_a_fixed_sample(tiny_prepared: Path) -> None:
    prepared = load_prepared(tiny_prepared)
    few = validation_rows(prepared, TrainingOptions(validation_articles=20))
    again = validation_rows(prepared, TrainingOptions(validation_articles=20, seed=5))
    assert len(set(few["pmid"])) == 20
    assert list(few["pmid"]) == list(again["pmid"])
    lengths = np.asarray(few["length"])
    assert (np.diff(lengths) <= 0).all()
    every = validation_rows(prepared, TrainingOptions())
    assert sorted(every["pmid"]) == sorted(prepared.validation["pmid"])


def test_training_rows_are_not_converted(
    tiny_prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    options = options_for("small", max_steps=1, validation_articles=7)
    train(options, tiny_prepared, tmp_path / "out", **QUIET)
    assert [path.name for path in (tmp_path / "cache").rglob("*.arrow")] == ["parquet-validation.arrow"]


def test_impossible_options_are_refused(tiny_prepared: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--validation-articles is 0; it must be at least 1"):
        train(TrainingOptions(validation_articles=0), tiny_prepared, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_two_processes_train_as_one(
    tiny_prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    # Dropout draws other numbers in each process; without it the two runs must agree.
    common = {"epochs": 1, "max_steps": 6, "dropout": 0.0, "learning_rate": 0.01}
    given = [word for name, value in common.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    done = subprocess.run(
        [*launcher, "-m", "kenmesh_hf", "train", str(tiny_prepared), "--out", str(tmp_path / "two"),
         "--preset", "paper", "--batch-size", "8", *given],
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    alone = train(options_for(**common, batch_size=16), tiny_prepared, tmp_path / "one", **QUIET)
    together = json.loads((tmp_path / "two" / "training.json").read_text(encoding="utf-8"))
    assert scores(together) == pytest.approx(scores(alone), abs=0.02)
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert all(torch.allclose(weight, two[name], atol=1e-3) for name, weight in one.items())


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


def rewrite_training_rows(prepared: Path, folder: Path, column: str, values: list) -> Path:
    """A copy of a dataset of which only the first training rows are left, with other values in a column."""
    shutil.copytree(prepared, folder)
    file, *others = sorted((folder / "data").glob("train-*.parquet"))
    for other in others:
        other.unlink()
    table = pq.read_table(file).slice(0, len(values))
    place = table.schema.get_field_index(column)
    field = table.schema.field(place)
    write_rows([table.set_column(place, field, pa.array(values, field.type))], file)
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    report["splits"]["train"]["articles"] = len(values)
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    return folder


def test_rows_without_abstract_train_only_if_asked(tiny_prepared: Path, tmp_path: Path) -> None:
    words = [[2], [3], [], [5]]
    prepared = load_prepared(rewrite_training_rows(tiny_prepared, tmp_path / "data", "input_ids", words))
    kept = [row["input_ids"].tolist() for row in training_rows(prepared, TrainingOptions())]
    assert sorted(kept) == [[2], [3], [5]]
    assert len(training_rows(prepared, TrainingOptions(title_only=True))) == 4
    nothing = rewrite_training_rows(tiny_prepared, tmp_path / "nothing", "input_ids", [[], []])
    with pytest.raises(InputError, match="No training article has an abstract; train with title_only"):
        training_rows(load_prepared(nothing), TrainingOptions())


def test_articles_known_to_be_too_old_are_left_out(tiny_prepared: Path, tmp_path: Path) -> None:
    years = [1979, None, 2001, 2020]
    prepared = load_prepared(rewrite_training_rows(tiny_prepared, tmp_path / "data", "year", years))
    titles = [row["title_input_ids"].tolist() for row in prepared.train]
    kept = [row["title_input_ids"].tolist() for row in training_rows(prepared, TrainingOptions(since=2001))]
    assert sorted(kept) == sorted(titles[1:])
    known = load_prepared(rewrite_training_rows(tiny_prepared, tmp_path / "known", "year", [1979, 2001]))
    with pytest.raises(InputError, match="2030"):
        training_rows(known, TrainingOptions(since=2030))


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
