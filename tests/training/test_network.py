"""A fresh network for a processor, and a trained one carried to other words and labels."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import tiny_vocabulary

from kenmesh_hf.errors import MismatchError
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor
from kenmesh_hf.modeling.vocabulary_kenmesh import MeshVocabulary
from kenmesh_hf.preparing import PreparedDataset, load_prepared
from kenmesh_hf.training import KenMeSHCollator, build_network, label_inputs, start_evidence
from kenmesh_hf.training.network import WORD_SPREAD, continue_network
from kenmesh_hf.words import build_tokenizer


@pytest.fixture(scope="module")
def prepared(tiny_prepared: Path) -> PreparedDataset:
    return load_prepared(tiny_prepared)


def test_label_inputs_name_words_and_edges() -> None:
    vocabulary = MeshVocabulary(["D1", "D2", "D3"], ["Heart Valves", "Unheard", "Heart"], [(), (), ()],
                                [("A01.1",), (), ("A01",)])  # fmt: skip
    found = label_inputs(KenMeSHProcessor(build_tokenizer(["heart", "valves"]), vocabulary=vocabulary))
    assert found["token_ids"].tolist() == [2, 3, 1, 2]
    assert found["token_offsets"].tolist() == [0, 2, 3]
    assert found["edges"].tolist() == [[2], [0]]


def test_network_starts_from_the_word_vectors(prepared: PreparedDataset) -> None:
    model = build_network(prepared.processor, prepared.word_vectors)
    weights = model.kenmesh.word_embeddings.weight.detach().numpy()
    ratio = weights.std() / prepared.word_vectors.std()
    assert np.isclose(weights.std(), WORD_SPREAD)
    assert np.allclose(weights, prepared.word_vectors * ratio, atol=1e-6)
    assert model.config.id2label[3] == prepared.processor.vocabulary.uis[3]
    assert model.evidence is None
    batch = KenMeSHCollator(len(prepared.processor.candidates.FEATURES))(
        [prepared.train[0], prepared.train[1]]
    )
    assert model(**batch).logits.shape == (2, len(tiny_vocabulary()))


def test_word_vectors_of_another_corpus_are_refused(prepared: PreparedDataset) -> None:
    with pytest.raises(MismatchError, match="same corpus"):
        build_network(prepared.processor, prepared.word_vectors[:-1])


def test_evidence_starts_better_than_nothing(prepared: PreparedDataset) -> None:
    model = build_network(prepared.processor, prepared.word_vectors, evidence=True, loss_labels="candidates")
    rows = prepared.train.select(range(100))
    loss = start_evidence(model, rows)
    gold = np.concatenate([np.isin(row["candidate_ids"], row["labels"]) for row in rows])
    share = gold.mean()
    assert loss < -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert model.evidence.linear.weight.abs().sum() > 0


def test_weights_follow_their_words_and_descriptors(prepared: PreparedDataset, tmp_path: Path) -> None:
    processor = prepared.processor
    model = build_network(processor, prepared.word_vectors, label_bias=True, initial_label_bias=-2.0)
    with torch.no_grad():
        model.label_bias.copy_(torch.arange(len(processor.vocabulary)) + 1.0)
    model.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    old = processor.vocabulary
    uis = [*reversed(old.uis[1:]), "D999999"]
    other = MeshVocabulary(uis, [*reversed(old.names[1:]), "Novelty"], [()] * len(uis),
                           [*reversed(old.tree_numbers[1:]), ()])  # fmt: skip
    words = ["novelty", *reversed([word for word in processor.word_ids if not word.startswith("[")])]
    changed = KenMeSHProcessor(build_tokenizer(words), vocabulary=other)
    changed._candidates = processor.candidates
    fresh = np.full((len(words) + 2, prepared.word_vectors.shape[1]), 9, np.float32)
    fresh[: len(words) // 2] *= -1
    carried = continue_network(tmp_path, changed, fresh, embedding_dropout=0.5)
    assert carried.config.embedding_dropout == 0.5
    assert carried.label_bias.tolist() == [*range(len(old), 1, -1), -2]
    table = carried.kenmesh.word_embeddings.weight
    assert table[changed.word_ids["novelty"]].tolist() == pytest.approx(
        [-WORD_SPREAD] * table.shape[1], rel=0.01
    )
    word = words[5]
    before = model.kenmesh.word_embeddings.weight[processor.word_ids[word]]
    assert torch.equal(table[changed.word_ids[word]], before)
    lstm = "kenmesh.text_lstm."
    before_state = {name: w for name, w in model.state_dict().items() if name.startswith(lstm)}
    assert before_state
    assert all(torch.equal(carried.state_dict()[name], weight) for name, weight in before_state.items())


def test_word_vectors_of_another_size_are_refused(prepared: PreparedDataset, tmp_path: Path) -> None:
    build_network(prepared.processor, prepared.word_vectors).save_pretrained(tmp_path)
    prepared.processor.save_pretrained(tmp_path)
    with pytest.raises(MismatchError, match="embedding size of 48"):
        continue_network(tmp_path, prepared.processor, prepared.word_vectors[:, :8])
