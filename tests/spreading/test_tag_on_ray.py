"""Tagging on a Ray of this machine: the tags of one process, a worker killed, damage, work gone on with."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import ray
from patience import PATIENCE, wait_until
from process_tree import descendants, title_of, wait_for_worker
from tiny import tiny_articles
from tiny_model import UNSEEN

from kenmesh_hf.commands import main
from kenmesh_hf.errors import InputError, KenMeSHError
from kenmesh_hf.reading import write_articles
from kenmesh_hf.spreading import RayOptions, connected, tag_dataset, tag_files_on_ray
from kenmesh_hf.spreading.crew import Crew
from kenmesh_hf.tagging import TagOptions

FILES, ARTICLES = 4, 60


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    """Files of articles, one of them damaged at its end, and one that is no citation file at all."""
    folder = tmp_path_factory.mktemp("inputs")
    for number in range(FILES):
        articles = tiny_articles(ARTICLES, seed=number, first_pmid=1000 * number + 1)
        write_articles(articles, folder / f"part{number}.jsonl.gz")
    last = folder / f"part{FILES - 1}.jsonl.gz"
    last.write_bytes(last.read_bytes()[:-400])
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0 no citations here")
    (folder / "part0.jsonl.gz.md5").write_text("a companion")
    return folder


@pytest.fixture(scope="module")
def alone(inputs, tiny_model, tmp_path_factory) -> list[dict]:
    """What one process without Ray makes of all of them."""
    out = tmp_path_factory.mktemp("alone") / "tags.jsonl"
    assert main(["tag", str(inputs), "--model", str(tiny_model), "--out", str(out), "--quiet"]) == 3
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def read_outputs(out: Path) -> list[dict]:
    return [
        json.loads(line)
        for path in sorted(out.glob("part*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def read_manifest(out: Path) -> dict[str, dict]:
    lines = (out / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return {Path(record["input"]).name: record for record in records}


def assert_same_tags(found: list[dict], expected: list[dict]) -> None:
    assert [row["pmid"] for row in found] == [row["pmid"] for row in expected]
    for row, other in zip(found, expected, strict=True):
        assert [tag["ui"] for tag in row["tags"]] == [tag["ui"] for tag in other["tags"]]
        scores = [tag["score"] for tag in other["tags"]]
        assert [tag["score"] for tag in row["tags"]] == pytest.approx(scores, abs=1e-5)


def test_a_killed_worker_costs_nothing(inputs, tiny_model, alone, tmp_path, capsys):
    out = tmp_path / "tags"
    arguments = [
        "tag",
        str(inputs),
        "--model",
        str(tiny_model),
        "--out",
        str(out),
        "--engine",
        "ray",
        "--quiet",
    ]
    command = [sys.executable, "-m", "kenmesh_hf", *arguments, "--workers", "2", "--batch-size", "1"]
    job = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    os.kill(wait_for_worker(job.pid), signal.SIGKILL)
    started = descendants(job.pid)
    _, said = job.communicate(timeout=PATIENCE)
    assert job.returncode == 3, said
    assert "Traceback" not in said
    assert_same_tags(read_outputs(out), alone)
    manifest = read_manifest(out)
    assert set(manifest) == {path.name for path in inputs.glob("p*") if path.suffix != ".md5"}
    first = manifest["part0.jsonl.gz"]
    assert (first["articles"], first["skipped"], first["output"]) == (ARTICLES, {}, "part0.jsonl")
    assert first["size"] == (inputs / "part0.jsonl.gz").stat().st_size and len(first["sha256"]) == 64
    assert first["model"]["name"] == str(tiny_model) and first["options"]["format"] == "jsonl"
    assert "compressed file cut off or damaged" in manifest[f"part{FILES - 1}.jsonl.gz"]["skipped"]
    assert manifest["photo.jpg"]["skipped"] == {"file not usable": 1}
    assert manifest["photo.jpg"]["examples"]["file not usable"][0].startswith(str(inputs))
    assert not list(out.rglob("*.unfinished"))
    wait_until(lambda: not any("ray" in title_of(pid) for pid in started), "the end of Ray")

    # What is finished is not done again: no Ray is started, no file changes, and damage is still told.
    before = {path: path.stat().st_mtime_ns for path in out.glob("p*")}
    capsys.readouterr()
    assert main([*arguments, "--resume"]) == 3
    assert not ray.is_initialized()
    assert before == {path: path.stat().st_mtime_ns for path in out.glob("p*")}
    assert "file not usable" in capsys.readouterr().err
    assert main(arguments) == 1
    assert "go on with --resume or choose another" in capsys.readouterr().err
    assert main([*arguments, "--resume", "--top-k", "2"]) == 1
    assert "was begun with other options" in capsys.readouterr().err


@pytest.fixture(scope="module")
def local_ray():
    with connected(RayOptions(workers=2)):
        yield


def test_parquet_and_changed_files(local_ray, inputs, tiny_model, alone, tmp_path):
    copies = [tmp_path / path.name for path in sorted(inputs.glob("part*.gz"))]
    for copy in copies:
        copy.write_bytes((inputs / copy.name).read_bytes())
    options, out = TagOptions(str(tiny_model), choice={"evidence": True}), tmp_path / "tags"
    how = {"ray_options": RayOptions(workers=2), "format": "parquet", "progress": False}
    count, report = tag_files_on_ray(copies, out, options, **how)
    assert count == len(alone) == report.read and report.skipped.total() == 2
    rows = [row for path in sorted(out.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    assert_same_tags(rows, alone)
    tag = rows[0]["tags"][0]
    assert "neighbours" in json.loads(tag["evidence"])

    # A file that was mended is done again, the others stay.
    write_articles(UNSEEN, copies[-1])
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    count, report = tag_files_on_ray(copies, out, options, resume=True, **how)
    assert count == 3 * ARTICLES + len(UNSEEN) and report.ok
    after = {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    assert [name for name in after if after[name] != before[name]] == ["part3.parquet"]
    assert ray.is_initialized()


def test_files_of_one_name_keep_their_outputs_apart(local_ray, tiny_model, tmp_path):
    for number, name in enumerate(("one", "two")):
        (tmp_path / name).mkdir()
        write_articles(UNSEEN[number : number + 1], tmp_path / name / "same.jsonl")
    how = {"ray_options": RayOptions(workers=1), "progress": False}
    tag_files_on_ray(
        [tmp_path / "one", tmp_path / "two"], tmp_path / "out", TagOptions(str(tiny_model)), **how
    )
    found = [json.loads((tmp_path / "out" / name).read_text()) for name in ("same.jsonl", "same-2.jsonl")]
    assert [row["pmid"] for row in found] == [article.pmid for article in UNSEEN[:2]]


def test_tags_may_lie_among_the_files_that_are_tagged(local_ray, tiny_model, tmp_path):
    how = {"ray_options": RayOptions(workers=1), "progress": False}
    for name in ("one.jsonl", "manifest.csv"):
        write_articles(UNSEEN[:3], tmp_path / name)
    given = (tmp_path / "one.jsonl").read_bytes()
    for resume in (False, True):
        count, report = tag_files_on_ray(
            [tmp_path], tmp_path, TagOptions(str(tiny_model)), resume=resume, **how
        )
        assert count == 6 and report.ok
    assert (tmp_path / "one.jsonl").read_bytes() == given
    outputs = {record["output"]: record["articles"] for record in read_manifest(tmp_path).values()}
    assert outputs == {"one-2.jsonl": 3, "manifest-2.jsonl": 3}
    assert all(len((tmp_path / name).read_text().splitlines()) == 3 for name in outputs)


def test_a_model_that_cannot_be_loaded_and_strictness_are_sentences(local_ray, inputs, tiny_model, tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    for path in tiny_model.iterdir():
        (model / path.name).write_bytes(path.read_bytes())
    (model / "model.safetensors").write_bytes(b"nothing")
    one = {"ray_options": RayOptions(workers=1), "progress": False}
    with pytest.raises(ValueError, match="model.safetensors in .* is not the file"):
        tag_files_on_ray([inputs / "part0.jsonl.gz"], tmp_path / "out", TagOptions(str(model)), **one)
    with pytest.raises(InputError, match="cut off or damaged"):
        tag_files_on_ray([inputs], tmp_path / "strict", TagOptions(str(tiny_model)), strict=True, **one)
    assert not (tmp_path / "strict" / "manifest.jsonl").exists()


@pytest.mark.ray
def test_what_costs_one_worker_after_the_other_is_given_up_last(local_ray):
    def start():
        return lambda item: os._exit(1) if item == "poison" else item.upper()

    found = []
    with pytest.raises(KenMeSHError, match="poison cost 3 workers in turn.*same command goes on"):
        for done in Crew(start, RayOptions(workers=1)).work(["fine", "poison", "good"]):
            found.append(done)
    assert found == [("fine", "FINE"), ("good", "GOOD")]


def test_a_node_that_lacks_a_library_is_told(local_ray):
    def start():
        import frobnicate  # type: ignore[import-not-found]

        return frobnicate

    with pytest.raises(KenMeSHError, match="No module named 'frobnicate'.*on all nodes"):
        list(Crew(start, RayOptions(workers=1)).work(["item"]))


def test_too_little_memory_in_a_worker_is_a_sentence(local_ray):
    def start():
        def work(item):
            raise MemoryError

        return work

    with pytest.raises(KenMeSHError, match="ran out of memory on item. Use fewer --workers"):
        list(Crew(start, RayOptions(workers=1)).work(["item"]))


def test_a_dataset_gets_a_column_of_tags(local_ray, inputs, tiny_model, tiny_tagger):
    rows = [{"pmid": a.pmid, "title": a.title, "abstract": a.abstract, "extra": 1} for a in UNSEEN]
    options = TagOptions(str(tiny_model), choice={"top_k": 3}, batch_size=2)
    tagged = tag_dataset(ray.data.from_items(rows), options, workers=1).take_all()
    assert {row["pmid"] for row in tagged} == {article.pmid for article in UNSEEN}
    expected = {row["pmid"]: tags for row, tags in zip(rows, tiny_tagger(rows, top_k=3), strict=True)}
    for row in tagged:
        assert row["extra"] == 1
        assert [tag["ui"] for tag in row["tags"]] == [tag["ui"] for tag in expected[row["pmid"]]]


def test_what_cannot_become_a_dataset_with_tags_is_a_sentence(local_ray, tiny_model, tmp_path):
    options = TagOptions(str(tiny_model))
    with pytest.raises(InputError, match="no file in"):
        tag_dataset(tmp_path, options, workers=1)
    tagged = ray.data.from_items([{"title": "A", "tags": ["mine"]}])
    with pytest.raises(ray.exceptions.RayTaskError, match="a column tags already"):
        tag_dataset(tagged, options, workers=1).take_all()


def test_files_become_a_dataset_with_tags(local_ray, inputs, tiny_model, alone):
    files = sorted(inputs.glob("part*.gz"))
    tagged = tag_dataset(files, TagOptions(str(tiny_model)), workers=2).take_all()
    found = sorted(tagged, key=lambda row: int(row["pmid"]))
    assert_same_tags(found, sorted(alone, key=lambda row: int(row["pmid"])))
    assert {row["file"] for row in found} == set(map(str, files))


@pytest.mark.parametrize(
    "options, sentence",
    [
        (["--workers", "2"], "--workers is for --engine ray"),
        (["--format", "parquet"], "Parquet is written with --engine ray"),
        (["--engine", "ray"], "give inputs and --out"),
        (["--engine", "ray", "--out", "tags", "--format", "csv"], "--format is jsonl or parquet, not csv"),
        (["--engine", "ray", "--out", "tags", "--num-proc", "2"], "leave out --num-proc"),
        (["--engine", "ray", "--out", "tags", "--workers", "0"], "--workers is 0"),
        (["--engine", "ray", "--out", "tags", "--gpus-per-worker", "-1"], "cannot be negative"),
    ],
)
def test_options_that_make_no_sense_are_one_sentence(inputs, options, sentence, capsys):
    assert main(["tag", str(inputs), *options]) == 1
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1


def test_what_ray_cannot_do_is_one_sentence(local_ray, inputs, tiny_model, tmp_path):
    options, out = TagOptions(str(tiny_model)), tmp_path / "tags"
    with pytest.raises(InputError, match="this Ray has none"):
        tag_files_on_ray([inputs], out, options, ray_options=RayOptions(gpus_per_worker=1), progress=False)
    with pytest.raises(InputError, match="Standard input cannot be spread"):
        tag_files_on_ray(["-"], out, options)
    with pytest.raises(InputError, match="nowhere.xml does not exist"):
        tag_files_on_ray([tmp_path / "nowhere.xml"], out, options)
