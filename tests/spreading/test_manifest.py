"""Records of what is finished: which files are left to do, under which names, and with which settings."""

import json

import pytest

from kenmesh_hf.errors import InputError, MismatchError
from kenmesh_hf.spreading.manifest import Manifest, write_record
from kenmesh_hf.spreading.places import InputFile

SETTINGS = {"model": {"name": "a", "sha256": "1"}, "options": {"format": "jsonl"}}


def file(path: str, size: int = 1, state: str = "x") -> InputFile:
    return InputFile(path, size, state)


def record(path: str, output: str, **changes) -> dict:
    return {"input": path, "size": 1, "state": "x", "output": output, **SETTINGS} | changes


def names(manifest: Manifest, *inputs: InputFile) -> dict[str, str]:
    return {piece.input.path: piece.output for piece in manifest.plan(inputs, ".jsonl")}


def test_outputs_are_named_after_inputs_and_never_shared(tmp_path):
    manifest = Manifest(str(tmp_path), SETTINGS, resume=False)
    inputs = [file(path) for path in ("/a/x.xml.gz", "/b/x.xml", "s3://c/x.json.bz2", "/a/y", "/a/x-2.xml")]
    assert list(names(manifest, *inputs).values()) == [
        "x.jsonl", "x-2.jsonl", "x-3.jsonl", "y.jsonl", "x-2-2.jsonl",
    ]  # fmt: skip


def test_outputs_take_the_place_neither_of_an_input_nor_of_the_manifest(tmp_path):
    manifest = Manifest(str(tmp_path), SETTINGS, resume=False)
    beside, other = f"{tmp_path}/x.jsonl", "/a/manifest.csv"
    assert names(manifest, file(beside), file(other)) == {beside: "x-2.jsonl", other: "manifest-2.jsonl"}
    with pytest.raises(InputError, match="overwritten by the manifest"):
        manifest.without_own([file(f"{tmp_path}/manifest.jsonl")])


def test_what_a_job_wrote_is_no_input_of_it(tmp_path):
    out = str(tmp_path)
    write_record(out, record(f"{out}/x.jsonl", "x-2.jsonl"))
    manifest = Manifest(out, SETTINGS, resume=True)
    written = (f"{out}/{name}" for name in ("x-2.jsonl", "manifest.jsonl", ".manifest/x-2.jsonl.json"))
    inputs = [file(f"{out}/x.jsonl"), file("/a/x-2.jsonl"), file(f"{out}-2/manifest.jsonl")]
    assert manifest.without_own([*map(file, written), *inputs]) == inputs


def test_the_largest_files_are_done_first(tmp_path):
    manifest = Manifest(str(tmp_path), SETTINGS, resume=False)
    inputs = [file("/a/x", size=2), file("/a/y", size=9), file("/a/z", size=5)]
    assert [piece.input.size for piece in manifest.plan(inputs, ".jsonl")] == [9, 5, 2]


def test_finished_files_keep_their_names_and_are_done_again_only_if_changed(tmp_path):
    out = str(tmp_path)
    write_record(out, record("/b/x.xml", "x-2.jsonl"))
    manifest = Manifest(out, SETTINGS, resume=True)
    assert names(manifest, file("/a/x.xml"), file("/b/x.xml")) == {"/a/x.xml": "x.jsonl"}
    assert names(manifest, file("/b/x.xml", size=2)) == {"/b/x.xml": "x-2.jsonl"}
    assert names(manifest, file("/b/x.xml", state="y")) == {"/b/x.xml": "x-2.jsonl"}
    manifest.add(record("/a/x.xml", "x.jsonl"))
    manifest.write()
    lines = (tmp_path / "manifest.jsonl").read_text().splitlines()
    assert [json.loads(line)["output"] for line in lines] == ["x-2.jsonl", "x.jsonl"]


def test_only_the_same_work_is_gone_on_with(tmp_path):
    out = str(tmp_path)
    write_record(out, record("/a/x.xml", "x.jsonl"))
    with pytest.raises(InputError, match="--resume or choose another"):
        Manifest(out, SETTINGS, resume=False)
    with pytest.raises(MismatchError, match="other options"):
        Manifest(out, SETTINGS | {"options": {"format": "parquet"}}, resume=True)
    with pytest.raises(MismatchError, match="other model"):
        Manifest(out, SETTINGS | {"model": {"name": "a", "sha256": "2"}}, resume=True)
    # The same model may have moved.
    Manifest(out, SETTINGS | {"model": {"name": "b", "sha256": "1"}}, resume=True)


def test_a_damaged_record_is_named(tmp_path):
    write_record(str(tmp_path), record("/a/x.xml", "x.jsonl"))
    (tmp_path / ".manifest" / "x.jsonl.json").write_text("{")
    with pytest.raises(InputError, match=r"x\.jsonl\.json is damaged; delete it"):
        Manifest(str(tmp_path), SETTINGS, resume=True)
