"""`kenmesh headings`: a saved model that tells major topics and qualifiers."""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import check_new
from ..indexing import know_headings
from ..mesh import MeshQualifiers
from ..modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from ..modeling.pipeline_kenmesh import MeSHIndexingPipeline
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..reading import Article, join_headings, read_articles, read_heading_files
from ..sharing import CARD, RESULTS_FILE, find_model
from ..training import fit_headings

Paths = Sequence[str | os.PathLike]


def add_headings_to_model_folder(
    model: str | os.PathLike,
    articles: Paths,
    out: str | os.PathLike,
    validation: Paths = (),
    headings: Paths = (),
    qualifiers: MeshQualifiers | None = None,
    progress: bool = False,
    **options: Any,
) -> int:
    """Teaches a saved model to tell major topics and qualifiers; its network and scores stay as they are.

    Args:
        model: Folder or Hub name.
        articles: Files of the articles in its index, with their headings.
        out: Folder for the model that tells them.
        validation: Files of other articles with headings, on which thresholds are chosen.
        headings: Files with headings of these articles, joined by PMID.
        qualifiers: Which ones a descriptor may have; learned from the articles if not given.
        progress: Show a bar.
        **options: `revision` and `token` of a model on the Hub.

    Returns:
        Of how many articles the index now knows the headings.
    """
    folder, out = find_model(model, options), Path(out)
    check_new(out, "the model that tells headings")
    known = read_heading_files(headings)

    def read(files: Paths) -> Iterator[Article]:
        found = read_articles([Path(file) for file in files], every_version=True) if files else ()
        return (join_headings(article, known) for article in found)

    processor = KenMeSHProcessor.from_pretrained(folder)
    if processor.candidates is None or not len(processor.candidates.articles):
        raise InputError(f"{model} has no index, and headings are told by similar articles; get it with one.")
    processor, count = know_headings(processor, read(articles))
    if not count:
        raise InputError("None of these articles is in the model's index; give those it was built from.")
    tagger = MeSHIndexingPipeline(model=KenMeSHForMeSHIndexing.from_pretrained(folder), processor=processor)
    told = fit_headings(tagger, lambda: read(articles), read(validation), qualifiers, progress=progress)
    shutil.copytree(folder, out, dirs_exist_ok=True, ignore=shutil.ignore_patterns(CARD, RESULTS_FILE))
    told.save_pretrained(out)
    return count
