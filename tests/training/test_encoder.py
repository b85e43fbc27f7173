"""Training with a text encoder: what is refused, the tokens of a dataset, learning rates, a model folder."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny import TEST, TRAIN, VALIDATION, tiny_articles
from tiny_encoder import VOCABULARY, tiny_bert_config, tiny_tokenizer, write_tiny_encoder
from transformers import (
    AutoModel,
    BertModel,
    EarlyStoppingCallback,
    GPT2Config,
    GPT2Model,
    T5Config,
    T5Model,
    ViTConfig,
    ViTModel,
)

from kenmesh_hf import load
from kenmesh_hf.errors import InputError, MismatchError
from kenmesh_hf.modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor
from kenmesh_hf.preparing import PreparedDataset, load_prepared, tokenize_anew
from kenmesh_hf.training import (
    TrainingOptions,
    build_network,
    build_optimizer,
    encoder_processor,
    load_encoder,
    options_for,
    parameter_groups,
    train,
    training_rows,
)
from kenmesh_hf.training.encoder import layer_depths

QUIET = {"disable_tqdm": True, "logging_steps": 2}
QUICK = {
    "epochs": 2,
    "learning_rate": 0.01,
    "encoder_learning_rate": 1e-3,
    "batch_size": 16,
    "word_path": True,
}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny_encoder(tmp_path_factory.mktemp("encoder") / "tiny-bert"))


@pytest.fixture(scope="module")
def data(tiny_prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the prepared dataset, beside whose rows tokens are kept."""
    return Path(shutil.copytree(tiny_prepared, tmp_path_factory.mktemp("data") / "data"))


@pytest.fixture(scope="module")
def trained(encoder: str, data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    out = tmp_path_factory.mktemp("trained")
    return out, train(options_for(**QUICK, encoder=encoder), data, out, **QUIET)


def prepared_for(encoder: str, data: Path) -> PreparedDataset:
    prepared = load_prepared(data)
    processor = encoder_processor(prepared.processor, load_encoder(encoder), TrainingOptions())
    return tokenize_anew(prepared, processor, progress=False)


def save(model, folder: Path) -> str:
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return str(folder)


def test_what_is_no_encoder_of_text_is_told_in_a_sentence(tmp_path: Path) -> None:
    sizes = {"vocab_size": len(VOCABULARY)}
    decoder = GPT2Model(GPT2Config(n_embd=8, n_layer=1, n_head=2, n_positions=32, **sizes))
    with pytest.raises(InputError, match="gpt2, a decoder: .*give an encoder"):
        load_encoder(save(decoder, tmp_path / "gpt2"))
    both = T5Model(T5Config(d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, **sizes))
    with pytest.raises(InputError, match="t5, which has a decoder"):
        load_encoder(save(both, tmp_path / "t5"))
    pictures = ViTModel(
        ViTConfig(
            hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, image_size=32
        )
    )
    with pytest.raises(InputError, match="vit, which is no encoder of text"):
        load_encoder(save(pictures, tmp_path / "vit"))
    small = BertModel(tiny_bert_config(vocab_size=20))
    with pytest.raises(InputError, match="do not belong together"):
        load_encoder(save(small, tmp_path / "small"))


def test_an_encoder_that_is_not_there_is_told_in_a_sentence(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="nobody/nothing cannot be loaded as a text encoder") as error:
        load_encoder("nobody/nothing")
    assert "\n" not in str(error.value)
    damaged = Path(shutil.copytree(encoder, tmp_path / "damaged"))
    (damaged / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(InputError, match="damaged cannot be loaded as a text encoder"):
        load_encoder(str(damaged))
    bare = Path(shutil.copytree(encoder, tmp_path / "bare"))
    for file in bare.glob("*token*"):
        file.unlink()
    with pytest.raises(InputError, match="bare comes without the files of its tokenizer"):
        load_encoder(str(bare))


def test_texts_are_cut_where_the_encoder_ends(encoder: str, data: Path) -> None:
    loaded, processor = load_encoder(encoder), load_prepared(data).processor
    cut = encoder_processor(processor, loaded, TrainingOptions())
    assert (cut.max_title_tokens, cut.max_abstract_tokens) == (64, 64)
    short = encoder_processor(processor, loaded, TrainingOptions(encoder_tokens=9))
    assert short.max_abstract_tokens == 9
    [row] = short.encode(title="babali", abstract="babali " * 50)
    assert len(row["input_ids"]) == 9 and row["input_ids"][0] == 2 and row["input_ids"][-1] == 3
    with pytest.raises(InputError, match="64 tokens at most"):
        encoder_processor(processor, loaded, TrainingOptions(two_channels=False))
    narrow = processor.with_parts(max_title_tokens=24)
    one = encoder_processor(narrow, loaded, TrainingOptions(two_channels=False))
    assert (one.max_title_tokens, one.max_abstract_tokens) == (24, 40)


def test_a_dataset_is_tokenized_once(encoder: str, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared, plain = prepared_for(encoder, data), load_prepared(data)
    articles = tiny_articles(TRAIN + VALIDATION + TEST)
    by_pmid = {article.pmid: article for article in articles}
    for split, size in (("train", TRAIN), ("validation", VALIDATION), ("test", TEST)):
        rows, before = prepared.split(split), plain.split(split)
        assert (
            len(rows) == size
            and rows.column_names != []
            and set(rows.column_names) == set(before.column_names)
        )
        for row, old in zip(rows, before, strict=True):
            article = by_pmid[str(row["pmid"])]
            expected = prepared.processor.pieces.encode([article.title, article.abstract], 64)
            assert [row["title_input_ids"].tolist(), row["input_ids"].tolist()] == expected
            assert row["length"] == sum(map(len, expected))
            assert row["candidate_ids"].tolist() == old["candidate_ids"].tolist()
    streamed = {tuple(row["input_ids"].tolist()) for row in prepared.stream("train", 8)}
    assert streamed == {tuple(row["input_ids"].tolist()) for row in prepared.train}
    assert len(training_rows(prepared, TrainingOptions())) == TRAIN
    files = sorted(prepared.tokens.iterdir())
    monkeypatch.setattr("kenmesh_hf.preparing.tokens._write_tokens", None)
    assert sorted(prepared_for(encoder, data).tokens.iterdir()) == files
    assert {file.name for file in files} == {file.name for file in (data / "data").glob("*.parquet")}


def test_tokens_depend_on_the_limits_and_the_articles(encoder: str, data: Path, tmp_path: Path) -> None:
    prepared = load_prepared(Path(shutil.copytree(data, tmp_path / "data")))
    shutil.rmtree(prepared.folder / "tokens", ignore_errors=True)
    loaded = load_encoder(encoder)
    folders = {
        tokenize_anew(
            prepared,
            encoder_processor(prepared.processor, loaded, TrainingOptions(encoder_tokens=limit)),
            False,
        ).tokens
        for limit in (8, 16)
    }
    assert len(folders) == 2
    other = encoder_processor(prepared.processor, loaded, TrainingOptions(encoder_tokens=32))
    file = prepared.folder / "articles" / "test-00000.jsonl.gz"
    shutil.copy(prepared.folder / "articles" / "validation-00000.jsonl.gz", file)
    with pytest.raises(MismatchError, match="test-00000.jsonl.gz has not the articles"):
        tokenize_anew(prepared, other, False)
    file.unlink()
    with pytest.raises(InputError, match="test-00000.jsonl.gz is missing.*prepare again"):
        tokenize_anew(prepared, other, False)
    assert len(list(prepared.folder.glob("tokens/*/test-00000.parquet"))) == 2


def test_lower_layers_learn_more_slowly(encoder: str, data: Path) -> None:
    prepared = prepared_for(encoder, data)
    model = build_network(prepared.processor, text_encoder=encoder, label_bias=True)
    options = TrainingOptions(learning_rate=0.1, encoder_learning_rate=0.01, layer_decay=0.5, decay=0.5)
    groups = parameter_groups(model, options)
    assert [group["lr"] for group in groups] == pytest.approx([0.1, 0.01, 0.005, 0.0025])
    names = {id(weight): name for name, weight in model.named_parameters()}
    found = [{names.pop(id(weight)) for weight in group["params"]} for group in groups]
    assert not names
    assert all(".layer.1." in name for name in found[1]) and all(".layer.0." in name for name in found[2])
    assert "kenmesh.text_encoder.embeddings.word_embeddings.weight" in found[3]
    assert {"label_bias", "kenmesh.text_features.projection.weight"} <= found[0]
    optimizer, schedule = build_optimizer(model, options, steps_per_epoch=20)
    rates = []
    for _ in range(21):
        rates.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        schedule.step()
    assert rates[0] == pytest.approx([0.1, 0.005, 0.0025, 0.00125])
    assert rates[1] == rates[19] == pytest.approx([0.1, 0.01, 0.005, 0.0025])
    assert rates[20] == pytest.approx([0.05, 0.005, 0.0025, 0.00125])


def test_layers_are_found_by_their_names() -> None:
    names = ["embeddings.weight", "layers.0.a", "layers.0.mlp.2.b", "layers.11.a", "final_norm.weight"]
    assert layer_depths(names) == [12, 11, 11, 0, 0]
    assert layer_depths(["weight"]) == [0]


def test_a_network_starts_with_the_weights_of_the_encoder(encoder: str, data: Path) -> None:
    prepared = prepared_for(encoder, data)
    model = build_network(prepared.processor, text_encoder=encoder).kenmesh
    weights = AutoModel.from_pretrained(encoder).state_dict()
    ours = model.text_encoder.state_dict()
    assert {name for name in weights if name not in ours} == {"pooler.dense.weight", "pooler.dense.bias"}
    assert all(torch.equal(weight, weights[name]) for name, weight in ours.items())
    labels = model.label_encoder
    names = prepared.processor.pieces.pieces(prepared.processor.vocabulary.names)
    assert labels.token_ids.tolist() == [token for name in names for token in name]
    vectors = model.text_features.word_vectors(model.get_input_embeddings().weight)
    assert vectors[labels.token_ids].mean(0).abs().max() < 1e-5
    with pytest.raises(MismatchError, match="tokenizer of words"):
        build_network(load_prepared(data).processor, text_encoder=encoder)
    with pytest.raises(MismatchError, match="word vectors or a text encoder"):
        build_network(load_prepared(data).processor)


def scores(summary: dict) -> list[float]:
    return [entry["eval_MiF"] for entry in summary["history"] if "eval_MiF" in entry]


def test_a_training_leaves_a_complete_model(trained: tuple[Path, dict]) -> None:
    out, summary = trained
    losses = [entry["loss"] for entry in summary["history"] if "loss" in entry]
    assert losses[-1] < losses[0] and len(scores(summary)) == 2
    tagger = load(out)
    assert tagger.model.config.text_encoder._name_or_path == "tiny-bert"
    assert tagger.processor.pieces is not None
    article = tiny_articles(1, seed=5)[0]
    assert tagger(article.as_input(), top_k=3)


def test_a_resumed_training_gives_the_same_weights(
    trained: tuple[Path, dict], encoder: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(self, args, state, control, **kwargs):
        if state.epoch > 1.4:
            raise KeyboardInterrupt

    options = options_for(**QUICK, encoder=encoder)
    with monkeypatch.context() as patch:
        patch.setattr(EarlyStoppingCallback, "on_step_end", kill)
        with pytest.raises(KeyboardInterrupt):
            train(options, data, tmp_path, **QUIET)
    with pytest.raises(MismatchError, match="layer_decay"):
        changed = options_for(**QUICK, encoder=encoder, layer_decay=0.5)
        train(changed, data, tmp_path, resume=True, **QUIET)
    # What is computed twice changes nothing but memory and speed.
    checkpointed = options_for(**QUICK, encoder=encoder, gradient_checkpointing=True)
    summary = train(checkpointed, data, tmp_path, resume=True, **QUIET)
    one, two = (load_file(folder / "model.safetensors") for folder in (trained[0], tmp_path))
    assert all(torch.allclose(weight, two[name], atol=1e-5) for name, weight in one.items())
    assert scores(summary) == pytest.approx(scores(trained[1]), abs=1e-6)


def test_a_model_with_encoder_is_trained_further(
    trained: tuple[Path, dict], encoder: str, data: Path, tmp_path: Path
) -> None:
    gentle = options_for(epochs=1, learning_rate=1e-6, encoder_learning_rate=1e-7, batch_size=16)
    summary = train(gentle, data, tmp_path / "further", start_from=trained[0], **QUIET)
    assert abs(scores(summary)[0] - trained[1]["best"]["MiF"]) < 0.02
    config = KenMeSHForMeSHIndexing.from_pretrained(tmp_path / "further").config
    assert config.text_encoder._name_or_path == "tiny-bert" and config.special_token_ids == [2, 3]
    with pytest.raises(MismatchError, match="leave --encoder out"):
        train(options_for(encoder=encoder), data, tmp_path / "other", start_from=trained[0], **QUIET)


def test_bfloat16_trains_on_a_cpu(encoder: str, data: Path, tmp_path: Path) -> None:
    options = options_for("small", encoder=encoder, bf16=True, max_steps=3, batch_size=8)
    summary = train(options, data, tmp_path, **QUIET)
    assert summary["best"]["MiF"] > 0
    weights = load_file(tmp_path / "model.safetensors")
    assert {weight.dtype for weight in weights.values() if weight.is_floating_point()} == {torch.float32}


def test_only_an_encoder_can_be_checkpointed(data: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="leave --gradient-checkpointing out"):
        train(options_for(gradient_checkpointing=True), data, tmp_path, **QUIET)


def test_the_tokenizer_of_another_encoder_is_refused(trained: tuple[Path, dict], data: Path) -> None:
    from kenmesh_hf.training.network import continue_network

    words: KenMeSHProcessor = load_prepared(data).processor
    with pytest.raises(MismatchError, match="tokens of the model's encoder"):
        continue_network(trained[0], words, load_prepared(data).word_vectors)


def test_saved_files_hold_no_path_of_this_machine(trained: tuple[Path, dict], encoder: str) -> None:
    kept = json.loads((trained[0] / "training.json").read_text(encoding="utf-8"))["options"]
    assert kept["encoder"] == "tiny-bert" and kept["layer_decay"] == 0.9
    for file in trained[0].glob("*.json"):
        assert encoder not in file.read_text(encoding="utf-8"), file.name
