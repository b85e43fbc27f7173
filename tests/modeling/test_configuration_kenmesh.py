"""The configuration: defaults of the paper, values that cannot be, a round trip through its file."""

import json

import pytest

from kenmesh_hf.modeling.configuration_kenmesh import KenMeSHConfig


def test_defaults_are_the_papers():
    config = KenMeSHConfig()
    assert (config.embedding_size, config.hidden_size) == (200, 400)
    assert list(config.dilation_rates) == [1, 2, 3] and config.num_hidden_layers == 3
    assert config.two_channels and config.mask_labels and config.label_encoder == "gcn"
    assert config.embedding_dropout == 0.2 and config.num_gcn_layers == 2
    assert config.num_evidence_features == 0 and not config.label_bias and config.loss_labels == "all"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("vocab_size", 0),
        ("embedding_size", 0),
        ("num_lstm_layers", 0),
        ("kernel_size", 4),
        ("kernel_size", -1),
        ("dilation_rates", [1, 0]),
        ("num_gcn_layers", -1),
        ("num_label_tokens", -1),
        ("num_edges", -5),
        ("num_evidence_features", -1),
        ("evidence_hidden_size", -1),
        ("num_sampled_negatives", -1),
        ("attention_chunk_elements", 0),
        ("embedding_dropout", 1.0),
        ("embedding_dropout", -0.1),
        ("label_encoder", "tree"),
        ("loss_labels", "some"),
        ("two_channels", "perhaps"),
        ("embedding_size", "wide"),
    ],
)
def test_a_value_that_cannot_be_is_named(field, value):
    with pytest.raises(Exception, match=field):
        KenMeSHConfig(**{field: value})


def test_round_trip(tmp_path):
    config = KenMeSHConfig(
        embedding_size=8, dilation_rates=[], label_bias=True, id2label={0: "D000001", 1: "D000002"}
    )
    config.save_pretrained(tmp_path)
    again = KenMeSHConfig.from_pretrained(tmp_path)
    assert again.to_dict() == config.to_dict()
    assert again.num_labels == 2 and again.num_hidden_layers == 0
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "kenmesh"
