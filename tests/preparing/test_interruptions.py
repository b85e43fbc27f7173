"""A full disk, a damaged file, a kill at any stage: told or gone on from, and never a damaged dataset."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from kenmesh_hf.commands import main
from kenmesh_hf.errors import InputError
from kenmesh_hf.preparing import PrepareOptions, load_prepared, prepare
from kenmesh_hf.preparing import preparation as module

STAGES = (
    "build_vocabulary_words",
    "read_word_vectors",
    "make_digest",
    "build_tables",
    "fit_ranker",
    "make_rows",
)

GIVEN = ("mesh", "out", "word_vectors", "min_count", "validation_size", "test_size", "articles_per_file")


def arguments(options: PrepareOptions) -> list[str]:
    """The command line that says the same."""
    said = []
    for name in GIVEN:
        said += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    return ["prepare", *said, "--articles", *options.articles, "--quiet"]


def assert_same_rows(folder: Path, expected: Path) -> None:
    files = sorted(path.name for path in (expected / "data").iterdir())
    assert sorted(path.name for path in (folder / "data").iterdir()) == files
    for name in files:
        assert (folder / "data" / name).read_bytes() == (expected / "data" / name).read_bytes(), name
    assert not list(folder.rglob("*.unfinished"))


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes: a disk that is full, as far as the program can tell."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_told_and_the_same_command_goes_on(
    tiny_sources: dict, tiny_prepared: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    options = PrepareOptions(out=str(tmp_path / "data"), **tiny_sources)
    stopped = set()
    for room in (1_000, 4_000, 20_000, 60_000):
        with largest_file(room):
            assert main(arguments(options)) == 1
        told = capsys.readouterr().err
        assert told.count("\n") == 1 and "Make room" in told and "Traceback" not in told
        stopped.add(len(list((tmp_path / "data").rglob("*.json"))))
        with pytest.raises(InputError, match="no finished dataset"):
            load_prepared(tmp_path / "data")
    # The room that there was each time decided how far it came.
    assert len(stopped) > 1
    assert main(arguments(options)) == 0
    assert_same_rows(tmp_path / "data", tiny_prepared)


@pytest.mark.parametrize("stage", STAGES)
def test_a_kill_at_any_stage_is_gone_on_from(
    tiny_sources: dict, tiny_prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    def killed(*args, **kwargs):
        raise KeyboardInterrupt

    options = PrepareOptions(out=str(tmp_path), **tiny_sources)
    with monkeypatch.context() as patch:
        patch.setattr(module, stage, killed)
        with pytest.raises(KeyboardInterrupt):
            prepare(options, progress=False)
    with pytest.raises(InputError, match="no finished dataset"):
        load_prepared(tmp_path)
    for earlier in STAGES[: STAGES.index(stage)]:
        if earlier not in ("build_tables", "fit_ranker"):  # one stage, begun anew
            monkeypatch.setattr(module, earlier, None)
    prepare(options, progress=False)
    assert_same_rows(tmp_path, tiny_prepared)


def test_a_file_that_ends_in_the_middle_is_told_by_name(
    tiny_sources: dict, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    cut = tmp_path / "cut.jsonl"
    whole = Path(tiny_sources["articles"][0])
    cut.write_bytes(whole.read_bytes()[:-100])
    sources = tiny_sources | {"articles": [str(cut), *tiny_sources["articles"][1:]]}
    assert main(arguments(PrepareOptions(out=str(tmp_path / "data"), **sources))) == 3
    told = capsys.readouterr()
    assert "1 skipped" in told.err and "cut.jsonl" in told.err and "Prepared in" in told.out


@pytest.mark.parametrize("damaged", ["digests", "articles"])
def test_a_damaged_file_in_between_ends_the_work(
    tiny_sources: dict, tmp_path: Path, capsys: pytest.CaptureFixture, damaged: str
) -> None:
    """Such as a disk that lost what it was given: nothing is made of the rest."""
    options = PrepareOptions(out=str(tmp_path), **tiny_sources)
    prepare(options, progress=False)
    folder = tmp_path / ".stages" / "digests" if damaged == "digests" else tmp_path / "articles"
    victim = sorted(path for path in folder.iterdir() if path.suffix in (".safetensors", ".gz"))[0]
    victim.write_bytes(victim.read_bytes()[:-50])
    fewer = PrepareOptions(out=str(tmp_path), **(tiny_sources | {"neighbours": 7}))
    assert main([*arguments(fewer), "--neighbours", "7"]) == 1
    told = capsys.readouterr().err
    assert victim.name in told and told.count("\n") == 1
    with pytest.raises(InputError, match="no finished dataset"):
        load_prepared(tmp_path)


def test_word_vectors_need_fewer_passes_over_more_texts(
    tiny_sources: dict, tmp_path: Path, monkeypatch
) -> None:
    passes = []
    train = module.train_word_vectors

    def trained(texts, **settings):
        passes.append(settings["epochs"])
        return train(texts, **(settings | {"epochs": 1}))

    monkeypatch.setattr(module, "train_word_vectors", trained)
    sources = tiny_sources | {"word_vectors": None, "embedding_size": 4}
    for number, texts in enumerate((module.VECTOR_TEXTS, 800, 200, 50)):
        monkeypatch.setattr(module, "VECTOR_TEXTS", texts)
        with monkeypatch.context() as patch:
            patch.setattr(module, "build_tables", None)
            with pytest.raises(TypeError):
                prepare(PrepareOptions(out=str(tmp_path / str(number)), **sources), progress=False)
    assert passes == [10, 4, 1, 1]
    assert load_file(tmp_path / "0" / "word_vectors.safetensors")["vectors"].shape[1] == 4
