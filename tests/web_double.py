"""A stand-in for the pipeline that is quick and always alike: it looks for descriptors' names in the text."""

import re
import threading
from types import SimpleNamespace

import numpy as np
from patience import PATIENCE

from kenmesh_hf.modeling.journals_kenmesh import JournalTable
from kenmesh_hf.modeling.thresholds_kenmesh import Thresholds
from kenmesh_hf.modeling.vocabulary_kenmesh import MeshVocabulary

ROWS = [
    ("D002318", "Cardiovascular Diseases", (), ("C14",)),
    ("D014652", "Vascular Diseases", (), ("C14.907",)),
    ("D006973", "Hypertension", ("Blood Pressure, High",), ("C14.907.489",)),
    ("D013927", "Thrombosis", ("Thromboses",), ("C14.907.355.830",)),
    ("D009369", "Neoplasms", ("Cancer", "Tumors"), ("C04",)),
    ("D017311", "Amlodipine", (), ("D03.383.725.203.070",)),
    ("D006493", "Heparin", (), ("D09.698.373.400",)),
    ("D051379", "Mice", ("Mouse",), ("B01.050.150",)),
    ("D006801", "Humans", ("Human", "Man"), ("B01.050.150.900.649.313.988.400.112.400.400",)),
    ("D005260", "Female", (), ()),
    (
        "D014947",
        "Wounds and Injuries",
        ("Injury", "Injuries", "Wound", "Wounds", "Trauma", "Traumas"),
        ("C26",),
    ),
]
JOURNALS = ("Journal of hypertension", "Journal of human hypertension", "Thrombosis research")


def make_vocabulary() -> MeshVocabulary:
    """A few real headings."""
    return MeshVocabulary(*zip(*ROWS, strict=True), year=2024)


class TaggerDouble:
    """Gives a descriptor whose name or entry term stands in the text a high score, others a low one.

    Major topics and qualifiers are told of an article whose title says "starred", as by a model that can.

    Args:
        gate: The tagger waits here before each batch, so that a test can fill its queue.
    """

    def __init__(self, gate: threading.Event | None = None):
        self.gate = gate
        self.started = threading.Event()
        self.batches: list[int] = []
        vocabulary = make_vocabulary()
        journals = JournalTable.build(JOURNALS, [np.array([2])] * len(JOURNALS))
        self.processor = SimpleNamespace(
            vocabulary=vocabulary,
            thresholds=Thresholds(0.4, presets={"precision": 0.7, "recall": 0.06}),
            candidates=SimpleNamespace(journals=journals),
            max_title_tokens=100,
            max_abstract_tokens=400,
        )

    def __call__(self, articles, **options):
        self.started.set()
        if self.gate is not None:
            self.gate.wait(PATIENCE)
        self.batches.append(len(articles))
        if any("poison" in article["title"] for article in articles):
            raise RuntimeError("this text breaks the model")
        return [self._tags(article, **options) for article in articles]

    def _tags(self, article, *, top_k, threshold, preset, include, exclude, check_tags, qualifiers, evidence):
        vocabulary, thresholds = self.processor.vocabulary, self.processor.thresholds
        found = [self._tag(article, label, evidence) for label in range(len(vocabulary))]
        found = found if qualifiers else [tag | {"qualifiers": None} for tag in found]
        least = threshold if threshold is not None else thresholds.presets.get(preset, 0.4)
        least = 0.0 if top_k and threshold is None and preset is None else least
        allowed = set(range(len(vocabulary)))
        if include:
            allowed = set(np.concatenate([vocabulary.labels_in(branch) for branch in include]).tolist())
        for branch in exclude or ():
            allowed -= set(vocabulary.labels_in(branch).tolist())
        if not check_tags:
            allowed -= set(vocabulary.check_tags.tolist())
        kept = [tag for label, tag in enumerate(found) if label in allowed and tag["score"] >= least]
        return sorted(kept, key=lambda tag: -tag["score"])[:top_k]

    def _tag(self, article, label, evidence):
        vocabulary = self.processor.vocabulary
        terms = [vocabulary.names[label], *vocabulary.entry_terms[label]]
        pattern = re.compile("|".join(rf"\b{re.escape(term)}\b" for term in terms), re.IGNORECASE)
        hits = [
            (field, match) for field in ("title", "abstract") for match in pattern.finditer(article[field])
        ]
        tag = {
            "ui": vocabulary.uis[label],
            "name": vocabulary.names[label],
            "score": 0.9 - label / 50 if hits else 0.2 - label / 100,
            "tree_numbers": list(vocabulary.tree_numbers[label]),
        }
        if evidence:
            tag["evidence"] = _evidence(hits, article)
        if "starred" not in article["title"].lower():
            return tag
        return tag | _heading(tag, any(field == "title" for field, _ in hits), evidence)


def _heading(tag, major, evidence):
    """What is named in the title is a major topic, and Hypertension then treated with drugs."""
    told = {"major": major, "major_score": 0.8 if major else 0.1, "qualifiers": []}
    if major and tag["name"] == "Hypertension":
        therapy = {"ui": "Q000188", "name": "drug therapy", "score": 0.62, "major": True}
        if evidence:
            words = [{"word": "Amlodipine", "weight": 0.2}]
            therapy["evidence"] = {"carriers": 12, "agreeing": 9, "words": words}
        told["qualifiers"] = [therapy]
    if evidence:
        tag["evidence"]["major"] = {"in_title": major, "carriers": 20, "agreeing": 15}
    return told


def _evidence(hits, article):
    places = [
        {"field": field, "start": match.start(), "end": match.end(), "text": match[0]}
        for field, match in hits
    ]
    # Each word once, wherever it stands, as the model gives them.
    found: dict[str, dict] = {}
    for place in places:
        spot = {key: place[key] for key in ("field", "start", "end")}
        word = found.setdefault(place["text"].lower(), {"word": place["text"], "also": []} | spot)
        if spot["start"] != word["start"] or spot["field"] != word["field"]:
            word["also"].append(spot)
    words = [word | {"weight": 0.5 / number} for number, word in enumerate(found.values(), 1)]
    neighbours = [
        {"pmid": "31452104", "similarity": 0.41, "weight": 0.03},
        {"pmid": "29146535", "similarity": 0.37, "weight": -0.01},
    ]
    return {
        "words": words,
        "against": [{"word": "trial", "weight": -0.07, "field": "title", "start": 0, "end": 1}]
        if hits
        else [],
        "neighbours": neighbours if hits else [],
        "journal": 0.31 if article["journal"] else None,
        "journal_weight": 0.05,
        "term": places[0] if places else None,
        "all_words": sum(word["weight"] for word in words),
        "without_text": 0.1,
    }
