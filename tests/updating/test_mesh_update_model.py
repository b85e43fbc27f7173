"""A tagger carried to another MeSH year: what stays, what follows, and what is new at once."""

import copy
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import TOPICS, tiny_vocabulary
from tiny_model import TRAINING, UNSEEN, build_tagger

from kenmesh_hf import load
from kenmesh_hf.errors import InputError, MismatchError
from kenmesh_hf.modeling.candidates_kenmesh import NEIGHBOURS_FILE
from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor
from kenmesh_hf.modeling.vocabulary_kenmesh import MeshVocabulary
from kenmesh_hf.updating import update_mesh, update_model_folder
from kenmesh_hf.updating.mesh_update import UPDATE_FILE

NEW = ("D999999", "Zorvexin Fever", ("zorvexin disease",), ("C06.900",))


def rows_of(vocabulary: MeshVocabulary) -> list[tuple]:
    columns = (vocabulary.uis, vocabulary.names, vocabulary.entry_terms, vocabulary.tree_numbers)
    return list(zip(*columns, strict=True))


def changed(added: tuple = (), without: tuple[str, ...] = (), **renamed: str) -> MeshVocabulary:
    """The tiny MeSH a year later, new descriptors first, so that every label has another number."""
    rows = [row for row in rows_of(tiny_vocabulary()) if row[0] not in without]
    rows = [(ui, renamed.get(ui, name), *rest) for ui, name, *rest in rows]
    return MeshVocabulary(*zip(*added, *rows, strict=True), year=2025)


def scores(tagger: MeSHIndexingPipeline, **choice) -> list[dict[str, float]]:
    found = tagger([article.as_input() for article in UNSEEN], threshold=0.0, top_k=100, **choice)
    return [{tag["ui"]: tag["score"] for tag in tags} for tags in found]


def update(tagger: MeSHIndexingPipeline, vocabulary: MeshVocabulary) -> MeSHIndexingPipeline:
    model, processor, _ = update_mesh(tagger.model, tagger.processor, vocabulary)
    return MeSHIndexingPipeline(model=model, processor=processor)


@pytest.mark.parametrize("kind", ["tiny_tagger", "encoder_tagger"])
def test_a_descriptor_added_far_away_changes_no_other_score(kind, request):
    tagger = request.getfixturevalue(kind)
    before, after = scores(tagger), scores(update(tagger, changed(added=(NEW,))))
    near = {tiny_vocabulary().uis[label] for label in tiny_vocabulary().labels_in("C06")}
    compared = 0
    for old, new in zip(before, after, strict=True):
        assert old.keys() == new.keys()
        for ui in old.keys() - near:
            assert new[ui] == pytest.approx(old[ui], abs=1e-5)
            compared += 1
    assert compared > 500


def test_what_was_given_stays_as_it_is(tiny_tagger):
    size, words = len(tiny_tagger.processor.vocabulary), len(tiny_tagger.processor.word_ids)
    update(tiny_tagger, changed(added=(NEW,)))
    assert tiny_tagger.model.config.num_labels == len(tiny_tagger.processor.vocabulary) == size
    assert len(tiny_tagger.processor.word_ids) == tiny_tagger.model.config.vocab_size == words
    assert tiny_tagger.processor.candidates.num_labels == size


def test_a_new_descriptor_is_found_by_its_name_and_entry_term(tiny_tagger):
    updated = update(tiny_tagger, changed(added=(NEW,)))
    for text in ("Severe Zorvexin fever in cities", "Cases of zorvexin disease"):
        tags = updated(text, threshold=0.0, top_k=5, evidence=True)
        tag = next(tag for tag in tags if tag["ui"] == "D999999")
        assert tag["name"] == "Zorvexin Fever" and tag["evidence"]["term"]["text"].lower() in text.lower()


def test_words_of_new_names_start_like_the_words_around_them(tiny_tagger):
    parent = tiny_vocabulary().names[20].lower().split()
    model, processor, _ = update_mesh(tiny_tagger.model, tiny_tagger.processor, changed(added=(NEW,)))
    ids = processor.word_ids
    assert {"zorvexin", "fever"} <= ids.keys() and processor.tokenizer("zorvexin").input_ids == [
        ids["zorvexin"]
    ]
    vectors = model.kenmesh.word_embeddings.weight
    known = [word for word in parent if word in tiny_tagger.processor.word_ids]
    expected = vectors[[ids[word] for word in known]].mean(0)
    torch.testing.assert_close(vectors[ids["zorvexin"]], expected)


def test_tokens_of_an_encoder_spell_new_names(encoder_tagger):
    updated = update(encoder_tagger, changed(added=(NEW,)))
    assert updated.processor.word_ids == encoder_tagger.processor.word_ids
    assert updated.processor.max_abstract_tokens == encoder_tagger.processor.max_abstract_tokens
    names = updated.processor.encode_names(updated.processor.vocabulary.names)
    assert updated.model.kenmesh.label_encoder.token_ids.tolist() == [
        token for name in names for token in name
    ]
    tags = updated("Severe Zorvexin fever in cities", threshold=0.0, top_k=5, evidence=True)
    assert "D999999" in {tag["ui"] for tag in tags}


def test_learned_values_go_with_their_descriptor(tiny_tagger):
    model = copy.deepcopy(tiny_tagger.model)
    with torch.no_grad():
        model.label_bias.copy_(torch.arange(float(len(model.label_bias))))
    new, processor, plan = update_mesh(
        model, tiny_tagger.processor, changed(added=(NEW,), D900003="Other Name")
    )
    old_thresholds = tiny_tagger.processor.thresholds.per_label
    for label, source in enumerate(plan.new_to_old):
        expected = (0.0, 0.4) if source < 0 else (float(source), old_thresholds[source])
        assert (new.label_bias[label].item(), processor.thresholds.per_label[label]) == pytest.approx(
            expected
        )
    assert processor.thresholds.presets == tiny_tagger.processor.thresholds.presets
    assert new.config.id2label[0] == "D999999" and new.config.label2id["D900003"] == 4


def test_index_and_journals_follow_a_merged_and_a_dropped_descriptor(tiny_tagger):
    old = tiny_tagger.processor.candidates
    merged = ("D900002", "D900003")
    row = rows_of(tiny_vocabulary())[2]
    vocabulary = changed(added=((row[0], row[1], (tiny_vocabulary().names[3],), row[3]),), without=merged)
    vocabulary = MeshVocabulary(
        *zip(*(r for r in rows_of(vocabulary) if r[0] != "D900010"), strict=True), year=2025
    )
    new = update(tiny_tagger, vocabulary).processor.candidates
    for number, article in enumerate(TRAINING):
        expected = {"D900002" if ui in merged else ui for ui in article.descriptors} - {"D900010"}
        labels, _ = new.articles.labels_of(np.array([number]))
        assert [*map(vocabulary.uis.__getitem__, labels)] == sorted(expected, key=vocabulary.label_of)
    for journal in ("Annals of Velora", "Sopeti Letters"):
        table, sizes = {}, []
        for candidates, uis in ((old, tiny_vocabulary().uis), (new, vocabulary.uis)):
            labels, counts, size = candidates.journals.counts_of(journal)
            table[len(table)] = {uis[label]: int(count) for label, count in zip(labels, counts, strict=True)}
            sizes.append(size)
        both = table[0].pop("D900002", 0) + table[0].pop("D900003", 0)
        table[0].pop("D900010", None)
        assert table[1].pop("D900002", 0) == min(both, sizes[0]) and table[1] == table[0]
        assert sizes[0] == sizes[1]


def test_terms_keep_what_was_learned_about_them(tiny_tagger):
    old = tiny_tagger.processor.candidates.lexicon
    new = update(tiny_tagger, changed(added=(NEW,))).processor.candidates.lexicon
    rows = {
        (h, label + 1): row
        for row, (h, label) in enumerate(zip(old.hashes.tolist(), old.labels.tolist(), strict=True))
    }
    assert old.found.sum() > 20 and len(new.hashes) > len(old.hashes)
    for row, key in enumerate(zip(new.hashes.tolist(), new.labels.tolist(), strict=True)):
        expected = old.found[:, rows[key]] if key in rows else [0, 0, 0]
        assert new.found[:, row].tolist() == list(expected)
    assert np.array_equal(new.base, old.base)


def test_training_articles_still_do_not_meet_themselves(tiny_tagger):
    updated = update(tiny_tagger, changed(added=(NEW,)))
    article = TRAINING[0]
    numbers = []
    for tagger in (tiny_tagger, updated):
        [row] = tagger.processor.encode(
            [article.title], [article.abstract], [article.journal], [article.pmid]
        )
        uis = [tagger.processor.vocabulary.uis[label] for label in row["candidate_ids"]]
        numbers.append(dict(zip(uis, row["candidate_features"].tolist(), strict=True)))
    assert numbers[0].keys() == numbers[1].keys()
    for ui, values in numbers[0].items():
        assert numbers[1][ui] == pytest.approx(values, abs=1e-5)


def test_free_label_vectors_start_like_their_parents():
    tagger = build_tagger(label_encoder="free")
    model, _, plan = update_mesh(tagger.model, tagger.processor, changed(added=(NEW,)))
    weight = model.kenmesh.label_encoder.weight
    torch.testing.assert_close(weight[0], weight[plan.new.label_of("D900020")])
    torch.testing.assert_close(weight[1:], tagger.model.kenmesh.label_encoder.weight)


def test_a_model_without_index_or_thresholds_is_updated_too(tiny_tagger):
    bare = KenMeSHProcessor(tiny_tagger.processor.tokenizer, vocabulary=tiny_vocabulary())
    model, processor, _ = update_mesh(tiny_tagger.model, bare, changed(added=(NEW,)))
    assert processor.candidates is None and processor.thresholds is None
    assert model.config.num_labels == len(processor.vocabulary) == TOPICS + 3


def test_a_model_shared_without_its_index_keeps_what_it_still_knows(tiny_model: Path, tmp_path: Path):
    bare, mesh = tmp_path / "bare", tmp_path / "mesh2025.tsv"
    shutil.copytree(tiny_model, bare, ignore=shutil.ignore_patterns(NEIGHBOURS_FILE))
    mesh.write_text(changed(added=(NEW,), without=("D900007",)).to_table(), encoding="utf-8")
    update_model_folder(bare, mesh, tmp_path / "new")
    old, new = load(bare).processor, load(tmp_path / "new").processor
    assert not len(new.candidates.articles) and new.candidates.num_articles == len(TRAINING)
    counts = {ui: new.candidates.label_counts[new.vocabulary.label_of(ui)] for ui in new.vocabulary.uis}
    assert counts.pop(NEW[0]) == 0
    assert counts == {ui: old.candidates.label_counts[old.vocabulary.label_of(ui)] for ui in counts}
    [row] = new.encode("Zorvexin fever")
    assert new.vocabulary.label_of(NEW[0]) in row["candidate_ids"]


def test_a_model_without_vocabulary_is_refused(tiny_tagger):
    bare = KenMeSHProcessor(tiny_tagger.processor.tokenizer)
    with pytest.raises(MismatchError, match="no MeSH vocabulary"):
        update_mesh(tiny_tagger.model, bare, tiny_vocabulary())


def test_a_saved_model_is_updated_and_says_what_happened(tiny_model: Path, tmp_path: Path):
    mesh = tmp_path / "mesh2025.tsv"
    mesh.write_text(changed(added=(NEW,), without=("D900007",)).to_table(), encoding="utf-8")
    report = update_model_folder(tiny_model, mesh, tmp_path / "new")
    assert "D999999 Zorvexin Fever" in report and "Dropped\n  D900007" in report
    assert json.loads((tmp_path / "new" / UPDATE_FILE).read_text())["to"]["descriptors"] == TOPICS + 2
    tagger = load(tmp_path / "new")
    assert tagger.processor.vocabulary.year == 2025
    assert "D999999" in {tag["ui"] for tag in tagger("Zorvexin fever", threshold=0.0, top_k=5)}
    with pytest.raises(InputError, match="already there"):
        update_model_folder(tiny_model, mesh, tmp_path / "new")
