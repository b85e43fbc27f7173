"""NLM's MeSH files enter, a vocabulary and its qualifiers leave; also what a year changed, and look-ups."""

from ..modeling.qualifiers_kenmesh import MeshQualifiers
from ..modeling.vocabulary_kenmesh import MeshVocabulary
from .changes import VocabularyDiff, diff_vocabularies
from .lookup import NameIndex, VocabularyLookup
from .qualifiers import read_qualifiers
from .vocabulary import read_vocabulary, uis_of_terms

__all__ = [
    "MeshQualifiers",
    "MeshVocabulary",
    "NameIndex",
    "VocabularyDiff",
    "VocabularyLookup",
    "diff_vocabularies",
    "read_qualifiers",
    "read_vocabulary",
    "uis_of_terms",
]
