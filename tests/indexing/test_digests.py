"""Digests of articles: saved and divided as one likes, they give the same tables as the articles at once."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny import tiny_articles, tiny_vocabulary

from kenmesh_hf.errors import InputError
from kenmesh_hf.indexing import ArticleDigest, DigestFiles, build_candidates, build_lexicon, build_tables
from kenmesh_hf.modeling.candidates_kenmesh import KenMeSHCandidates
from kenmesh_hf.reading import Article

VOCABULARY = tiny_vocabulary()
LEXICON = build_lexicon(VOCABULARY)
ARTICLES = [
    *tiny_articles(90),
    Article(title="No journal, no year", headings=tiny_articles(1)[0].headings),
    Article(abstract="Two\nnames of a journal", journal="Acta\tnova", nlm_id="77", pmid="9", headings=()),
]


def digest(articles: list[Article]) -> ArticleDigest:
    return ArticleDigest.of(articles, VOCABULARY, LEXICON)


def tensors(candidates: KenMeSHCandidates) -> dict[str, np.ndarray]:
    parts = {
        "index": candidates.index,
        "articles": candidates.articles,
        "journals": candidates.journals,
        "lexicon": candidates.lexicon,
        "words": candidates.associations,
    }
    return {f"{name}.{key}": array for name, part in parts.items() for key, array in part.tensors.items()}


def assert_same(one: KenMeSHCandidates, other: KenMeSHCandidates) -> None:
    first, second = tensors(one), tensors(other)
    assert first.keys() == second.keys()
    for name, array in first.items():
        if name.startswith("words.") and name.endswith("weights"):
            assert np.allclose(array.astype(int), second[name].astype(int), atol=1), name
        else:
            assert np.allclose(array.astype(float), second[name].astype(float), rtol=1e-5), name


def test_a_saved_digest_is_the_same(tmp_path: Path):
    made = digest(ARTICLES)
    made.save(tmp_path / "a.safetensors")
    read = ArticleDigest.load(tmp_path / "a.safetensors")
    assert read.journals == made.journals and read.journals[-1] == ["77", "Acta nova"]
    for name in ("words", "title_words", "hits"):
        for one, other in zip(getattr(read, name), getattr(made, name), strict=True):
            assert np.array_equal(one, other), name
    for name, array in made.articles.tensors.items():
        assert np.array_equal(read.articles.tensors[name], array), name


def test_digests_in_files_give_the_tables_of_all_articles(tmp_path: Path):
    files = []
    for start in range(0, len(ARTICLES), 25):
        files.append(tmp_path / f"{start}.safetensors")
        digest(ARTICLES[start : start + 25]).save(files[-1])
    assert_same(build_tables(DigestFiles(files), VOCABULARY, LEXICON), build_candidates(ARTICLES, VOCABULARY))


def test_each_article_counts_once_wherever_it_comes_again():
    again = [replace(ARTICLES[3], pmid="5555"), replace(ARTICLES[4], title="Other words")]
    parts = [digest(ARTICLES[:50]), digest([*again, *ARTICLES[50:]])]
    assert_same(
        build_tables(parts, VOCABULARY, LEXICON), build_tables([digest(ARTICLES)], VOCABULARY, LEXICON)
    )


def test_some_articles_of_a_digest_are_those_articles():
    chosen = np.array([0, 7, 8, 89])
    some, expected = digest(ARTICLES).select(chosen), digest([ARTICLES[row] for row in chosen])
    assert some.journals == expected.journals
    for name in ("words", "title_words", "hits"):
        for one, other in zip(getattr(some, name), getattr(expected, name), strict=True):
            assert np.array_equal(one, other), name


def test_no_labelled_article_is_told():
    for parts in ([], [digest([])], [digest([Article(title="Nothing known of it")])]):
        with pytest.raises(InputError, match="None of the training articles carries a descriptor"):
            build_tables(parts, VOCABULARY, LEXICON)
