"""The processor: article fields in every shape, missing parts, saving and loading."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import tiny_vocabulary
from tiny_model import UNSEEN

from kenmesh_hf import KenMeSHForMeSHIndexing, KenMeSHProcessor
from kenmesh_hf.modeling import processing_kenmesh
from kenmesh_hf.modeling.checksums_kenmesh import check_checksums
from kenmesh_hf.modeling.processing_kenmesh import pad_batch, pad_rows
from kenmesh_hf.modeling.thresholds_kenmesh import Thresholds

TITLES = [article.title for article in UNSEEN[:4]]
ABSTRACTS = [article.abstract for article in UNSEEN[:4]]
JOURNALS = [article.journal for article in UNSEEN[:4]]


@pytest.fixture(scope="module")
def processor(tiny_tagger) -> KenMeSHProcessor:
    return tiny_tagger.processor


def rows_of(batch: dict) -> list[dict]:
    """Unpadded inputs of each article."""
    masks = {"input_ids": "attention_mask", "title_input_ids": "title_attention_mask"}
    masks |= dict.fromkeys(("candidate_ids", "candidate_features"), "candidate_mask")
    return [
        {name: batch[name][row][batch[mask][row]].tolist() for name, mask in masks.items() if name in batch}
        for row in range(len(batch["input_ids"]))
    ]


def test_one_call_gives_everything_that_the_model_takes(processor, tiny_tagger):
    batch = processor(title=TITLES, abstract=ABSTRACTS, journal=JOURNALS)
    assert set(batch) == set(processor.model_input_names)
    with torch.no_grad():
        assert tiny_tagger.model(**batch).logits.shape == (4, len(processor.vocabulary))


def test_parts_are_replaced_in_a_copy(processor):
    other = processor.with_parts(thresholds=Thresholds(0.9), max_title_tokens=7)
    assert other.thresholds.global_threshold == 0.9 != processor.thresholds.global_threshold
    assert (other.max_title_tokens, other.max_abstract_tokens) == (7, processor.max_abstract_tokens)
    assert other.candidates is processor.candidates and other.vocabulary is processor.vocabulary
    assert processor.max_title_tokens != 7
    with pytest.raises(TypeError, match="threshold"):
        processor.with_parts(threshold=0.5)


def test_one_article_is_a_batch_of_one(processor):
    one = processor(title=TITLES[0], abstract=ABSTRACTS[0], journal=JOURNALS[0])
    assert one["input_ids"].shape[0] == 1
    assert rows_of(one) == rows_of(processor(TITLES[:1], ABSTRACTS[:1], JOURNALS[:1]))


def test_result_does_not_depend_on_the_other_articles(processor):
    together = rows_of(processor(TITLES, ABSTRACTS, JOURNALS))
    alone = [rows_of(processor(*fields))[0] for fields in zip(TITLES, ABSTRACTS, JOURNALS, strict=True)]
    assert together == alone
    backwards = rows_of(processor(TITLES[::-1], ABSTRACTS[::-1], JOURNALS[::-1]))
    assert backwards[::-1] == alone


@pytest.mark.parametrize(
    "fields",
    [
        {"title": TITLES[0]},
        {"abstract": ABSTRACTS[0]},
        {"title": "babake", "abstract": ""},
        {"title": "", "abstract": "", "journal": "Sopeti Letters"},
        {"title": "", "abstract": ""},
        {"title": "…", "abstract": "the of and"},
        {"title": TITLES[0], "journal": "A Journal That Nobody Knows"},
        {"title": [TITLES[0], None], "abstract": [None, ABSTRACTS[1]], "journal": [None, float("nan")]},
        {"abstract": "unheard-of words only"},
        {"abstract": "\x00\ufffd \U0001f600 " * 50},
    ],
)
def test_missing_and_odd_fields_give_finite_scores(processor, tiny_tagger, fields):
    with torch.no_grad():
        assert tiny_tagger.model(**processor(**fields)).logits.isfinite().all()


def test_an_unseen_journal_says_no_more_than_none(processor):
    unseen, none = (processor(TITLES[0], ABSTRACTS[0], name) for name in ("Nowhere Gazette", None))
    assert rows_of(unseen) == rows_of(none)
    known = processor(TITLES[0], ABSTRACTS[0], "Sopeti Letters")
    assert rows_of(known) != rows_of(none)


def test_one_journal_may_stand_for_all_and_a_journal_may_have_several_names(processor):
    expected = rows_of(processor(TITLES, ABSTRACTS, ["Sopeti Letters"] * 4))
    assert rows_of(processor(TITLES, ABSTRACTS, "Sopeti Letters")) == expected
    assert rows_of(processor(TITLES, ABSTRACTS, [["Sopeti Lett", "Sopeti Letters"]] * 4)) == expected


def test_columns_of_other_libraries_are_lists_too(processor):
    expected = rows_of(processor(TITLES, ABSTRACTS))
    assert rows_of(processor(np.array(TITLES), tuple(ABSTRACTS))) == expected


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "nothing to read"),
        ({"title": []}, "nothing to read"),
        ({"title": TITLES, "abstract": ABSTRACTS[:3]}, "4 of title, 3 of abstract"),
        ({"title": TITLES[0], "abstract": ABSTRACTS}, "`title` is one text"),
        ({"title": TITLES, "abstract": ABSTRACTS, "pmid": "1"}, "`pmid` is one text"),
        ({"abstract": [{"text": "a"}]}, "are texts"),
    ],
)
def test_fields_that_do_not_fit_are_named(processor, fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        processor(**fields)


def test_long_texts_are_cut(processor):
    batch = processor(title="babake " * 500, abstract="babake " * 5000)
    assert batch["title_input_ids"].shape[1] == processor.max_title_tokens
    assert batch["input_ids"].shape[1] == processor.max_abstract_tokens


def test_without_an_index_every_label_is_attended_with_one_warning(processor, tiny_tagger, monkeypatch):
    warnings = []
    monkeypatch.setattr(processing_kenmesh.logger, "warning_once", warnings.append)
    bare = KenMeSHProcessor(processor.tokenizer, vocabulary=processor.vocabulary)
    batch = bare(title=TITLES, abstract=ABSTRACTS)
    assert not any(name.startswith("candidate") for name in [*batch, *bare.model_input_names])
    assert len(warnings) == 1 and "candidates" in warnings[0]
    with torch.no_grad():
        assert tiny_tagger.model(**batch).logits.isfinite().all()


def test_padding_is_masked_whatever_the_rows():
    padded, mask = pad_rows([[], [4, 5], [6]], fill=-100)
    assert padded.tolist() == [[-100, -100], [4, 5], [6, -100]]
    assert mask.tolist() == [[False, False], [True, True], [True, False]]
    nothing = pad_batch([{"input_ids": [], "candidate_ids": [], "candidate_features": np.zeros((0, 3))}] * 2)
    assert nothing["input_ids"].shape == (2, 1) and not nothing["attention_mask"].any()
    assert nothing["candidate_features"].shape == (2, 1, 3)


def test_saved_and_loaded_gives_the_same(processor, tiny_model):
    loaded = KenMeSHProcessor.from_pretrained(tiny_model)
    ours, theirs = (part(TITLES, ABSTRACTS, JOURNALS) for part in (processor, loaded))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert loaded.vocabulary.uis == processor.vocabulary.uis
    assert loaded.thresholds.presets == processor.thresholds.presets
    settings = json.loads((tiny_model / "processor_config.json").read_text(encoding="utf-8"))
    assert settings["auto_map"] == {"AutoProcessor": "processing_kenmesh.KenMeSHProcessor"}
    assert settings["max_abstract_tokens"] == 400


@pytest.mark.parametrize("checked", [True, False])
def test_a_model_shared_without_its_index_still_reads_articles(tiny_model, tmp_path, checked):
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    (folder / "neighbours.safetensors").unlink()
    if not checked:
        (folder / "checksums.json").unlink()
    loaded = KenMeSHProcessor.from_pretrained(folder)
    # Journal and terms propose on their own.
    assert loaded(title=loaded.vocabulary.names[3])["candidate_mask"].any()
    (folder / "checksums.json").unlink(missing_ok=True)
    (folder / "candidates.safetensors").unlink()
    loaded = KenMeSHProcessor.from_pretrained(folder)
    assert loaded.candidates is None and "candidate_ids" not in loaded(title=TITLES[0])


def test_damaged_parts_are_named(tiny_model, tmp_path):
    for name in ("thresholds.safetensors", "mesh_vocabulary.tsv.gz", "candidates.safetensors"):
        shutil.copytree(tiny_model, tmp_path / name)
        with open(tmp_path / name / name, "r+b") as file:
            file.truncate(20)
        with pytest.raises(ValueError, match=name):
            KenMeSHProcessor.from_pretrained(tmp_path / name)


def test_parts_of_different_label_sets_are_refused(processor):
    with pytest.raises(ValueError, match="thresholds for 3 labels"):
        KenMeSHProcessor(
            processor.tokenizer, vocabulary=processor.vocabulary, thresholds=Thresholds(0.5, np.ones(3))
        )
    vocabulary = tiny_vocabulary()
    columns = (vocabulary.uis, vocabulary.names, vocabulary.entry_terms, vocabulary.tree_numbers)
    smaller = type(vocabulary)(*(list(column)[:-1] for column in columns))
    with pytest.raises(ValueError, match="index was built for 26 labels"):
        KenMeSHProcessor(processor.tokenizer, vocabulary=smaller, candidates=processor.candidates)


def test_weights_saved_again_keep_the_folder_whole(tiny_model, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    model = KenMeSHForMeSHIndexing.from_pretrained(folder)
    with torch.no_grad():
        model.label_bias.fill_(0.25)
    model.save_pretrained(folder)
    assert check_checksums(folder) == ()
    again = KenMeSHForMeSHIndexing.from_pretrained(folder)
    assert again.label_bias.unique().item() == 0.25
    KenMeSHProcessor.from_pretrained(folder)
    # Fewer shards than before: those that are gone are no longer listed.
    model.save_pretrained(folder, max_shard_size="10kB")
    shards = list(folder.glob("model-*.safetensors"))
    assert len(shards) > 1 and check_checksums(folder) == ()
    model.save_pretrained(folder)
    assert check_checksums(folder) == ()


def test_damaged_weights_are_named(tiny_model, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(ValueError, match="model.safetensors .* cut short"):
        KenMeSHForMeSHIndexing.from_pretrained(folder)
    weights.unlink()
    with pytest.raises(FileNotFoundError, match="model.safetensors is missing"):
        KenMeSHForMeSHIndexing.from_pretrained(folder)


def test_code_is_saved_beside_the_model(tiny_model):
    modeling = Path(processing_kenmesh.__file__).parent
    saved = {path.name for path in tiny_model.glob("*.py")}
    assert saved == {path.name for path in modeling.glob("*_kenmesh.py")}
