"""What words alone say: a word that determines a label gives it the highest prediction."""

import numpy as np
import pytest

from kenmesh_hf.associations import build_associations
from kenmesh_hf.modeling.associations_kenmesh import WordAssociations
from kenmesh_hf.modeling.lexicon_kenmesh import Hits, Lexicon
from kenmesh_hf.modeling.neighbours_kenmesh import TermCounts, count_terms
from kenmesh_hf.modeling.terms_kenmesh import hash_words

WORDS = ("zinc", "lung", "frog", "milk")
LABELS = [np.array([number % 4]) for number in range(40)]


def read(texts: list[str]) -> tuple[TermCounts, Hits, np.ndarray]:
    lexicon = Lexicon.build(["Named Thing"], [()])
    words = hash_words(texts), hash_words([""] * len(texts))
    hits = lexicon.hits(*words)
    return count_terms(*words), hits, lexicon.labels[hits.terms]


@pytest.fixture(scope="module")
def associations() -> WordAssociations:
    return build_associations(*read([f"{WORDS[n % 4]} noise{n % 5}" for n in range(40)]), LABELS, 6)


def predict(associations: WordAssociations, *texts: str) -> np.ndarray:
    inputs = associations.inputs(*read(list(texts)))
    return np.array([associations.predict(inputs, row, 6) for row in range(len(texts))])


def test_a_word_that_determines_a_label_predicts_it(associations):
    predicted = predict(associations, *WORDS)
    assert predicted.argmax(1).tolist() == [0, 1, 2, 3]
    assert np.all(np.sort(predicted, 1)[:, -1] > 2 * np.sort(predicted, 1)[:, -2])
    assert not predicted[:, 4:].any()


def test_unknown_words_and_empty_texts_tell_the_labels_alike(associations):
    predicted = predict(associations, "", "unheard of")
    assert np.array_equal(predicted[0], predicted[1])
    assert np.isfinite(predicted).all() and np.ptp(predicted[0, :4]) < 0.05


def test_stored_arrays_predict_the_same(associations):
    again = WordAssociations({name: array.copy() for name, array in associations.tensors.items()})
    assert np.array_equal(predict(again, *WORDS), predict(associations, *WORDS))
