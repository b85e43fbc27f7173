"""From files to a prepared dataset: what is in it, what is redone, what is refused."""

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from datasets import load_dataset
from safetensors.numpy import load_file
from tiny import TEST, TRAIN, VALIDATION, tiny_articles, tiny_vocabulary

from kenmesh_hf.errors import InputError
from kenmesh_hf.preparing import PrepareOptions, load_prepared, prepare
from kenmesh_hf.preparing import preparation as module
from kenmesh_hf.preparing.articles import list_inputs, merge, read_file
from kenmesh_hf.reading import Article, Heading, Qualifier, read_articles, write_articles
from kenmesh_hf.words import WordVectors


def article_texts(folder: Path, split: str) -> set[str]:
    files = sorted((folder / "articles").glob(f"{split}-*.jsonl.gz"))
    return {article.abstract for article in read_articles(files)}


def test_loads_with_plain_load_dataset(tiny_prepared: Path) -> None:
    loaded = load_dataset(str(tiny_prepared))
    assert {split: len(rows) for split, rows in loaded.items()} == {
        "train": TRAIN,
        "validation": VALIDATION,
        "test": TEST,
    }
    row = loaded["train"][0]
    assert set(row) >= {"pmid", "journal", "year", "title_input_ids", "input_ids", "labels", "candidate_ids"}
    assert all(0 <= label < len(tiny_vocabulary()) for label in row["labels"] + row["candidate_ids"])


def test_newest_articles_are_held_out(tiny_prepared: Path) -> None:
    loaded = load_dataset(str(tiny_prepared))
    pmids = {split: [int(pmid) for pmid in rows["pmid"]] for split, rows in loaded.items()}
    assert max(pmids["train"]) < min(pmids["validation"])
    assert max(pmids["validation"]) < min(pmids["test"])


def test_report_for_people_and_programs(tiny_prepared: Path) -> None:
    report = json.loads((tiny_prepared / "report.json").read_text(encoding="utf-8"))
    text = (tiny_prepared / "report.md").read_text(encoding="utf-8")
    assert report["splits"]["train"]["articles"] == TRAIN
    assert report["leak_check"] == {
        "indexed": TRAIN,
        "held_out_checked": VALIDATION + TEST,
        "held_out_in_index": 0,
    }
    assert 0 < report["bytes_per_candidate"]["id"] <= 4
    for split in ("train", "validation", "test"):
        sources = report["candidates"][split]["sources"]
        assert sources["together"]["recall"] >= max(sources[name]["recall"] for name in ("journal", "terms"))
        assert split in text
    assert set(report["seconds"]) == {
        "read",
        "divide",
        "words",
        "word vectors",
        "digests",
        "candidates",
        "rows",
        "measure",
    }
    for name in ("label_frequency.png", "candidate_recall.png"):
        assert (tiny_prepared / name).read_bytes().startswith(b"\x89PNG")


def test_killed_run_goes_on_and_gives_the_same(
    tiny_sources: dict, tiny_prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    make_rows = module.make_rows

    def dies_at_the_second_file(folder, fingerprint, source, target):
        if len(done) == 1:
            target.with_name(target.name + ".unfinished").write_bytes(b"half a file")
            raise KeyboardInterrupt
        done.append(target.name)
        return make_rows(folder, fingerprint, source, target)

    options = PrepareOptions(out=str(tmp_path), **tiny_sources)
    monkeypatch.setattr(module, "make_rows", dies_at_the_second_file)
    with pytest.raises(KeyboardInterrupt):
        prepare(options, progress=False)
    assert not (tmp_path / "report.json").exists()

    again: list[str] = []
    monkeypatch.setattr(module, "make_rows", lambda *job: (again.append(job[3].name), make_rows(*job))[1])
    monkeypatch.setattr(module, "build_tables", None)
    monkeypatch.setattr(module, "train_word_vectors", None)
    prepare(options, progress=False)
    assert done[0] not in again and len(again) == 3
    for path in sorted((tiny_prepared / "data").iterdir()):
        assert path.read_bytes() == (tmp_path / "data" / path.name).read_bytes()
    assert not list(tmp_path.rglob("*.unfinished"))


def test_changed_option_redoes_what_depends_on_it(
    tiny_sources: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tiny_sources | {"word_vectors": None, "embedding_size": 8, "vector_epochs": 1}
    prepare(PrepareOptions(out=str(tmp_path), **sources), progress=False)
    vectors = (tmp_path / "word_vectors.safetensors").read_bytes()
    assert load_file(tmp_path / "word_vectors.safetensors")["vectors"].shape[1] == 8
    before = load_dataset(str(tmp_path))["test"]["candidate_ids"][0]
    monkeypatch.setattr(module, "train_word_vectors", None)
    fewer = PrepareOptions(out=str(tmp_path), **(sources | {"max_candidates": 5}))
    prepare(fewer, progress=False)
    assert (tmp_path / "word_vectors.safetensors").read_bytes() == vectors
    assert len(before) > 5
    # Not the rows that `load_dataset` has in its cache from before.
    assert {len(row) for row in load_dataset(str(tmp_path))["test"]["candidate_ids"]} == {5}


def test_given_validation_is_used_as_it_is_and_leaves_the_training_set(
    tiny_sources: dict, tmp_path: Path
) -> None:
    articles = tiny_articles(TRAIN + VALIDATION + TEST)
    copy = Article(articles[5].title.upper(), articles[5].abstract, "999999", headings=articles[5].headings)
    given = [*tiny_articles(20, seed=7, first_pmid=5001), articles[0], copy]
    write_articles(given, tmp_path / "given.jsonl")
    options = tiny_sources | {"validation": str(tmp_path / "given.jsonl")}
    report = prepare(PrepareOptions(out=str(tmp_path / "out"), **options), progress=False)
    assert report["splits"].keys() == {"train", "validation"}
    assert report["splits"]["validation"]["articles"] == 22
    assert report["splits"]["train"]["articles"] == TRAIN + VALIDATION + TEST - 2
    assert report["left_out"] == {"also in the validation or test set": 2}
    assert not article_texts(tmp_path / "out", "train") & {article.abstract for article in given}


def test_only_usable_articles_train(tiny_sources: dict, tmp_path: Path) -> None:
    articles = tiny_articles(60)
    articles[0].headings = ()
    articles[1].indexing_method = "Automated"
    articles[2].abstract = ""
    write_articles(articles, tmp_path / "a.jsonl")
    options = tiny_sources | {"articles": [str(tmp_path / "a.jsonl")], "validation_size": 5, "test_size": 5}
    report = prepare(PrepareOptions(out=str(tmp_path / "out"), **options), progress=False)
    assert report["left_out"] == {
        "no MeSH headings": 1,
        "headings chosen by a program": 1,
        "no abstract": 1,
    }
    assert report["splits"]["train"]["articles"] == 60 - 3 - 10
    options |= {"title_only": True, "human_only": False}
    report = prepare(PrepareOptions(out=str(tmp_path / "out"), **options), progress=False)
    assert report["splits"]["train"]["articles"] == 60 - 1 - 10
    assert report["splits"]["train"]["without_abstract"] == 1


def test_word_vectors_of_a_file(tiny_sources: dict, tmp_path: Path) -> None:
    word = tiny_vocabulary().names[0].split()[0].lower()
    (tmp_path / "vectors.vec").write_text(f"1 4\n{word} 1 2 3 4\n", encoding="utf-8")
    options = tiny_sources | {"word_vectors": str(tmp_path / "vectors.vec")}
    report = prepare(PrepareOptions(out=str(tmp_path / "out"), **options), progress=False)
    vectors = load_file(tmp_path / "out" / "word_vectors.safetensors")["vectors"]
    assert report["words"]["dim"] == vectors.shape[1] == 4
    assert [1, 2, 3, 4] in vectors.tolist()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mesh": ""}, "MeSH file"),
        ({"articles": []}, "no articles"),
        ({"articles": ["nowhere.jsonl"]}, "nowhere.jsonl does not exist"),
        ({"pmc": ["."]}, "--pubmed"),
        ({"num_proc": 0}, "num-proc"),
        ({"sources": ["gossip"]}, "gossip"),
        ({"test_size": 5000}, "too few"),
        ({"recent": 2100}, "2100 or later"),
    ],
)
def test_refuses(tiny_sources: dict, tmp_path: Path, changes: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        prepare(PrepareOptions(**({"out": str(tmp_path)} | tiny_sources | changes)), progress=False)


def test_every_option_has_a_description() -> None:
    assert all(field.metadata["help"] for field in fields(PrepareOptions))


def test_newest_record_of_a_pmid_counts(tmp_path: Path) -> None:
    heading = (Heading("D900000"),)
    old = [
        Article("Old", "Text one", "1", headings=heading),
        Article("Two", "Text two", "2", headings=heading),
    ]
    new = [Article("New", "Text one again", "1", headings=heading), Article("Two", "Text", "2")]
    for name, articles in (("pubmed24n0001.jsonl", old), ("pubmed24n0002.jsonl", new)):
        write_articles(articles, tmp_path / name)
    read = []
    for path in list_inputs([str(tmp_path)]):
        read.append(tmp_path / "read" / f"{path.name}.gz")
        read_file(str(path), read[-1], human_only=True, strict=False, mesh=("", None))
    # The newest record of PMID 2 has no headings, so the older one must not come back.
    assert [article.title for article in merge(read)] == ["New"]


def test_only_files_that_may_hold_citations_are_read(tmp_path: Path) -> None:
    names = (
        "pubmed26n0001.xml.gz",
        "pubmed26n0001.xml.gz.md5",
        "pubmed26n0002.xml.gz",
        ".hidden.jsonl",
        "a.jsonl",
    )
    for name in names:
        (tmp_path / name).touch()
    wanted = ["pubmed26n0002.xml.gz", "pubmed26n0001.xml.gz", "a.jsonl"]
    assert [path.name for path in list_inputs([str(tmp_path)])] == wanted
    named = [str(tmp_path / name) for name in names if not name.startswith(".")]
    assert [path.name for path in list_inputs(named)] == wanted


def test_headings_given_by_name_only_are_looked_up(tiny_sources: dict, tmp_path: Path) -> None:
    vocabulary, blood = tiny_vocabulary(), (Qualifier("Q000097", "blood", True),)
    named = [
        replace(
            article,
            headings=tuple(
                Heading("", vocabulary.names[vocabulary.get(ui)], True, blood) for ui in article.descriptors
            ),
        )
        for article in tiny_articles(60)
    ]
    held_out = replace(
        named[-1], pmid="9", title="Another", headings=(*named[-1].headings, Heading("", "No such heading"))
    )
    write_articles(named, tmp_path / "named.jsonl")
    write_articles([held_out], tmp_path / "held_out.jsonl")
    given = {"articles": [str(tmp_path / "named.jsonl")], "validation": str(tmp_path / "held_out.jsonl")}
    prepare(PrepareOptions(**(tiny_sources | given), out=str(tmp_path / "out")), progress=False)
    prepared = load_prepared(tmp_path / "out")
    uis = prepared.processor.vocabulary.uis
    expected = {article.pmid: set(article.descriptors) for article in tiny_articles(60)}
    assert len(prepared.train) > 50
    assert all({uis[label] for label in row["labels"]} == expected[row["pmid"]] for row in prepared.train)
    assert np.asarray(prepared.validation["unknown_labels"]).tolist() == [1]
    kept = [
        heading for article in read_articles(tmp_path / "out" / "articles") for heading in article.headings
    ]
    assert kept and all(heading.major and heading.qualifiers == blood for heading in kept if heading.ui)


def test_only_citations_of_pmc_articles(tiny_sources: dict, tmp_path: Path) -> None:
    articles = tiny_articles(60)
    write_articles(articles, tmp_path / "citations.jsonl")
    bioc = "".join(
        f"<document><id>PMC{i}</id><passage><infon key='article-id_pmid'>{article.pmid}</infon>"
        f"<infon key='section_type'>TITLE</infon><infon key='type'>front</infon><offset>0</offset>"
        f"<text>{article.title}</text></passage></document>"
        for i, article in enumerate(articles[:45])
    )
    (tmp_path / "pmc.xml").write_text(
        f"<collection><source>PMC</source>{bioc}</collection>", encoding="utf-8"
    )
    changes = {
        "articles": [],
        "pubmed": [str(tmp_path / "citations.jsonl")],
        "pmc": [str(tmp_path / "pmc.xml")],
    }
    options = tiny_sources | changes | {"validation_size": 5, "test_size": 5}
    report = prepare(PrepareOptions(out=str(tmp_path / "out"), **options), progress=False)
    assert report["splits"]["train"]["articles"] == 35
    newest = load_dataset(str(tmp_path / "out"))["test"]["pmid"]
    assert sorted(map(int, newest)) == [41, 42, 43, 44, 45]


def test_text_files_teach_word_vectors_but_no_held_out_text(
    tiny_sources: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def listen(texts, **settings):
        seen.extend(texts)
        return WordVectors(["patients"], np.ones((1, 4), np.float32))

    held_out = tiny_articles(TRAIN + VALIDATION + TEST)[-1]
    extra = Article("Unlabelled", "Further text", "8888")
    write_articles([held_out, extra], tmp_path / "texts.jsonl")
    monkeypatch.setattr(module, "train_word_vectors", listen)
    options = tiny_sources | {"word_vectors": None, "text": [str(tmp_path / "texts.jsonl")]}
    prepare(PrepareOptions(out=str(tmp_path / "out"), **options), progress=False)
    assert seen[-1] == "Unlabelled Further text"
    assert len(seen) == TRAIN + 1
    assert not any(held_out.abstract in text for text in seen)
