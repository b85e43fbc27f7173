"""The file that can be gone on with: what is noted, what is cut off, what is refused."""

import json

import pytest

from kenmesh_hf.errors import InputError, MismatchError
from kenmesh_hf.tagging import ResumableFile
from kenmesh_hf.tagging.resumable import StandardOutput

JOB = {"inputs": ["a.xml"], "choice": {"top_k": 3}}


def test_what_was_not_noted_is_cut_off(tmp_path):
    path = tmp_path / "out"
    first = ResumableFile(path, JOB)
    first.write("één\n", 2)
    first._file.write(b"lost")
    first._file.close()
    second = ResumableFile(path, JOB, resume=True)
    assert second.done == 2
    second.write("zwei\n", 1)
    second.close()
    assert path.read_text(encoding="utf-8") == "één\nzwei\n"
    assert [item.name for item in tmp_path.iterdir()] == ["out"]


def test_nothing_changes_before_the_first_write(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    ResumableFile(path, JOB)
    assert path.read_text() == "old" and not (tmp_path / "out.progress").exists()


def test_a_kill_between_note_and_file_starts_anew(tmp_path):
    path = tmp_path / "out"
    ResumableFile(path, JOB)._note()
    assert ResumableFile(path, JOB, resume=True).done == 0
    path.write_text("older output that the killed job was to replace")
    again = ResumableFile(path, JOB, resume=True)
    again.write("new\n", 1)
    again.close()
    assert path.read_text() == "new\n"


def test_what_cannot_be_gone_on_with_is_refused(tmp_path):
    path = tmp_path / "out"
    path.write_text("complete")
    with pytest.raises(InputError, match="nothing to resume"):
        ResumableFile(path, JOB, resume=True)
    note = tmp_path / "out.progress"
    for damaged in ("{", "[]", '{"articles": 3}'):
        note.write_text(damaged)
        with pytest.raises(InputError, match="damaged"):
            ResumableFile(path, JOB, resume=True)
    note.write_text(json.dumps({"articles": 3, "bytes": 100, "job": JOB}))
    with pytest.raises(InputError, match="shorter"):
        ResumableFile(path, JOB, resume=True)
    with pytest.raises(MismatchError, match="another inputs: .*a.xml.*b.xml"):
        ResumableFile(path, JOB | {"inputs": ["b.xml"]}, resume=True)


def test_places_that_cannot_be_written_are_named(tmp_path):
    with pytest.raises(InputError, match="folder"):
        ResumableFile(tmp_path, JOB)
    with pytest.raises(InputError, match="folder"):
        ResumableFile(tmp_path / "missing" / "out", JOB)
    (tmp_path / "out.progress.part").mkdir()
    with pytest.raises(InputError, match="Cannot write"):
        ResumableFile(tmp_path / "out", JOB).write("", 0)


def test_standard_output_counts_too(capsys):
    target = StandardOutput()
    target.write("a\n", 3)
    target.close()
    assert target.done == 3 and capsys.readouterr().out == "a\n"
