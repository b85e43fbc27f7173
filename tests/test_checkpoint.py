"""The bundled checkpoint: small enough, and without the articles that its figures were measured on."""

from pathlib import Path

import kenmesh_hf
from kenmesh_hf.modeling.indexed_articles_kenmesh import pmid_number
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor

VALIDATION = Path(__file__).parent / "data" / "validation_pmids.txt"
MOST_BYTES = 45_000_000


def test_it_takes_little_room():
    assert sum(path.stat().st_size for path in kenmesh_hf.BUNDLED_CHECKPOINT.iterdir()) <= MOST_BYTES


def test_no_validation_article_is_in_its_tables():
    articles = KenMeSHProcessor.from_pretrained(kenmesh_hf.BUNDLED_CHECKPOINT).candidates.articles
    held_out = [pmid_number(pmid) for pmid in VALIDATION.read_text(encoding="utf-8").split()]
    indexed = set(articles.pmids.tolist())
    assert len(held_out) == 800 and all(held_out) and len(indexed) > 30_000
    assert not indexed.intersection(held_out)
