"""The network: the paper's formula, what must not matter, every switch, and inputs at the edge."""

import copy

import pytest
import torch
import torch.nn.functional as F
from kenmesh_networks import (
    EVIDENCE,
    EVIDENCE_ON,
    LABELS,
    WORDS,
    build_batch,
    build_config,
    build_network,
    every_switch,
    score,
    without_tokens,
    without_words,
)

from kenmesh_hf.modeling.modeling_kenmesh import KenMeSHForMeSHIndexing


def dense_label_features(model):
    """Eq. 3 with a dense adjacency matrix."""
    encoder, table = model.kenmesh.label_encoder, model.kenmesh.word_embeddings.weight
    ends = [*encoder.token_offsets[1:].tolist(), len(encoder.token_ids)]
    spans = zip(encoder.token_offsets.tolist(), ends, strict=True)
    names = torch.stack([table[encoder.token_ids[start:end]].mean(0) for start, end in spans])
    adjacency = torch.eye(LABELS, dtype=table.dtype)
    for parent, child in encoder.edges.T.tolist():
        adjacency[parent, child] += 1
        adjacency[child, parent] += 1
    scale = adjacency.sum(1).rsqrt()
    features = names
    for layer in encoder.layers:
        features = torch.relu(scale[:, None] * adjacency * scale @ features @ layer.weight.T)
    return torch.cat([names, features], dim=1)


def encode_one(model, ids, lstm, cnn):
    """Eqs. 1 and 2 for the words of one text, with no padding anywhere."""
    states = model.kenmesh.word_embeddings(ids)
    for ahead, back in zip(lstm.forward_layers, lstm.backward_layers, strict=True):
        states = torch.cat([ahead(states[None])[0][0], back(states.flip(0)[None])[0][0].flip(0)], dim=1)
    for level in cnn.levels if cnn is not None else ():
        states = torch.relu(level(states.T[None])[0].T)
    return states


def dense_logits(model, inputs):
    """Eqs. 4 to 6 as written: masked keys, softmax over the words, context vectors, dot product."""
    base, keys = model.kenmesh, dense_label_features(model)
    rows = []
    for row in range(len(inputs["input_ids"])):
        chosen = inputs["candidate_ids"][row][inputs["candidate_mask"][row]]
        masked = torch.zeros(LABELS, 1, dtype=keys.dtype).index_fill(0, chosen, 1.0) * keys
        contexts = torch.zeros_like(keys)
        for name, lstm, cnn in (("title_", base.title_lstm, None), ("", base.text_lstm, base.text_cnn)):
            words = inputs[f"{name}input_ids"][row][inputs[f"{name}attention_mask"][row]]
            if len(words):
                states = encode_one(model, words, lstm, cnn)
                contexts = contexts + (states @ masked.T).softmax(0).T @ states
        rows.append((contexts * keys).sum(1))
    return torch.stack(rows)


def test_scores_and_gradients_equal_the_dense_formula():
    model = build_network()
    inputs = build_batch(model)
    gold = torch.zeros(4, LABELS, dtype=torch.float64)
    for row, ids in enumerate(inputs["labels"]):
        gold[row, ids[ids >= 0]] = 1
    logits = dense_logits(model, inputs)
    loss = F.binary_cross_entropy_with_logits(logits, gold)
    loss.backward()
    expected = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    model.zero_grad()
    output = model(**inputs)
    output.loss.backward()
    torch.testing.assert_close(output.logits, logits, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(output.loss.double(), loss, rtol=1e-6, atol=1e-6)
    for name, weight in model.named_parameters():
        torch.testing.assert_close(weight.grad, expected[name], rtol=1e-5, atol=1e-7, msg=name)


@every_switch
def test_word_vectors_learn_from_texts_and_from_label_names(changes):
    model = build_network(**changes)
    inputs = build_batch(model)
    inputs["input_ids"] = inputs["input_ids"].clamp(max=20)
    inputs["title_input_ids"] = inputs["title_input_ids"].clamp(max=20)
    model(**inputs).loss.backward()
    grad = model.get_input_embeddings().weight.grad.abs().sum(1)
    assert grad[inputs["input_ids"][0]].min() > 0
    if model.config.label_encoder == "gcn":
        names = model.kenmesh.label_encoder.token_ids
        assert grad[names[names > 20]].max() > 0
    else:
        assert grad[21:].max() == 0


@every_switch
def test_padding_on_either_side_does_not_matter(changes):
    model = build_network(**changes)
    inputs = build_batch(model)
    expected = score(model, inputs)
    for left, right in ((0, 4), (3, 0), (2, 5)):
        padded = dict(inputs)
        for name in ("", "title_"):
            padded[f"{name}input_ids"] = F.pad(inputs[f"{name}input_ids"], (left, right), value=11)
            padded[f"{name}attention_mask"] = F.pad(inputs[f"{name}attention_mask"], (left, right))
        torch.testing.assert_close(score(model, padded), expected)


@every_switch
def test_an_article_does_not_see_its_neighbours_in_the_batch(changes):
    model = build_network(**changes)
    inputs = build_batch(model)
    expected = score(model, inputs)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(score(model, {k: v[order] for k, v in inputs.items()}), expected[order])
    for row in range(4):
        alone = {name: value[row : row + 1] for name, value in inputs.items()}
        torch.testing.assert_close(score(model, alone), expected[row : row + 1])


@every_switch
def test_order_and_padding_of_candidates_do_not_matter(changes):
    model = build_network(**changes)
    inputs = build_batch(model)
    names = [name for name in inputs if name.startswith("candidate_")]
    expected = model(**inputs)
    order = torch.tensor([5, 2, 0, 1, 4, 3])
    shuffled = inputs | {name: inputs[name][:, order] for name in names}
    torch.testing.assert_close(score(model, shuffled), expected.logits)
    padded = inputs | {
        "candidate_ids": F.pad(inputs["candidate_ids"], (0, 3), value=-1),
        "candidate_mask": F.pad(inputs["candidate_mask"], (0, 3)),
    }
    if "candidate_features" in inputs:
        padded["candidate_features"] = F.pad(inputs["candidate_features"], (0, 0, 0, 3), value=5.0)
    torch.testing.assert_close(score(model, padded), expected.logits)
    if model.config.loss_labels != "sampled":
        torch.testing.assert_close(model(**padded).loss, expected.loss)


@every_switch
def test_saved_and_loaded_scores_are_the_same(changes, tmp_path):
    model = build_network(dtype=torch.float32, **changes)
    inputs = build_batch(model)
    model.save_pretrained(tmp_path)
    loaded = KenMeSHForMeSHIndexing.from_pretrained(tmp_path)
    assert not loaded.training
    assert torch.equal(score(loaded, inputs), score(model, inputs))


@every_switch
def test_every_switch_learns(changes):
    model = build_network(dtype=torch.float32, **changes).train()
    inputs = build_batch(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = model(**inputs).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    trained = {name for name, weight in model.named_parameters() if weight.grad is not None}
    assert trained == {name for name, _ in model.named_parameters()}


def test_switches_change_what_they_name():
    plain = build_network()
    assert build_network(share_channel_lstm=True).kenmesh.title_lstm is None
    assert len(build_network(num_lstm_layers=3).kenmesh.text_lstm.forward_layers) == 3
    assert plain.evidence is None and plain.label_bias is None
    inputs = build_batch(plain)
    unmasked = build_network(mask_labels=False)
    without = {name: value for name, value in inputs.items() if not name.startswith("candidate_")}
    torch.testing.assert_close(score(unmasked, inputs), score(plain, without))
    assert not torch.allclose(score(unmasked, inputs), score(plain, inputs))


@pytest.mark.parametrize("layers", [1, 2])
def test_word_path_adds_the_words_to_both_directions(layers):
    model = build_network(word_path=True, num_lstm_layers=layers)
    plain = build_network(num_lstm_layers=layers)
    plain.load_state_dict(model.state_dict(), strict=False)
    inputs = build_batch(model)
    texts = [inputs[name] for name in ("input_ids", "attention_mask")]
    with torch.no_grad():
        words = model.kenmesh.word_embeddings(texts[0])
        with_path, without = (
            model.kenmesh.text_lstm(words, texts[1]),
            plain.kenmesh.text_lstm(words, texts[1]),
        )
    weight = model.kenmesh.text_lstm.word_weight
    expected = without + weight * torch.cat([words, words], -1) * texts[1].unsqueeze(-1)
    torch.testing.assert_close(with_path, expected)
    assert model.kenmesh.title_lstm.word_weight is not weight
    with torch.no_grad():
        model.kenmesh.text_lstm.word_weight.zero_()
        model.kenmesh.title_lstm.word_weight.zero_()
    torch.testing.assert_close(score(model, inputs), score(plain, inputs))


def test_word_path_starts_at_one():
    model = KenMeSHForMeSHIndexing(build_config(word_path=True))
    assert model.kenmesh.text_lstm.word_weight.item() == model.kenmesh.title_lstm.word_weight.item() == 1


def test_bias_starts_where_the_configuration_says():
    model = KenMeSHForMeSHIndexing(build_config(label_bias=True, initial_label_bias=-5.0))
    assert model.label_bias.unique().tolist() == [-5.0]


def test_bias_is_added_to_candidates_and_to_others():
    model = build_network(label_bias=True)
    inputs = build_batch(model)
    before = score(model, inputs)
    with torch.no_grad():
        model.label_bias += torch.arange(LABELS)
    torch.testing.assert_close(score(model, inputs), before + torch.arange(LABELS))


@pytest.mark.parametrize("changes", [{}, EVIDENCE_ON, {"two_channels": False}, {"dilation_rates": []}])
def test_empty_inputs(changes):
    model = build_network(**changes)
    inputs = without_words(build_batch(model))
    output = model(**inputs)
    output.loss.backward()
    assert output.logits.isfinite().all()
    assert all(weight.grad.isfinite().all() for weight in model.parameters() if weight.grad is not None)
    torch.testing.assert_close(score(model, without_tokens(inputs)), output.logits.detach())


def test_no_candidates_at_all():
    model = build_network(**EVIDENCE_ON)
    inputs = build_batch(model)
    masked = inputs | {"candidate_mask": torch.zeros_like(inputs["candidate_mask"])}
    none = inputs | {
        "candidate_ids": torch.zeros(4, 0, dtype=torch.long),
        "candidate_mask": torch.zeros(4, 0, dtype=torch.bool),
        "candidate_features": torch.zeros(4, 0, EVIDENCE),
    }
    torch.testing.assert_close(score(model, none), score(model, masked))
    for kind in ("all", "candidates", "sampled"):
        model.config.loss_labels = kind
        assert model(**masked).loss.isfinite() and model(**none).loss.isfinite()


def test_only_input_ids_are_needed():
    model = build_network()
    inputs = build_batch(model, batch=1, text=1)
    logits = score(model, {"input_ids": inputs["input_ids"]})
    assert logits.shape == (1, LABELS) and logits.isfinite().all()
    padded = torch.cat([torch.zeros(1, 3, dtype=torch.long), inputs["input_ids"]], dim=1)
    torch.testing.assert_close(score(model, {"input_ids": padded}), logits)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("candidate_ids", LABELS),
        ("candidate_ids", -3),
        ("labels", LABELS),
        ("attention_label_ids", LABELS),
        ("input_ids", WORDS),
    ],
)
def test_an_id_out_of_range_is_named(name, value):
    model = build_network()
    inputs = build_batch(model)
    inputs[name] = inputs.get(name, inputs["candidate_ids"]).clone()
    inputs[name][0, 0] = value
    with pytest.raises(ValueError, match=f"{'token ids' if name == 'input_ids' else name}.*{value}"):
        model(**inputs)


def test_a_vocabulary_without_hierarchy(tmp_path):
    torch.manual_seed(0)
    model = KenMeSHForMeSHIndexing(build_config(num_edges=0, num_label_tokens=LABELS)).double()
    labels = torch.arange(LABELS)
    model.kenmesh.set_labels(labels + 2, labels, torch.zeros(2, 0, dtype=torch.long))
    torch.testing.assert_close(model.kenmesh.label_features(), dense_label_features(model))
    model.save_pretrained(tmp_path)
    assert all(
        tensor.numel() for tensor in KenMeSHForMeSHIndexing.from_pretrained(tmp_path).state_dict().values()
    )


def test_labels_that_do_not_fit_are_refused():
    model = build_network()
    buffers = model.kenmesh.label_encoder
    with pytest.raises(ValueError, match="edges.*num_edges"):
        model.kenmesh.set_labels(
            buffers.token_ids, buffers.token_offsets, torch.zeros(2, 3, dtype=torch.long)
        )
    with pytest.raises(ValueError, match="gcn"):
        build_network(label_encoder="free").kenmesh.set_labels(torch.ones(1), torch.ones(1), torch.ones(1))


@pytest.mark.parametrize("candidates", [True, False])
def test_compiled_equals_eager(candidates):
    model = build_network(dtype=torch.float32)
    inputs = build_batch(model)
    if not candidates:
        inputs = {name: value for name, value in inputs.items() if not name.startswith("candidate_")}
    compiled = torch.compile(copy.deepcopy(model), backend="aot_eager")
    output = model(**inputs)
    output.loss.backward()
    torch.testing.assert_close(score(compiled, inputs), output.logits.detach())
    compiled(**inputs).loss.backward()
    for one, other in zip(model.parameters(), compiled.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-6)


def change_by_optimizer(model, inputs):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=True)
    model(**inputs).loss.backward()
    optimizer.step()


def change_by_data(model, inputs):
    model.train()
    model.get_input_embeddings().weight.data.mul_(2)
    model.eval()


CHANGES = {
    "optimizer": change_by_optimizer,
    "load_state_dict": lambda model, _: model.load_state_dict(build_network(seed=1).float().state_dict()),
    "data": change_by_data,
    "embeddings": lambda model, _: model.set_input_embeddings(torch.nn.Embedding(WORDS, 6)),
    "labels": lambda model, _: model.kenmesh.label_encoder.edges.fill_(3),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_label_features_are_kept_until_weights_change(change):
    model = build_network(dtype=torch.float32)
    inputs = build_batch(model)
    score(model, inputs)
    with torch.no_grad():
        kept = model.kenmesh.label_features()
        assert model.kenmesh.label_features() is kept
    with torch.set_grad_enabled(change is change_by_optimizer):
        change(model, inputs)
    with torch.no_grad():
        fresh = model.kenmesh.label_encoder(model.get_input_embeddings().weight)
        assert not torch.equal(kept, fresh)
        assert torch.equal(model.kenmesh.label_features(), fresh)


def test_label_features_follow_the_type_and_are_not_kept_with_gradients():
    model = build_network(dtype=torch.float32)
    with torch.no_grad():
        before = model.kenmesh.label_features()
        rounded = model.to(torch.bfloat16).to(torch.float32).kenmesh.label_features()
    assert not torch.equal(before, rounded)
    assert model.kenmesh.label_features().requires_grad
    with torch.inference_mode():
        torch.testing.assert_close(model.kenmesh.label_features(), rounded)


@pytest.mark.parametrize("changes", [{}, {"two_channels": False}])
def test_attentions_of_chosen_labels(changes):
    model = build_network(**changes)
    inputs = build_batch(model)
    chosen = torch.tensor([[0, 3], [5, 5], [16, 1], [2, 4]])
    with torch.no_grad():
        output = model(**inputs, attention_label_ids=chosen)
        texts = ("input_ids", "attention_mask", "title_input_ids", "title_attention_mask")
        features = model.kenmesh(**{name: inputs[name] for name in texts})
    channels = [(features.last_hidden_state, features.text_mask)]
    if features.title_hidden_state is not None:
        channels.insert(0, (features.title_hidden_state, features.title_mask))
    assert len(output.attentions) == len(channels)
    for weights, (states, mask) in zip(output.attentions, channels, strict=True):
        for row in range(4):
            words = mask[row].bool()
            expected = (features.label_features[chosen[row]] @ states[row][words].T).softmax(-1)
            torch.testing.assert_close(weights[row][:, words], expected)
            assert (weights[row][:, ~words] == 0).all()
    assert model(**inputs).attentions is None


def test_dropout_acts_in_training_only():
    model = build_network(embedding_dropout=0.5)
    inputs = build_batch(model)
    assert torch.equal(score(model, inputs), score(model, inputs))
    model.train()
    assert not torch.equal(score(model, inputs), score(model, inputs))


def test_name_words_beyond_a_smaller_vocabulary_become_unknown():
    model = build_network(dtype=torch.float32)
    model.resize_token_embeddings(20)
    names = model.kenmesh.label_encoder.token_ids
    assert names.max() < 20 and (names == 1).any() and model.config.vocab_size == 20
    inputs = build_batch(model)
    inputs |= {name: inputs[name].clamp(max=19) for name in ("input_ids", "title_input_ids")}
    assert score(model, inputs).isfinite().all()
