"""Invented articles whose words tell major topics and qualifiers, and a tagger that learned them."""

import random
from dataclasses import replace

from tiny import tiny_articles
from tiny_model import build_tagger

from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.reading import Article, Qualifier
from kenmesh_hf.training import fit_headings

THERAPY, BLOOD = Qualifier("Q000188", "drug therapy"), Qualifier("Q000097", "blood")
# A word that tells each qualifier of all topics of an article.
CUES = {"healing": THERAPY, "serum": BLOOD}


def tiny_headings(count: int, seed: int = 0, first_pmid: int = 1) -> list[Article]:
    """Articles in which every topic of an even number is major, and cue words tell qualifiers of topics."""
    draw = random.Random(seed)
    return [_told(article, draw) for article in tiny_articles(count, seed, first_pmid)]


def _told(article: Article, draw: random.Random) -> Article:
    cues = [cue for cue in CUES if draw.random() < 0.5]
    headings = []
    for heading in article.headings:
        if heading.ui.startswith("D9"):
            major = int(heading.ui[1:]) % 2 == 0
            qualifiers = tuple(CUES[cue] for cue in cues)
            if major and qualifiers:
                qualifiers = (replace(qualifiers[0], major=True), *qualifiers[1:])
            heading = replace(heading, major=major, qualifiers=qualifiers)
        headings.append(heading)
    return replace(article, abstract=f"{article.abstract} {' '.join(cues)}", headings=tuple(headings))


TOLD, OTHERS = tiny_headings(300), tiny_headings(60, seed=9, first_pmid=5001)


def build_telling_tagger() -> MeSHIndexingPipeline:
    """A tagger that tells major topics and qualifiers."""
    tagger = build_tagger(articles=TOLD)
    processor = fit_headings(tagger, lambda: TOLD, OTHERS)
    return MeSHIndexingPipeline(model=tagger.model, processor=processor)
