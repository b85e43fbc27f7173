"""Fixtures that several test files share: a small prepared dataset and a tiny model, each made once."""

import signal
from collections.abc import Iterator
from pathlib import Path

import datasets
import pytest
from tiny import TEST, TRAIN, VALIDATION, write_tiny_articles, write_tiny_mesh, write_tiny_vectors
from tiny_headings import build_telling_tagger
from tiny_model import build_tagger

from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.preparing import PrepareOptions, prepare


@pytest.fixture(autouse=True)
def _datasets_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keeps what `load_dataset` converts out of the user's cache."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.getbasetemp() / "datasets")


@pytest.fixture(autouse=True, scope="session")
def _heed_interrupts() -> None:
    """What a shell runs in the background ignores Ctrl+C, and so would all that tests start and stop."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _small_samples() -> Iterator[None]:
    """Measures candidates on few articles: the figures matter to no test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kenmesh_hf.preparing.report.MEASURED", 20)
        yield


@pytest.fixture(scope="session")
def tiny_sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Options of `PrepareOptions` for invented articles over an invented MeSH; only `out` is missing."""
    folder = tmp_path_factory.mktemp("sources")
    files = write_tiny_articles(folder, TRAIN + VALIDATION + TEST, files=2)
    return {
        "mesh": str(write_tiny_mesh(folder)),
        "articles": [str(file) for file in files],
        "validation_size": VALIDATION,
        "test_size": TEST,
        "min_count": 1,
        "word_vectors": str(write_tiny_vectors(folder)),
        "articles_per_file": 100,
    }


@pytest.fixture(scope="session")
def tiny_prepared(tmp_path_factory: pytest.TempPathFactory, tiny_sources: dict[str, object]) -> Path:
    """A prepared dataset of `TRAIN` training articles; tests must not change it."""
    out = tmp_path_factory.mktemp("prepared")
    prepare(PrepareOptions(out=str(out), **tiny_sources), progress=False)  # type: ignore[arg-type]
    return out


@pytest.fixture(scope="session")
def tiny_tagger() -> MeSHIndexingPipeline:
    """A tagger in memory; tests must not change it."""
    return build_tagger()


@pytest.fixture(scope="session")
def tiny_model(tiny_tagger: MeSHIndexingPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same tagger saved, as a complete model folder; tests must not change it."""
    folder = tmp_path_factory.mktemp("model")
    tiny_tagger.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def telling_tagger() -> MeSHIndexingPipeline:
    """A tagger in memory that tells major topics and qualifiers; tests must not change it."""
    return build_telling_tagger()


@pytest.fixture(scope="session")
def telling_model(telling_tagger: MeSHIndexingPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same tagger saved, as a complete model folder; tests must not change it."""
    folder = tmp_path_factory.mktemp("telling-model")
    telling_tagger.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def encoder_tagger() -> MeSHIndexingPipeline:
    """A tagger in memory whose texts an encoder reads; tests must not change it."""
    return build_tagger(encoder=True, word_path=True)


@pytest.fixture(scope="session")
def encoder_model(encoder_tagger: MeSHIndexingPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same tagger saved, as a complete model folder; tests must not change it."""
    folder = tmp_path_factory.mktemp("encoder-model")
    encoder_tagger.save_pretrained(folder)
    return folder
