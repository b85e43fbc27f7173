"""Files on disks and elsewhere: found, fetched, and written whole or not at all."""

import fsspec
import pytest

from kenmesh_hf.errors import DependencyError, InputError
from kenmesh_hf.spreading.places import fetched, find_inputs, read_texts, sweep, whole


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    yield system
    system.rm("/", recursive=True)


def test_a_remote_folder_is_listed_like_a_local_one(memory, tmp_path):
    for name in ("b.xml.gz", "a.xml.gz", ".hidden", "a.xml.gz.md5"):
        memory.pipe_file(f"/bucket/{name}", b"content")
        (tmp_path / name).write_bytes(b"content")
    remote = find_inputs(["memory://bucket"])
    assert [file.path for file in remote] == ["memory://bucket/a.xml.gz", "memory://bucket/b.xml.gz"]
    assert [file.size for file in remote] == [7, 7]
    local = find_inputs([tmp_path, tmp_path / "a.xml.gz", f"file://{tmp_path / 'b.xml.gz'}"])
    assert [file.path for file in local] == [str(tmp_path / "a.xml.gz"), str(tmp_path / "b.xml.gz")]
    assert [file.path for file in find_inputs(["memory://bucket/b*"])] == ["memory://bucket/b.xml.gz"]


def test_the_state_of_a_file_changes_with_it(memory, tmp_path):
    for path in (f"{tmp_path}/a.xml", "memory://bucket/a.xml"):
        with fsspec.open(path, "wb") as file:
            file.write(b"one")
        [before] = find_inputs([path])
        assert find_inputs([path]) == [before]
        with fsspec.open(path, "wb") as file:
            file.write(b"two")
        assert find_inputs([path]) != [before]


@pytest.mark.parametrize(
    "path, error, sentence",
    [
        ("memory://bucket/nothing", InputError, "does not exist, or has no files"),
        ("/nowhere/at/all.xml", InputError, "/nowhere/at/all.xml does not exist"),
        ("frobnicate://bucket/file", InputError, "frobnicate"),
        ("adl://store/file", DependencyError, "adl://store/file cannot be reached: .*nstall"),
        ("-", InputError, "Standard input"),
    ],
)
def test_what_is_not_there_is_a_sentence(path, error, sentence):
    with pytest.raises(error, match=sentence):
        find_inputs([path])


@pytest.mark.parametrize("folder", ["memory://bucket/out", "{tmp}/out", "file://{tmp}/out"])
def test_a_file_is_whole_or_not_there(memory, tmp_path, folder):
    target = folder.format(tmp=tmp_path) + "/tags.jsonl"
    system, path = fsspec.core.url_to_fs(target)
    with pytest.raises(RuntimeError), whole(target.removeprefix("file://")) as local:
        local.write_text("half")
        raise RuntimeError("killed")
    assert not system.exists(path)
    with whole(target.removeprefix("file://")) as local:
        local.write_text("whole")
        assert not system.exists(path)
    assert system.cat_file(path) == b"whole"
    assert not list((tmp_path / "out").glob(".*"))
    with fetched(target.removeprefix("file://")) as local:
        assert local.read_text() == "whole"
    assert read_texts(folder.format(tmp=tmp_path), ".jsonl") == {"tags.jsonl": "whole"}


def test_a_name_may_be_as_long_as_the_disk_allows(tmp_path):
    target = tmp_path / f"{'n' * 249}.jsonl"
    with whole(str(target)) as local:
        local.write_text("whole")
    assert target.read_text() == "whole"


def test_what_the_killed_left_is_swept_away(tmp_path):
    left = tmp_path / ".0123.unfinished"
    left.write_text("half")
    (tmp_path / "tags.jsonl").write_text("whole")
    sweep(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["tags.jsonl"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot be used: "), whole(f"{tmp_path}/file/tags.jsonl"):
        pass
