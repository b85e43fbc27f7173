"""Stages: done once, done again when something changed, whole or not at all."""

import json
from pathlib import Path

import pytest
from tqdm.auto import tqdm

from kenmesh_hf.files import unfinished, write_json
from kenmesh_hf.preparing import Stages, file_state
from kenmesh_hf.preparing.stages import Job


def run(stages: Stages, target: Path, inputs: object, done: list[object]) -> dict:
    def work() -> dict:
        done.append(inputs)
        target.write_text("made", encoding="utf-8")
        return {"inputs": inputs}

    return stages.run("cook", inputs, [target], work).result


def test_done_once_for_the_same_inputs(tmp_path: Path) -> None:
    stages, done = Stages(tmp_path / "records"), []
    for inputs in (1, 1, 2):
        assert run(stages, tmp_path / "meal", inputs, done) == {"inputs": inputs}
    assert done == [1, 2]


def test_lost_output_or_damaged_record_means_again(tmp_path: Path) -> None:
    stages, done = Stages(tmp_path / "records"), []
    run(stages, tmp_path / "meal", 1, done)
    (tmp_path / "meal").unlink()
    run(stages, tmp_path / "meal", 1, done)
    (tmp_path / "records" / "cook.json").write_text("{", encoding="utf-8")
    run(stages, tmp_path / "meal", 1, done)
    assert done == [1, 1, 1]


def test_failed_work_is_not_recorded(tmp_path: Path) -> None:
    stages = Stages(tmp_path)
    with pytest.raises(ZeroDivisionError):
        stages.run("fail", 1, [], lambda: {"never": 1 / 0})
    assert not stages.find("fail", 1, []).reused


def test_name_appears_only_when_whole(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    (target / "old").touch()
    with pytest.raises(KeyboardInterrupt), unfinished(target) as path:
        path.mkdir()
        raise KeyboardInterrupt
    assert (target / "old").exists()
    with unfinished(target) as path:
        path.mkdir()
        (path / "new").touch()
    assert [item.name for item in target.iterdir()] == ["new"]
    assert [item.name for item in tmp_path.iterdir()] == ["folder"]


def test_file_state_tells_a_change(tmp_path: Path) -> None:
    path = tmp_path / "inside" / "a"
    path.parent.mkdir()
    path.write_text("one", encoding="utf-8")
    before, folder = file_state(path), file_state(tmp_path)
    assert file_state(path) == before
    path.write_text("other", encoding="utf-8")
    assert file_state(path) != before
    assert file_state(tmp_path) != folder


@pytest.mark.parametrize("num_proc", [1, 2])
def test_jobs_in_processes(tmp_path: Path, num_proc: int) -> None:
    targets = [tmp_path / f"{number}.json" for number in range(3)]
    write_json(targets[1], "left as it is")
    stages = Stages(tmp_path / "records")
    stages.finish(stages.find("job1", 1, [targets[1]]), 0.0, {"size": 0})
    jobs = [Job(f"job{n}", n, path, _write, (path, n), weight=5) for n, path in enumerate(targets)]
    with tqdm(total=15, disable=True) as bar:
        done = stages.run_all(jobs, num_proc, bar)
    assert [stage.result["size"] for stage in done] == [0, 0, 2]
    assert [stage.reused for stage in done] == [False, True, False]
    assert json.loads(targets[1].read_text(encoding="utf-8")) == "left as it is"
    assert json.loads(targets[2].read_text(encoding="utf-8")) == 2


def _write(path: Path, number: int) -> dict[str, int]:
    write_json(path, number)
    return {"size": number}
