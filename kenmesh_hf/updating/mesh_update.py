"""`kenmesh update-mesh`: carry a model to another MeSH year."""

import os
from pathlib import Path
from typing import Any

from ..errors import MismatchError
from ..files import check_new, write_json
from ..mesh import read_vocabulary
from ..modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..modeling.vocabulary_kenmesh import MeshVocabulary
from ..sharing import find_model
from ..words import build_tokenizer
from .label_carrying import carry_candidates, carry_headings, carry_network, carry_thresholds, new_name_words
from .plan import UpdatePlan, plan_update

UPDATE_FILE = "mesh_update.json"


def update_mesh(
    model: KenMeSHForMeSHIndexing, processor: KenMeSHProcessor, vocabulary: MeshVocabulary
) -> tuple[KenMeSHForMeSHIndexing, KenMeSHProcessor, UpdatePlan]:
    """Carries a model to another MeSH year; what it was given stays as it is.

    Everything learned goes with its descriptor: labels of indexed articles, journal counts, word weights,
    thresholds, biases, and how far a term can be trusted. A new descriptor is found by its terms and scored
    by its name and its place in the hierarchy at once. A label scores as before if its name and the
    hierarchy within three steps of it did not change, in every text without words that only new names have.

    Args:
        model: Network of the old year.
        processor: Its processor, with vocabulary.
        vocabulary: Of the new year.

    Returns:
        The new network, its processor, and what became of which label.
    """
    if processor.vocabulary is None:
        raise MismatchError("The model has no MeSH vocabulary, so nobody knows what its labels mean.")
    plan = plan_update(processor.vocabulary, vocabulary)
    # Pieces of words spell any name.
    new_words = new_name_words(plan, processor.word_ids) if processor.pieces is None else {}
    tokenizer = processor.tokenizer
    if new_words:
        words = sorted(processor.word_ids, key=processor.word_ids.__getitem__)
        tokenizer = build_tokenizer([*words[2:], *new_words], tokenizer.model_max_length)
    candidates, thresholds, headings = processor.candidates, processor.thresholds, processor.headings
    updated = processor.with_parts(
        tokenizer=tokenizer,
        candidates=None if candidates is None else carry_candidates(candidates, plan),
        vocabulary=vocabulary,
        thresholds=None if thresholds is None else carry_thresholds(thresholds, plan),
        headings=None if headings is None else carry_headings(headings, plan),
    )
    return carry_network(model, plan, updated, new_words), updated, plan


def update_model_folder(
    model: str | os.PathLike,
    mesh: str | os.PathLike,
    out: str | os.PathLike,
    trees: str | os.PathLike | None = None,
    limit: int = 20,
    **options: Any,
) -> str:
    """Carries a saved model to another MeSH year; what happened is also kept in `mesh_update.json`.

    Args:
        model: Folder or Hub name.
        mesh: Descriptor file of the new year.
        out: Folder for the new model.
        trees: Tree numbers, where the descriptor file has none.
        limit: How many descriptors of each kind the report lists by name.
        **options: `revision` and `token` of a model on the Hub.

    Returns:
        The report.
    """
    folder, out = find_model(model, options), Path(out)
    check_new(out, "the updated model")
    vocabulary = read_vocabulary(mesh, trees)
    updated, processor, plan = update_mesh(
        KenMeSHForMeSHIndexing.from_pretrained(folder), KenMeSHProcessor.from_pretrained(folder), vocabulary
    )
    updated.save_pretrained(out)
    processor.save_pretrained(out)
    write_json(out / UPDATE_FILE, plan.to_dict())
    return plan.report(limit)
