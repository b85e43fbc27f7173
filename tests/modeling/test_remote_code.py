"""A saved model where kenmesh_hf is not installed: its own code gives the same numbers, offline."""

import pytest
from tiny_model import UNSEEN
from without_package import run_without_package


@pytest.mark.parametrize("kind", ["tiny", "encoder"])
def test_remote_code_gives_the_same_numbers_without_the_package(kind, request, tmp_path):
    model, tagger = (request.getfixturevalue(f"{kind}_{part}") for part in ("model", "tagger"))
    rows = [
        {"title": article.title, "abstract": article.abstract, "journal": article.journal}
        for article in UNSEEN[:6]
    ]
    tags, logits, modules, words = run_without_package(model, rows, tmp_path)
    assert all(module.startswith("transformers_modules.") for module in modules)
    for theirs, ours in zip(tags, tagger(rows, top_k=6, evidence=True), strict=True):
        assert [tag["ui"] for tag in theirs] == [tag["ui"] for tag in ours]
        assert [tag["score"] for tag in theirs] == pytest.approx([tag["score"] for tag in ours], abs=1e-6)
        for one, other in zip(theirs, ours, strict=True):
            neighbours = [tag["evidence"]["neighbours"] for tag in (one, other)]
            for here, there in zip(*neighbours, strict=True):
                assert here == pytest.approx(there, abs=1e-6)
    batch = tagger.processor(**{name: [row[name] for row in rows] for name in rows[0]})
    expected = tagger.model(**batch).logits.detach().flatten().tolist()
    assert [value for row in logits for value in row] == pytest.approx(expected, abs=1e-5)
    assert words == tagger.processor.tokenizer.tokenize(rows[0]["title"])
