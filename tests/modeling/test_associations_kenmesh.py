"""What words alone say: a word that determines a label gives it the highest prediction."""

import numpy as np
import pytest

from kenmesh_hf.indexing import build_associations
from kenmesh_hf.modeling.associations_kenmesh import Readings, WordAssociations
from kenmesh_hf.modeling.lexicon_kenmesh import Lexicon
from kenmesh_hf.modeling.terms_kenmesh import hash_words
from kenmesh_hf.modeling.word_counts_kenmesh import count_terms

WORDS = ("zinc", "lung", "frog", "milk")
LABELS = [np.array([number % 4]) for number in range(40)]
NO_JOURNAL = -1


def read(
    titles: list[str], abstracts: list[str] | None = None, journals: list[int] | None = None
) -> Readings:
    lexicon = Lexicon.build(["Named Thing"], [()])
    words = hash_words(titles), hash_words(abstracts or [""] * len(titles))
    hits = lexicon.hits(*words)
    numbers = np.array(journals or [NO_JOURNAL] * len(titles))
    return Readings.of(count_terms(*words), count_terms(words[0]), hits, lexicon.labels[hits.terms], numbers)


def some(titles: list[str], *more) -> list[Readings]:
    """The same in one part."""
    return [read(titles, *more)]


@pytest.fixture(scope="module")
def associations() -> WordAssociations:
    return build_associations(some([f"{WORDS[n % 4]} noise{n % 5}" for n in range(40)]), LABELS, 6)


def predict(associations: WordAssociations, *texts: str, own: tuple[int, ...] = (), **more) -> np.ndarray:
    inputs = associations.inputs(read(list(texts), **more))
    return np.array([associations.predict(inputs, row, 6, own) for row in range(len(texts))])


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


def test_a_journal_tells_its_labels_without_any_word():
    journals = [number % 4 for number in range(40)]
    fitted = build_associations(some(["noise"] * 40, None, journals), LABELS, 6)
    predicted = predict(fitted, "", "", "", "", "", journals=[0, 1, 2, 3, 7])
    assert predicted[:4].argmax(1).tolist() == [0, 1, 2, 3]
    assert not predicted[4].any()


def test_a_word_of_the_title_says_more_than_in_the_abstract():
    titles = ["zinc" if number % 2 else "lung" for number in range(40)]
    abstracts = ["lung" if number % 2 else "zinc" for number in range(40)]
    fitted = build_associations(some(titles, abstracts), [np.array([number % 2]) for number in range(40)], 6)
    predicted = predict(fitted, "zinc", "lung", abstracts=["lung", "zinc"])
    assert predicted.argmax(1).tolist() == [1, 0]


def test_important_articles_decide_where_articles_disagree():
    labels = [np.array([number // 20]) for number in range(40)]
    importance = np.where(np.arange(40) < 20, 1.0, 4.0)
    fitted = build_associations(some(["zinc"] * 40), labels, 6, importance)
    old, new = predict(fitted, "zinc")[0, :2]
    assert new > 2 * old


def test_a_training_article_gets_what_others_predict():
    alone = np.array([5])
    texts = [f"{WORDS[n % 4]} noise{n % 5}" for n in range(40)] + ["zinc"] * 2
    fitted = build_associations(some(texts), [*LABELS, alone, alone], 6)
    own = predict(fitted, "zinc", own=(40,))[0]
    assert own.argmax() == 0 and own[5] < predict(fitted, "zinc")[0, 5] + 1e-3


def test_an_article_in_several_parts_gets_the_least_that_any_predicts():
    texts = [f"{WORDS[n % 4]} noise{n % 5}" for n in range(40)]
    fitted = build_associations(some(texts), LABELS, 6)
    first, second = (int(np.flatnonzero(fitted.part_of == part)[0]) for part in (0, 1))
    own = (first,), (second,), (first, second)
    one, other, both = (predict(fitted, "zinc", own=numbers) for numbers in own)
    assert np.array_equal(both, np.minimum(one, other))


def test_an_article_that_joined_later_gets_what_any_other_gets(associations):
    assert np.array_equal(predict(associations, "zinc", own=(40,)), predict(associations, "zinc"))


def test_fewer_weights_of_the_parts_still_tell(associations):
    slim = associations.slim(4)
    assert all(len(part.labels) == 4 for part in slim.parts)
    assert np.array_equal(predict(slim, *WORDS), predict(associations, *WORDS))


def test_articles_in_parts_give_what_all_at_once_give(associations, monkeypatch):
    monkeypatch.setattr("kenmesh_hf.indexing.associations._ARTICLES", 7)
    texts = [f"{WORDS[n % 4]} noise{n % 5}" for n in range(40)]
    parts = build_associations([read(texts[:11]), read(texts[11:])], LABELS, 6)
    assert np.allclose(predict(parts, *WORDS), predict(associations, *WORDS), atol=1e-3)
