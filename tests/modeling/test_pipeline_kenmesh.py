"""`pipeline("mesh-indexing")`: every kind of input, every option, and reasons that point into the text."""

import numpy as np
import pytest
from datasets import Dataset
from tiny_model import UNSEEN
from transformers import AutoModel, AutoProcessor, pipeline
from transformers.pipelines.pt_utils import KeyDataset

import kenmesh_hf
from kenmesh_hf import KenMeSHForMeSHIndexing, KenMeSHProcessor, MeSHIndexingPipeline
from kenmesh_hf.errors import InputError
from kenmesh_hf.modeling.pipeline_kenmesh import as_article, map_by_length

ROWS = [
    {"title": article.title, "abstract": article.abstract, "journal": article.journal, "pmid": article.pmid}
    for article in UNSEEN
]
ROW = ROWS[0]


def scores(tags: list[dict]) -> dict[str, float]:
    return {tag["ui"]: tag["score"] for tag in tags}


def close(tags: list[dict]) -> object:
    """The same tags, and scores but for float error."""
    return pytest.approx(scores(tags), abs=1e-5)


def uis(tags: list[dict]) -> list[str]:
    return [tag["ui"] for tag in tags]


def test_a_dict_gives_a_list_of_tags(tiny_tagger):
    tags = tiny_tagger(ROW)
    assert len(set(uis(tags)) & set(UNSEEN[0].descriptors)) >= 3
    vocabulary = tiny_tagger.processor.vocabulary
    for tag in tags:
        label = vocabulary.label_of(tag["ui"])
        assert tag["name"] == vocabulary.names[label]
        assert tag["tree_numbers"] == list(vocabulary.tree_numbers[label])
        assert type(tag["score"]) is float and 0 < tag["score"] <= 1
    assert list(scores(tags).values()) == sorted(scores(tags).values(), reverse=True)


def test_a_string_is_an_abstract_and_lines_are_title_and_abstract(tiny_tagger):
    assert tiny_tagger(ROW["abstract"]) == tiny_tagger({"abstract": ROW["abstract"]})
    both = {name: ROW[name] for name in ("title", "abstract")}
    assert tiny_tagger(f"{ROW['title']}\n{ROW['abstract']}") == tiny_tagger(both)


def test_lists_generators_and_columns(tiny_tagger):
    texts = [row["abstract"] for row in ROWS[:10]]
    expected = [close(tags) for tags in tiny_tagger(texts)]
    assert [scores(tiny_tagger(text)) for text in texts] == expected
    generated = tiny_tagger(text for text in texts)
    assert not isinstance(generated, list)
    assert [scores(tags) for tags in generated] == expected
    data = Dataset.from_list(ROWS[:10])
    for column in (data["abstract"], KeyDataset(data, "abstract"), tuple(texts), np.array(texts)):
        assert [scores(tags) for tags in tiny_tagger(column)] == expected
    assert [uis(tags) for tags in tiny_tagger(data)] == [uis(tags) for tags in tiny_tagger(ROWS[:10])]
    assert tiny_tagger([]) == []


def test_a_generator_is_read_as_tags_are_taken(tiny_tagger):
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield ROW

    tags = tiny_tagger(endless(), batch_size=2)
    assert uis(next(tags)) == uis(next(tags))
    assert len(taken) < 100


@pytest.mark.parametrize("size", [3, 32])
def test_batches_change_nothing_and_keep_the_order(tiny_tagger, size):
    rows = [*ROWS, {"title": "babake"}, {"abstract": ""}, {"title": "", "journal": "Sopeti Letters"}]
    one = tiny_tagger(rows, batch_size=1, top_k=26)
    many = tiny_tagger(rows, batch_size=size, top_k=26)
    assert [scores(tags) for tags in many] == [close(tags) for tags in one]


def test_top_k_takes_the_best_whatever_their_score(tiny_tagger):
    ten = tiny_tagger(ROW, top_k=10)
    assert len(ten) == 10 and ten[-1]["score"] < 0.1
    assert scores(tiny_tagger(ROW, top_k=3)) == close(ten[:3])
    assert len(tiny_tagger(ROW, top_k=10, threshold=0.9)) == sum(tag["score"] >= 0.9 for tag in ten)


def test_thresholds_cut_where_they_say(tiny_tagger):
    everything = tiny_tagger(ROWS, threshold=0)
    own = dict(
        zip(tiny_tagger.processor.vocabulary.uis, tiny_tagger.processor.thresholds.per_label, strict=True)
    )
    presets = tiny_tagger.processor.thresholds.presets
    for options, least in (
        ({}, own),
        ({"threshold": 0.8}, dict.fromkeys(own, 0.8)),
        ({"preset": "precision"}, dict.fromkeys(own, presets["precision"])),
        ({"preset": "recall"}, dict.fromkeys(own, presets["recall"])),
    ):
        expected = [[tag["ui"] for tag in tags if tag["score"] >= least[tag["ui"]]] for tags in everything]
        assert [uis(tags) for tags in tiny_tagger(ROWS, **options)] == expected


def test_a_threshold_equal_to_a_score_lets_it_in(tiny_tagger):
    for tag in tiny_tagger(ROW, top_k=5):
        assert tag["ui"] in uis(tiny_tagger(ROW, threshold=tag["score"]))


def test_labels_that_were_never_scored_are_no_tags(tiny_tagger):
    [row] = tiny_tagger.processor.encode(**ROW)
    assert len(tiny_tagger(ROW, threshold=0)) == len(row["candidate_ids"])


def test_include_and_exclude_by_descriptor_and_branch(tiny_tagger):
    everything = tiny_tagger(ROWS, top_k=26)
    branch = [[tag["ui"] for tag in tags if tag["tree_numbers"][0].startswith("C01")] for tags in everything]
    assert [uis(tags) for tags in tiny_tagger(ROWS, top_k=26, include="C01")] == branch
    # D900000 stands at C01, so it means the same.
    assert [uis(tags) for tags in tiny_tagger(ROWS, top_k=26, include=["D900000"])] == branch
    rest = [[ui for ui in uis(tags) if ui not in row] for tags, row in zip(everything, branch, strict=True)]
    assert [uis(tags) for tags in tiny_tagger(ROWS, top_k=26, exclude=["C01"])] == rest
    one = tiny_tagger(ROWS, top_k=26, include=["C01", "C02"], exclude=["D900001", "C02.105"])
    assert {ui for tags in one for ui in uis(tags)} == {f"D90000{number}" for number in (0, 2, 3, 4, 6, 7)}


def test_check_tags_can_be_left_out(tiny_tagger):
    plain = tiny_tagger(ROWS)
    without = tiny_tagger(ROWS, check_tags=False)
    checks = {"D006801", "D000818"}
    assert any(checks & set(uis(tags)) for tags in plain)
    assert [uis(tags) for tags in without] == [[ui for ui in uis(tags) if ui not in checks] for tags in plain]
    assert [uis(tags) for tags in tiny_tagger(ROWS, check_tags=True)] == [uis(tags) for tags in plain]


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"topk": 3}, TypeError, "'topk'; the options are .*top_k"),
        ({"threshold": 1.5}, ValueError, "`threshold` is 1.5"),
        ({"threshold": float("nan")}, ValueError, "`threshold` is nan"),
        ({"top_k": 0}, ValueError, "`top_k` is 0"),
        ({"batch_size": -1}, ValueError, "`batch_size` is -1"),
        ({"preset": "balance"}, ValueError, "no preset 'balance'.*precision, recall"),
        ({"include": "X99"}, ValueError, "'X99' is no place in MeSH 2024"),
        ({"exclude": ["D123456"]}, ValueError, "D123456 is not a descriptor of MeSH 2024"),
    ],
)
def test_wrong_options_are_named_before_any_work(tiny_tagger, options, error, sentence):
    with pytest.raises(error, match=sentence):
        tiny_tagger((row for row in ROWS), **options)


@pytest.mark.parametrize("article", [7, None, ["a"], {"text": "a"}, {"title": ["a"]}])
def test_what_is_no_article_is_named(tiny_tagger, article):
    with pytest.raises(ValueError, match="article"):
        tiny_tagger([article])


def test_rows_of_tables_may_hold_numbers_and_gaps():
    row = {"title": "a", "abstract": float("nan"), "pmid": 12, "journal": None, "mesh": []}
    assert as_article(row) == {"title": "a", "abstract": "", "pmid": "12", "journal": ""}
    assert as_article({"abstract": "b", "journal": ["J", "K"]})["journal"] == ["J", "K"]


def test_evidence_says_why(tiny_tagger):
    for row, tags in zip(ROWS, tiny_tagger(ROWS, evidence=True, evidence_words=5, batch_size=7), strict=True):
        plain = tiny_tagger(row)
        assert [(tag["ui"], tag["name"]) for tag in tags] == [(tag["ui"], tag["name"]) for tag in plain]
        for tag in tags:
            evidence = tag["evidence"]
            assert set(evidence) == {
                *("words", "against", "neighbours", "journal", "journal_weight", "term"),
                *("all_words", "without_text"),
            }
            assert 0 < len(evidence["words"]) <= 5
            for word in evidence["words"]:
                assert row[word["field"]][word["start"] : word["end"]] == word["word"]
                assert 0 < word["weight"] <= tag["score"]
            assert all(neighbour["pmid"].isdecimal() for neighbour in evidence["neighbours"])
            assert all(abs(neighbour["weight"]) < 1 for neighbour in evidence["neighbours"])
            assert (evidence["journal"] is None) == (row["journal"] is None)
            if evidence["term"]:
                term = evidence["term"]
                assert row[term["field"]][term["start"] : term["end"]] == term["text"]


def test_evidence_names_the_matched_term(tiny_tagger):
    name = tiny_tagger.processor.vocabulary.names[5]
    text = f"A study — of  “{name.upper()}” in mice."
    tags = {tag["ui"]: tag for tag in tiny_tagger({"title": text}, top_k=10, evidence=True)}
    assert tags["D900005"]["evidence"]["term"] == {
        "text": name.upper(),
        "field": "title",
        "start": text.index(name.upper()),
        "end": text.index(name.upper()) + len(name),
    }


def test_words_have_their_places_in_odd_text(tiny_tagger):
    name = tiny_tagger.processor.vocabulary.names[5]
    text = f"ﬁrst  “Lileke”\u00a0and β-lirabe; {name.upper()}\u200b\n\tlike½ {name.lower()}"
    tags = tiny_tagger({"abstract": text}, top_k=9, evidence=True, evidence_words=50)
    words = [word for tag in tags for word in tag["evidence"]["words"] + tag["evidence"]["against"]]
    named = {word["word"]: word for word in words}
    assert all(text[word["start"] : word["end"]] == word["word"] for word in words)
    for part in name.upper().split():
        assert [text[place["start"] : place["end"]] for place in named[part]["also"]] == [part.lower()]


def test_evidence_without_tags_or_index(tiny_tagger):
    assert tiny_tagger(ROW, exclude=["B", "C"], evidence=True) == []
    bare = KenMeSHProcessor(tiny_tagger.processor.tokenizer, vocabulary=tiny_tagger.processor.vocabulary)
    [tag] = MeSHIndexingPipeline(model=tiny_tagger.model, processor=bare)(ROW, top_k=1, evidence=True)
    assert tag["evidence"]["words"]
    nothing = {"neighbours": [], "journal": None, "journal_weight": 0.0, "term": None}
    assert {name: tag["evidence"][name] for name in nothing} == nothing


def test_without_thresholds_half_is_the_cut(tiny_tagger):
    processor = tiny_tagger.processor
    bare = KenMeSHProcessor(
        processor.tokenizer, candidates=processor.candidates, vocabulary=processor.vocabulary
    )
    tagger = MeSHIndexingPipeline(model=tiny_tagger.model, processor=bare)
    assert uis(tagger(ROW)) == uis(tiny_tagger(ROW, threshold=0.5))
    with pytest.raises(ValueError, match="no thresholds of its own"):
        tagger(ROW, preset="recall")


def test_parts_of_different_models_are_refused(tiny_tagger):
    processor = tiny_tagger.processor
    with pytest.raises(ValueError, match="no MeSH vocabulary"):
        MeSHIndexingPipeline(model=tiny_tagger.model, processor=KenMeSHProcessor(processor.tokenizer))
    config = type(tiny_tagger.model.config)(**(tiny_tagger.model.config.to_dict() | {"num_labels": 3}))
    with pytest.raises(ValueError, match="3 labels that are not the 26 descriptors"):
        MeSHIndexingPipeline(model=KenMeSHForMeSHIndexing(config), processor=processor)
    config = type(config)(**(tiny_tagger.model.config.to_dict() | {"num_evidence_features": 2}))
    with pytest.raises(ValueError, match="2 numbers a candidate"):
        MeSHIndexingPipeline(model=KenMeSHForMeSHIndexing(config), processor=processor)


def test_saved_and_loaded_gives_the_same_scores(tiny_tagger, tiny_model):
    expected = [close(tags) for tags in tiny_tagger(ROWS, top_k=8)]
    by_task = pipeline("mesh-indexing", model=str(tiny_model))
    assert type(by_task) is MeSHIndexingPipeline
    parts = AutoModel.from_pretrained(tiny_model), AutoProcessor.from_pretrained(tiny_model)
    assert type(parts[0]) is KenMeSHForMeSHIndexing and type(parts[1]) is KenMeSHProcessor
    by_parts = pipeline("mesh-indexing", model=parts[0], processor=parts[1])
    for tagger in (by_task, by_parts, kenmesh_hf.load(tiny_model)):
        assert [scores(tags) for tags in tagger(ROWS, top_k=8)] == expected


def test_options_can_be_set_once(tiny_model, tiny_tagger):
    tagger = kenmesh_hf.load(tiny_model, top_k=4, check_tags=False, batch_size=3)
    assert uis(tagger(ROW)) == uis(tiny_tagger(ROW, top_k=4, check_tags=False))
    assert uis(tagger(ROW, top_k=2)) == uis(tiny_tagger(ROW, top_k=2, check_tags=False))


def test_a_folder_that_is_no_model_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere is neither a folder nor a name on the Hub"):
        kenmesh_hf.load(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no config.json"):
        kenmesh_hf.load(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InputError, match="a 'bert' model"):
        kenmesh_hf.load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match="config.json .* not JSON"):
        kenmesh_hf.load(tmp_path)


def test_the_bundled_checkpoint_is_the_default(tiny_model, tiny_tagger, monkeypatch, tmp_path):
    from transformers.pipelines import PIPELINE_REGISTRY

    registered = PIPELINE_REGISTRY.supported_tasks["mesh-indexing"]
    assert registered["default"]["model"][0] == str(kenmesh_hf.BUNDLED_CHECKPOINT)
    monkeypatch.setitem(registered, "default", {"model": (str(tiny_model), "main")})
    assert uis(pipeline("mesh-indexing")(ROW)) == uis(tiny_tagger(ROW))
    monkeypatch.setattr("kenmesh_hf.sharing.loading.BUNDLED_CHECKPOINT", tmp_path / "missing")
    with pytest.raises(InputError, match="installed without its checkpoint"):
        kenmesh_hf.load()


def test_items_of_similar_length_are_worked_on_together_and_come_back_in_order():
    texts = ["dddd", "a", "ccc", "bb", "eeeee"]
    batches = []

    def finish(batch: list[str]) -> list[str]:
        batches.append(batch)
        return [text.upper() for text in batch]

    found = list(map_by_length(texts, 2, len, list, finish))
    assert found == [(text, text.upper()) for text in texts]
    assert batches == [["a", "bb"], ["ccc", "dddd"], ["eeeee"]]


def test_an_error_in_a_batch_that_is_prepared_ahead_is_raised():
    def prepare(batch: list[str]) -> list[str]:
        if "bad" in batch:
            raise ValueError("bad")
        return batch

    with pytest.raises(ValueError, match="bad"):
        list(map_by_length(["a", "bad", "c"], 1, lambda text: 1, prepare, list))
