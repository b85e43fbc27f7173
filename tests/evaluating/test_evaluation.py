"""`kenmesh evaluate`: honest figures, whatever the model lacks and whatever the articles hold."""

import csv
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from tiny import tiny_articles, tiny_vocabulary
from tiny_model import TRAINING, UNSEEN

from kenmesh_hf import KenMeSHProcessor, MeSHIndexingPipeline
from kenmesh_hf.commands import main
from kenmesh_hf.errors import InputError
from kenmesh_hf.evaluating import evaluate, score_articles
from kenmesh_hf.evaluating.evaluation import gold_labels
from kenmesh_hf.indexing import build_candidates
from kenmesh_hf.reading import Article, Heading, Qualifier, write_articles
from kenmesh_hf.sharing import read_results

GOLD = sum(len(article.descriptors) for article in UNSEEN)
FIGURES = "MiF MiP MiR EBF EBP EBR P@1 P@5 P@10 R@10 candidate_recall candidate_size articles".split()

MORE = ("major_", "qualifier_")


@pytest.fixture
def run(capsys, tiny_model, tmp_path):
    """Runs `kenmesh evaluate --json` on articles."""

    def run(articles, *options, model=tiny_model) -> dict:
        write_articles(articles, tmp_path / "gold.jsonl")
        arguments = ["--model", model, "--articles", tmp_path / "gold.jsonl", "--json", "--quiet", *options]
        assert main(["evaluate", *map(str, arguments)]) == 0
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    return run


def with_headings(article: Article, *headings: Heading) -> Article:
    return replace(article, headings=(*article.headings, *headings))


def test_last_line_has_every_figure(run):
    result = run(UNSEEN)
    assert set(FIGURES) <= set(result)
    assert result["articles"] == 40 and isinstance(result["articles"], int)
    assert 0.7 < result["MiF"] < 1 and 0.9 < result["candidate_recall"] <= 1
    assert {row["name"] for row in result["check_tags"]} == {"Humans", "Animals"}
    assert result["by_category"].keys() == {"B", "C"}
    assert sum(group["gold"] for group in result["by_frequency"].values()) == GOLD


def test_figures_are_those_of_the_tags(run, tiny_tagger):
    rows = [{"title": a.title, "abstract": a.abstract, "journal": a.journal, "pmid": a.pmid} for a in UNSEEN]
    for options, choice in (
        ([], {}),
        (["--threshold", 0.8], {"threshold": 0.8}),
        (["--preset", "recall"], {"preset": "recall"}),
    ):
        found = [{tag["ui"] for tag in tags} for tags in tiny_tagger(rows, **choice)]
        hits = sum(len(tags & set(article.descriptors)) for tags, article in zip(found, UNSEEN, strict=True))
        result = run(UNSEEN, *options)
        assert result["MiP"] == pytest.approx(hits / sum(map(len, found)))
        assert result["MiR"] == pytest.approx(hits / GOLD)


def test_major_topics_and_qualifiers_are_scored_where_tags_and_gold_have_them(tiny_tagger):
    """Tags whose every topic is major and has the same qualifier, against gold in which every other has."""

    class Telling(MeSHIndexingPipeline):
        def _tag(self, label, score):
            topic = label < 24
            aspects = [{"ui": "Q000097", "name": "blood", "score": 0.6, "major": False}] if topic else []
            return super()._tag(label, score) | {"major": topic, "major_score": 0.7, "qualifiers": aspects}

    def known(article: Article) -> Article:
        first, *rest = article.headings
        aspect = (Qualifier("", "blood", True), Qualifier("Q000188", "drug therapy"))
        return replace(article, headings=(replace(first, ui="", major=True, qualifiers=aspect), *rest))

    tagger = Telling(model=tiny_tagger.model, processor=tiny_tagger.processor)
    gold = [known(article) for article in UNSEEN[::2]] + UNSEEN[1::2]
    rows = [article.as_input() for article in UNSEEN[::2]]
    found = [{tag["ui"] for tag in tags if tag["major"]} for tags in tagger(rows, threshold=0.8)]
    hits = sum(article.headings[0].ui in tags for article, tags in zip(UNSEEN[::2], found, strict=True))
    result = evaluate(tagger, gold, threshold=0.8, progress=False)
    assert result["major_articles"] == result["qualifier_articles"] == 20
    assert result["major_MiP"] == result["qualifier_MiP"] == pytest.approx(hits / sum(map(len, found)))
    assert result["major_MiR"] == pytest.approx(hits / 20)
    assert result["qualifier_MiR"] == pytest.approx(hits / 40)
    for silent, articles in ((tiny_tagger, gold), (tagger, UNSEEN)):
        assert not [name for name in evaluate(silent, articles, progress=False) if name.startswith(MORE)]


def test_descriptors_that_the_model_does_not_know_are_missed(run):
    known = run(UNSEEN)
    result = run([with_headings(article, Heading("D999999", "New")) for article in UNSEEN])
    for name in ("MiR", "candidate_recall"):
        assert result[name] == pytest.approx(known[name] * GOLD / (GOLD + len(UNSEEN)))
    assert result["MiP"] == known["MiP"]


def test_names_are_looked_up_and_names_not_found_are_missed():
    vocabulary = tiny_vocabulary()
    term = vocabulary.entry_terms[3][0]
    named = (Heading("", "HUMANS"), Heading("", term.title()), Heading("D900003"), Heading("", "Unheard Of"))
    gold = gold_labels([Article(headings=named), Article(headings=named[3:])], vocabulary)
    assert gold.label_ids.tolist() == [3, 24]
    assert gold.unknown.tolist() == [1, 1]


def test_articles_without_descriptors_are_passed_over(run, tiny_tagger):
    assert run([*UNSEEN, Article("No headings", "yet")])["articles"] == 40
    with pytest.raises(InputError, match="no labelled article"):
        evaluate(tiny_tagger, [Article("No headings")], progress=False)


def test_an_article_in_the_index_does_not_meet_itself(tiny_tagger):
    """A label that one indexed article alone carries must not be proposed for it."""
    rare = tiny_vocabulary().label_of("D900023")
    others = [article for article in TRAINING if "D900023" not in article.descriptors]
    lone = with_headings(
        replace(others[0], headings=tuple(h for h in others[0].headings if h.ui != "D900023")),
        Heading("D900023"),
    )
    processor = tiny_tagger.processor
    tagger = MeSHIndexingPipeline(
        model=tiny_tagger.model,
        processor=KenMeSHProcessor(
            processor.tokenizer,
            candidates=build_candidates([lone, *others[1:]], processor.vocabulary),
            vocabulary=processor.vocabulary,
        ),
    )
    stranger = replace(lone, pmid="99999", title=lone.title + " And more.")
    nameless = replace(lone, pmid=None)
    scores = score_articles(tagger, [lone, nameless, stranger], progress=False)
    offsets, labels = scores.candidates.offsets, scores.candidates.label_ids
    proposed = [set(labels[start:end].tolist()) for start, end in zip(offsets, offsets[1:], strict=False)]
    assert rare not in proposed[0] and rare not in proposed[1]
    # To anybody else the same article is a neighbour like any other.
    assert rare in proposed[2]


def test_a_model_without_index_and_thresholds_is_scored(run, tiny_model, tmp_path):
    folder = tmp_path / "bare"
    shutil.copytree(tiny_model, folder)
    for path in [
        *folder.glob("candidates.*"),
        *folder.glob("neighbours.*"),
        folder / "thresholds.safetensors",
    ]:
        path.unlink()
    (folder / "checksums.json").unlink()
    result = run([with_headings(article, Heading("D999999")) for article in UNSEEN], model=folder)
    assert set(FIGURES) <= set(result)
    assert result["candidate_size"] == 26
    assert result["candidate_recall"] == pytest.approx(GOLD / (GOLD + len(UNSEEN)))
    assert "by_frequency" not in result


def test_a_table_of_labels_and_plots_are_written(run, tmp_path):
    run(UNSEEN, "--out", tmp_path / "figures")
    written = {path.name for path in (tmp_path / "figures").iterdir()}
    assert written == {"labels.csv", "by_frequency.png", "by_category.png", "precision_recall.png"}
    with open(tmp_path / "figures" / "labels.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["gold"]) for row in rows) == GOLD
    assert rows[0]["name"] in ("Humans", "Animals") and int(rows[0]["training"]) > 0


def test_figures_can_be_kept_with_the_model(run, tiny_model, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    result = run(UNSEEN, "--record", "Unseen articles", model=folder)
    [kept] = read_results(folder)["evaluations"]
    assert kept["name"] == "Unseen articles" and kept["metrics"]["MiF"] == result["MiF"]


def test_tables_for_people(capsys, tiny_model, tmp_path):
    write_articles(UNSEEN, tmp_path / "gold.ris")
    arguments = ["--model", str(tiny_model), "--articles", str(tmp_path / "gold.ris"), "--quiet"]
    assert main(["evaluate", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["metric", "value"]
    assert any(line.startswith("Humans") for line in lines)
    assert [line.split()[1] for line in lines if line.startswith("articles")] == ["40"]


def test_batches_change_nothing(tiny_tagger):
    articles = tiny_articles(30, seed=4, first_pmid=8000)
    one, many = (evaluate(tiny_tagger, articles, batch_size=size, progress=False) for size in (1, 32))
    assert [one[name] for name in FIGURES] == pytest.approx([many[name] for name in FIGURES], abs=1e-6)
    assert np.isfinite([one[name] for name in FIGURES]).all()
