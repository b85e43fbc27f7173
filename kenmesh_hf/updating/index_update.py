"""`kenmesh index add`: a saved model whose index knows more articles."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..evaluating import retune_thresholds
from ..files import check_new
from ..indexing import add_articles
from ..modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from ..modeling.pipeline_kenmesh import MeSHIndexingPipeline
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..reading import Article, ReadReport, read_articles
from ..sharing import CARD, RESULTS_FILE, find_model

_KNOWN = "already in the index"
_UNLABELLED = "no descriptor of the model's MeSH"
_REPEATED = "given twice"


def add_to_model_folder(
    model: str | os.PathLike,
    articles: Sequence[str | os.PathLike],
    out: str | os.PathLike,
    tune: Sequence[str | os.PathLike] = (),
    **options: Any,
) -> tuple[int, ReadReport]:
    """Lets articles join the index of a saved model; its card and figures, which tell of the old one, stay.

    Args:
        model: Folder or Hub name.
        articles: Files or folders of labelled articles.
        out: Folder for the model with the larger index.
        tune: Files of other labelled articles, on which its thresholds are moved to where its scores are.
        **options: `revision` and `token` of a model on the Hub.

    Returns:
        How many articles joined, and what was read and left out.
    """
    folder, out = find_model(model, options), Path(out)
    check_new(out, "the model with the larger index")
    report = ReadReport()
    processor, growth = add_articles(KenMeSHProcessor.from_pretrained(folder), _read(articles, report))
    counts = {_KNOWN: growth.known, _REPEATED: growth.repeated, _UNLABELLED: growth.unlabelled}
    report.notes.update({reason: count for reason, count in counts.items() if count})
    if tune:
        network = KenMeSHForMeSHIndexing.from_pretrained(folder)
        tagger = MeSHIndexingPipeline(model=network, processor=processor)
        processor = processor.with_parts(thresholds=retune_thresholds(tagger, _read(tune, report)))
    save_grown(folder, out, processor)
    return growth.added, report


def save_grown(folder: Path, out: Path, processor: KenMeSHProcessor) -> None:
    """Saves a model whose processor has grown, without card and figures, which tell of the old one."""
    # Weights are copied as they are, maybe of half the size they load in. Code comes with the processor,
    # since another version's might not read the tables that are written now.
    shutil.copytree(folder, out, dirs_exist_ok=True, ignore=shutil.ignore_patterns(CARD, RESULTS_FILE))
    processor.save_pretrained(out)


def _read(files: Sequence[str | os.PathLike], report: ReadReport) -> list[Article]:
    paths = [Path(path) if str(path) != "-" else "-" for path in files]
    return list(read_articles(paths, report=report))
