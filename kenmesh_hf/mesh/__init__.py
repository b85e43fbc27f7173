"""NLM's MeSH files enter, a vocabulary leaves; also what a year changed, and look-ups by name or place."""

from ..modeling.vocabulary_kenmesh import MeshVocabulary
from .changes import VocabularyDiff, diff_vocabularies
from .lookup import NameIndex, VocabularyLookup
from .vocabulary import read_vocabulary, uis_of_terms

__all__ = [
    "MeshVocabulary",
    "NameIndex",
    "VocabularyDiff",
    "VocabularyLookup",
    "diff_vocabularies",
    "read_vocabulary",
    "uis_of_terms",
]
