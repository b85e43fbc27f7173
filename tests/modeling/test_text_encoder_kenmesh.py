"""An encoder in place of word vectors and biLSTM: the formula, what must not matter, saving, learning."""

import json

import pytest
import torch
import torch.nn.functional as F
from kenmesh_networks import (
    ENCODER,
    LABELS,
    WORDS,
    build_batch,
    build_config,
    build_network,
    score,
    without_tokens,
    without_words,
)
from transformers import AutoConfig, BertConfig

from kenmesh_hf.modeling.configuration_kenmesh import KenMeSHConfig
from kenmesh_hf.modeling.modeling_kenmesh import KenMeSHForMeSHIndexing, KenMeSHModel
from kenmesh_hf.modeling.text_encoder_kenmesh import WORD_NORM

OTHERS = {
    "roberta": {"pad_token_id": 1, "max_position_embeddings": 34},
    "distilbert": {"dim": 6, "n_layers": 2, "n_heads": 2, "hidden_dim": 10},
    "electra": {"embedding_size": 4},
    "modernbert": {"num_attention_heads": 3, "pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3}
    | {"bos_token_id": 2, "eos_token_id": 3},
}


def dense_states(base, ids):
    """Features of the tokens of one text, with no padding anywhere, and which of them are words."""
    hidden = base.text_encoder(input_ids=ids[None]).last_hidden_state[0]
    features, words = base.text_features, base.get_input_embeddings()(ids)
    states = F.linear(hidden, features.projection.weight, features.projection.bias)
    if features.word_weight is not None:
        norm = features.word_norm
        words = F.layer_norm(words, words.shape[-1:], norm.weight, norm.bias)
        states = states + features.word_weight * torch.cat([words, words], -1)
    return states[(ids != 2) & (ids != 3)]


def dense_logits(model, inputs):
    """Eqs. 4 to 6 as written, over the words of title and abstract."""
    base = model.kenmesh
    table = base.get_input_embeddings().weight
    norm = base.text_features.word_norm
    keys = base.label_encoder(F.layer_norm(table, table.shape[-1:], norm.weight, norm.bias))
    rows = []
    for row in range(len(inputs["input_ids"])):
        chosen = inputs["candidate_ids"][row][inputs["candidate_mask"][row]]
        masked = torch.zeros(LABELS, 1, dtype=keys.dtype).index_fill(0, chosen, 1.0) * keys
        texts = [
            inputs[f"{name}input_ids"][row][inputs[f"{name}attention_mask"][row]] for name in ("title_", "")
        ]
        if not model.config.two_channels:
            texts = [torch.cat(texts)]
        contexts = torch.zeros_like(keys)
        for text in texts:
            states = dense_states(base, text) if len(text) else keys[:0]
            if len(states):
                contexts = contexts + (states @ masked.T).softmax(0).T @ states
        rows.append((contexts * keys).sum(1))
    return torch.stack(rows)


@pytest.mark.parametrize("changes", [{}, {"word_path": True}, {"two_channels": False}])
def test_scores_and_gradients_equal_the_dense_formula(changes):
    model = build_network(**ENCODER, **changes)
    inputs = build_batch(model)
    gold = torch.zeros(4, LABELS, dtype=torch.float64)
    for row, ids in enumerate(inputs["labels"]):
        gold[row, ids[ids >= 0]] = 1
    logits = dense_logits(model, inputs)
    F.binary_cross_entropy_with_logits(logits, gold).backward()
    expected = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    model.zero_grad()
    output = model(**inputs)
    output.loss.backward()
    torch.testing.assert_close(output.logits, logits, rtol=1e-9, atol=1e-9)
    for name, weight in model.named_parameters():
        torch.testing.assert_close(weight.grad, expected[name], rtol=1e-5, atol=1e-7, msg=name)


def test_no_label_attends_to_special_tokens():
    model = build_network(**ENCODER)
    inputs = build_batch(model)
    inputs["input_ids"][:, 0], inputs["input_ids"][:, 3] = 2, 3
    output = model(**inputs, attention_label_ids=inputs["candidate_ids"][:, :2], output_features=True)
    special = torch.isin(inputs["input_ids"], torch.tensor([2, 3]))
    assert (output.attentions[1].transpose(1, 2)[special] == 0).all()
    assert (output.features.text_mask.bool() == (inputs["attention_mask"] & ~special)).all()
    assert (output.features.last_hidden_state[special] == 0).all()


@pytest.mark.parametrize("kind", OTHERS)
def test_encoders_of_other_families(kind, tmp_path):
    """Other positions, a narrower table, no pooler, rotary positions: padding does not matter."""
    encoder = {name: value for name, value in ENCODER["text_encoder"].items() if "dropout" not in name}
    encoder |= {"model_type": kind, **OTHERS[kind]}
    model = build_network(text_encoder=encoder, special_token_ids=[2, 3], word_path=True)
    inputs = build_batch(model)
    inputs = {name: ids.clamp(min=2) if name.endswith("input_ids") else ids for name, ids in inputs.items()}
    expected = score(model, inputs)
    assert expected.isfinite().all()
    for left, right in ((0, 4), (3, 0), (2, 5)):
        padded = dict(inputs)
        for name in ("", "title_"):
            padded[f"{name}input_ids"] = F.pad(inputs[f"{name}input_ids"], (left, right), value=11)
            padded[f"{name}attention_mask"] = F.pad(inputs[f"{name}attention_mask"], (left, right))
        torch.testing.assert_close(score(model, padded), expected)
    model.float().save_pretrained(tmp_path)
    assert torch.equal(score(KenMeSHForMeSHIndexing.from_pretrained(tmp_path), inputs), score(model, inputs))


@pytest.mark.parametrize("changes", [{}, {"two_channels": False}])
def test_empty_texts(changes):
    model = build_network(**ENCODER, **changes)
    inputs = without_words(build_batch(model))
    output = model(**inputs)
    output.loss.backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters() if weight.grad is not None)
    torch.testing.assert_close(score(model, without_tokens(inputs)), output.logits.detach())
    assert (output.logits == 0).all()


def test_the_configuration_is_whole(tmp_path):
    config = build_config(**ENCODER)
    assert isinstance(config.text_encoder, BertConfig)
    assert (config.vocab_size, config.embedding_size, config.pad_token_id) == (WORDS, 6, 0)
    assert config.num_hidden_layers == 0 and config.get_text_config() is config.text_encoder
    config.save_pretrained(tmp_path)
    again = KenMeSHConfig.from_pretrained(tmp_path)
    assert again.to_dict() == config.to_dict() and again.text_encoder.num_hidden_layers == 2
    assert KenMeSHConfig(**config.to_dict()).to_dict() == config.to_dict()


def test_a_configuration_without_encoder_loads_as_before(tmp_path):
    build_config().save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    old = {name: value for name, value in saved.items() if name not in ("text_encoder", "special_token_ids")}
    (tmp_path / "config.json").write_text(json.dumps(old))
    config = KenMeSHConfig.from_pretrained(tmp_path)
    assert config.text_encoder is None and config.get_text_config() is config
    assert config.to_dict() == build_config().to_dict()


def test_what_reads_no_text_is_refused():
    with pytest.raises(ValueError, match="`text_encoder` is a vit, no encoder of text"):
        KenMeSHConfig(text_encoder=AutoConfig.for_model("vit"))


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_the_attention_of_the_encoder_can_be_chosen(implementation, tmp_path):
    model = build_network(dtype=torch.float32, **ENCODER)
    model.save_pretrained(tmp_path)
    loaded = KenMeSHForMeSHIndexing.from_pretrained(tmp_path, attn_implementation=implementation)
    assert loaded.kenmesh.text_encoder.config._attn_implementation == implementation
    inputs = build_batch(model)
    torch.testing.assert_close(score(loaded, inputs), score(model, inputs), rtol=1e-4, atol=1e-4)


def test_embeddings_are_those_of_the_encoder():
    model = KenMeSHForMeSHIndexing(build_config(**ENCODER))
    assert model.get_input_embeddings() is model.kenmesh.text_encoder.get_input_embeddings()
    model.resize_token_embeddings(WORDS + 9)
    assert model.get_input_embeddings().num_embeddings == WORDS + 9
    assert model.config.vocab_size == model.config.text_encoder.vocab_size == WORDS + 9
    assert model(input_ids=torch.full((2, 3), WORDS + 8)).logits.isfinite().all()


def test_a_text_starts_as_the_words_of_names():
    model = KenMeSHModel(build_config(word_path=True, **ENCODER)).eval()
    texts = build_batch(build_network(**ENCODER))
    words = model.text_features.word_vectors(model.get_input_embeddings()(texts["input_ids"]))
    output = model(texts["input_ids"], texts["attention_mask"])
    expected = torch.cat([words, words], -1) * output.text_mask.unsqueeze(-1)
    torch.testing.assert_close(output.last_hidden_state, expected)


def test_word_vectors_start_with_one_norm():
    model = KenMeSHModel(build_config(word_path=True, **ENCODER))
    vectors = model.text_features.word_vectors(model.get_input_embeddings().weight[1:])
    assert vectors.norm(dim=1).median().item() == pytest.approx(WORD_NORM, rel=0.05)
    assert model.text_features.word_weight.item() == 1


def test_label_features_follow_the_norm_of_word_vectors():
    model = build_network(**ENCODER)
    with torch.no_grad():
        before = model.kenmesh.label_features()
        assert model.kenmesh.label_features() is before
        model.kenmesh.text_features.word_norm.bias.add_(1)
        assert not torch.equal(model.kenmesh.label_features(), before)


def test_gradient_checkpointing_gives_the_same_gradients():
    model = build_network(word_path=True, **ENCODER).train()
    inputs = build_batch(model)
    model(**inputs).loss.backward()
    expected = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    model.zero_grad()
    model.gradient_checkpointing_enable()
    assert model.kenmesh.text_encoder.encoder.layer[0].gradient_checkpointing
    model(**inputs).loss.backward()
    for name, weight in model.named_parameters():
        torch.testing.assert_close(weight.grad, expected[name], msg=name)


def test_without_encoder_there_is_nothing_to_checkpoint():
    with pytest.raises(ValueError, match="does not support"):
        build_network().gradient_checkpointing_enable()


def test_weights_can_be_drawn_after_building_on_meta():
    config = build_config(word_path=True, label_bias=True, **ENCODER)
    loaded = KenMeSHForMeSHIndexing.from_pretrained(None, config=config, state_dict={})
    fresh = KenMeSHForMeSHIndexing(config).state_dict()
    for name, tensor in loaded.state_dict().items():
        assert tensor.device.type == "cpu" and tensor.float().isfinite().all(), name
        if tensor.numel() > 100 and tensor.is_floating_point():
            assert abs(tensor.std() - fresh[name].std()) < 0.3 * fresh[name].std() + 1e-3, name
    norm = loaded.kenmesh.text_features.word_norm
    assert torch.equal(norm.weight, torch.full_like(norm.weight, WORD_NORM / 6**0.5))


def test_exported_program_gives_the_same():
    model = build_network(dtype=torch.float32, word_path=True, **ENCODER)
    inputs = build_batch(model)
    inputs.pop("labels")
    with torch.no_grad():
        program = torch.export.export(model, (), inputs, strict=False)
        torch.testing.assert_close(program.module()(**inputs)[0], model(**inputs)[0])
