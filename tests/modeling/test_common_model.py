"""What Transformers expects of every model: loading, saving, initial weights, outputs, embeddings."""

import copy
import json

import pytest
import torch
from kenmesh_networks import WORDS, build_batch, build_config, build_network, score

from kenmesh_hf.modeling.modeling_kenmesh import KenMeSHForMeSHIndexing, KenMeSHModel

TEXTS = ("input_ids", "attention_mask", "title_input_ids", "title_attention_mask")
FULL = {"num_evidence_features": 3, "label_bias": True}
both_classes = pytest.mark.parametrize("model_class", [KenMeSHModel, KenMeSHForMeSHIndexing])


def build_inputs(model_class):
    inputs = build_batch(build_network(**FULL))
    return inputs if model_class is KenMeSHForMeSHIndexing else {name: inputs[name] for name in TEXTS}


@both_classes
def test_hidden_states_are_the_lstm_and_each_level(model_class):
    model, inputs = model_class(build_config(**FULL)).eval(), build_inputs(model_class)
    assert model(**inputs).hidden_states is None
    asked = model(**inputs, output_hidden_states=True).hidden_states
    model.config.output_hidden_states = True
    for states in (asked, model(**inputs).hidden_states):
        assert len(states) == model.config.num_hidden_layers + 1
        assert all(state.shape == (4, 9, model.config.hidden_size) for state in states)


def test_hidden_states_are_part_of_the_graph():
    model = KenMeSHModel(build_config())
    output = model(**build_inputs(KenMeSHModel), output_hidden_states=True)
    output.hidden_states[0].retain_grad()
    output[0].flatten()[0].backward()
    assert output.hidden_states[0].grad is not None
    assert output.hidden_states[-1] is output.last_hidden_state


@both_classes
def test_asking_for_attentions_between_words_changes_nothing(model_class):
    model, inputs = model_class(build_config(**FULL)).eval(), build_inputs(model_class)
    assert model(**inputs, output_attentions=True).keys() == model(**inputs).keys()


@both_classes
def test_tuple_and_dictionary_hold_the_same(model_class):
    model, inputs = model_class(build_config(**FULL)).eval(), build_inputs(model_class)
    named = model(**inputs, output_hidden_states=True)
    plain = model(**inputs, output_hidden_states=True, return_dict=False)
    assert isinstance(plain, tuple) and len(plain) == len(named)
    for one, other in zip(plain[:-1], named.to_tuple()[:-1], strict=True):
        torch.testing.assert_close(one, other)
        assert one.dtype != torch.bool


@both_classes
def test_embeddings_are_found_and_replaced(model_class):
    model = model_class(build_config())
    assert isinstance(model.get_input_embeddings(), torch.nn.Embedding)
    assert model.get_output_embeddings() is None
    replacement = torch.nn.Embedding(WORDS, 6)
    model.set_input_embeddings(replacement)
    assert model.get_input_embeddings() is replacement


@both_classes
@pytest.mark.parametrize("size", [WORDS + 9, WORDS - 9])
def test_resized_embeddings_keep_their_rows(model_class, size):
    model = model_class(build_config())
    before = model.get_input_embeddings().weight.detach().clone()
    model.resize_token_embeddings(size)
    after = model.get_input_embeddings()
    assert after.num_embeddings == size == model.config.vocab_size
    kept = min(size, WORDS)
    assert torch.equal(after.weight[:kept], before[:kept])
    assert model(input_ids=torch.full((2, 3), size - 1))[0].isfinite().all()


@both_classes
def test_missing_weights_are_drawn_as_new_ones(model_class):
    config = build_config(**FULL)
    loaded = model_class.from_pretrained(None, config=config, state_dict={})
    for name, tensor in loaded.state_dict().items():
        assert tensor.device.type == "cpu" and tensor.float().isfinite().all(), name
        expected = model_class(copy.deepcopy(config)).state_dict()[name]
        if tensor.is_floating_point() and tensor.numel() > 100:
            assert abs(tensor.std() - expected.std()) < 0.3 * expected.std() + 1e-3, name
        elif not tensor.is_floating_point():
            assert torch.equal(tensor, expected), name


@both_classes
def test_weights_can_be_drawn_after_building_on_meta(model_class):
    with torch.device("meta"):
        model = model_class(build_config(**FULL))
    model.to_empty(device="cpu")
    for tensor in [*model.parameters(), *model.buffers()]:
        tensor.detach().fill_(7)
    model.init_weights()
    fresh = model_class(build_config(**FULL))
    for name, buffer in model.named_buffers():
        assert torch.equal(buffer, dict(fresh.named_buffers())[name]), name
    for name, weight in model.named_parameters():
        assert not (weight == 7).any(), name


def test_initial_weights_follow_the_range():
    table = KenMeSHModel(build_config(vocab_size=4000, initializer_range=0.1)).get_input_embeddings()
    assert table.weight.std().item() == pytest.approx(0.1, rel=0.05)
    assert (table.weight[0] == 0).all()


def test_base_and_head_read_each_others_files(tmp_path):
    head = build_network(dtype=torch.float32, **FULL)
    head.save_pretrained(tmp_path / "head")
    base, report = KenMeSHModel.from_pretrained(tmp_path / "head", output_loading_info=True)
    assert not report["missing_keys"]
    inputs = {name: build_batch(head)[name] for name in TEXTS}
    torch.testing.assert_close(base.eval()(**inputs)[0], head.kenmesh(**inputs)[0])
    base.save_pretrained(tmp_path / "base")
    _, report = KenMeSHForMeSHIndexing.from_pretrained(tmp_path / "base", output_loading_info=True)
    assert report["missing_keys"] and all(key.split(".")[0] != "kenmesh" for key in report["missing_keys"])


def test_saved_in_shards(tmp_path):
    model = build_network(dtype=torch.float32, **FULL)
    model.save_pretrained(tmp_path, max_shard_size="2KB")
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert len(set(index["weight_map"].values())) > 1
    inputs = build_batch(model)
    assert torch.equal(score(KenMeSHForMeSHIndexing.from_pretrained(tmp_path), inputs), score(model, inputs))


def test_loaded_in_half_precision(tmp_path):
    build_network(dtype=torch.float32, **FULL).save_pretrained(tmp_path)
    model = KenMeSHForMeSHIndexing.from_pretrained(tmp_path, dtype=torch.bfloat16)
    floats = [tensor for tensor in model.state_dict().values() if tensor.is_floating_point()]
    assert {tensor.dtype for tensor in floats} == {torch.bfloat16}
    assert model.kenmesh.label_encoder.edges.dtype == torch.long
    assert score(model, build_batch(model)).isfinite().all()


def test_another_number_of_labels_keeps_the_rest(tmp_path):
    old = build_network(dtype=torch.float32, **FULL)
    old.save_pretrained(tmp_path)
    new = KenMeSHForMeSHIndexing.from_pretrained(
        tmp_path, num_labels=5, num_label_tokens=8, num_edges=4, ignore_mismatched_sizes=True
    )
    assert new.label_bias.shape == (5,) and new.kenmesh.label_encoder.edges.shape == (2, 4)
    kept = {**new.state_dict()}
    changed = [name for name, tensor in old.state_dict().items() if tensor.shape != kept[name].shape]
    assert {name.split(".")[-1] for name in changed} == {"label_bias", "token_ids", "token_offsets", "edges"}
    assert all(torch.equal(kept[name], old.state_dict()[name]) for name in kept if name not in changed)


@both_classes
def test_exported_program_gives_the_same(model_class):
    model, inputs = model_class(build_config(**FULL)).eval(), build_inputs(model_class)
    inputs.pop("labels", None)
    with torch.no_grad():
        program = torch.export.export(model, (), inputs, strict=False)
        expected, exported = model(**inputs)[0], program.module()(**inputs)[0]
    torch.testing.assert_close(exported, expected)
