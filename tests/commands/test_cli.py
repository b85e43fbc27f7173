"""The command line: help, exit codes, and one sentence instead of a traceback for whatever is wrong."""

import json
import os
import runpy
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from tiny_model import UNSEEN
from transformers import BertConfig, BertModel

import kenmesh_hf
from kenmesh_hf import __version__, preparing, training
from kenmesh_hf.commands import main
from kenmesh_hf.commands.cli import COMMANDS
from kenmesh_hf.preparing import PrepareOptions
from kenmesh_hf.reading import write_articles


@pytest.fixture
def articles_file(tmp_path):
    write_articles(UNSEEN[:5], tmp_path / "articles.jsonl")
    return tmp_path / "articles.jsonl"


@pytest.fixture
def fails(capsys):
    """Runs a command that must fail; gives the sentence that it says."""

    def fails(*arguments) -> str:
        code = main([*map(str, arguments)])
        said = capsys.readouterr()
        assert code == 1 and said.out == ""
        last = said.err.strip().splitlines()[-1]
        assert last.startswith("kenmesh: error: ") and "Traceback" not in said.err
        return last

    return fails


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert f"kenmesh {command}" in said.split("examples:")[1]


def test_help_and_version(capsys):
    for option, expected in (("--help", "tag"), ("--version", __version__)):
        with pytest.raises(SystemExit) as ended:
            main([option])
        assert ended.value.code == 0 and expected in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [[], ["tagg"], ["tag", "--top-k", "many"], ["tag", "--preset", "best"], ["train", "data"]]
)
def test_wrong_usage_ends_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2 and "usage: kenmesh" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--title", "a"], "either files"),
        (["--resume"], "give inputs and --out"),
        (["--threshold", "2"], "`threshold` is 2.0"),
        (["--top-k", "-1"], "`top_k` is -1"),
        (["--batch-size", "0"], "batch_size is 0"),
        (["--num-proc", "0"], "num_proc is 0"),
        (["--min-candidates", "-1"], "min_candidates is -1"),
        (["--include", "C77"], "'C77' is no place in MeSH 2024"),
        (["--exclude", "D000001"], "D000001 is not a descriptor"),
        (["--include", "C01", "more.xml"], "files go before --include"),
        (["--input-format", "word"], "Unknown format 'word'"),
        (["--format", "csv", "--evidence"], "no place for --evidence"),
        (["--out", "{folder}/tags.nbib", "--evidence"], "no place for --evidence"),
        (["--out", "{folder}"], "Cannot write"),
        (["--out", "{folder}/none/tags.csv"], "Cannot write"),
        (["--out", "{folder}/tags.jsonl.gz"], "not be compressed"),
        (["--device", "warp:0"], "warp"),
    ],
)
def test_wrong_options_of_tag_are_one_sentence(fails, tiny_model, articles_file, tmp_path, options, sentence):
    options = [option.replace("{folder}", str(tmp_path)) for option in options]
    assert sentence in fails("tag", articles_file, "--model", tiny_model, "--quiet", *options)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_one_sentence(fails, tiny_model, articles_file):
    said = fails("tag", articles_file, "--model", tiny_model, "--quiet", "--device", "cuda")
    assert f"{tiny_model} cannot be loaded" in said


def test_a_missing_file_is_told_before_any_work(fails, tiny_model, articles_file, tmp_path):
    missing = tmp_path / "missing.xml"
    assert "missing.xml does not exist" in fails("tag", articles_file, missing, "--model", tiny_model)


def test_tag_without_anything_is_one_sentence(fails, tiny_model):
    assert "either files" in fails("tag", "--model", tiny_model)


def damage(folder, name):
    path = folder / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    "name",
    [
        "model.safetensors",
        "config.json",
        "tokenizer.json",
        "mesh_vocabulary.tsv.gz",
        "thresholds.safetensors",
        "candidates.safetensors",
        "candidates.json",
        "neighbours.safetensors",
        "processor_config.json",
    ],
)
@pytest.mark.parametrize("checked", [True, False])
def test_a_damaged_model_is_one_sentence(fails, tiny_model, articles_file, tmp_path, name, checked):
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    damage(folder, name)
    if not checked:
        (folder / "checksums.json").unlink()
    fails("tag", articles_file, "--model", folder, "--quiet")


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "mesh_vocabulary.tsv.gz"])
def test_a_missing_part_is_one_sentence(fails, tiny_model, articles_file, tmp_path, name):
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    (folder / name).unlink()
    assert name in fails("tag", articles_file, "--model", folder, "--quiet")
    (folder / "checksums.json").unlink()
    fails("tag", articles_file, "--model", folder, "--quiet")


def test_another_model_is_one_sentence(fails, articles_file, tmp_path):
    sizes = {"vocab_size": 10, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1}
    BertModel(BertConfig(**sizes, intermediate_size=4)).save_pretrained(tmp_path / "bert")
    for command in ("tag", articles_file), ("evaluate", "--articles", articles_file), ("info",):
        assert "'bert' model" in fails(*command, "--model", tmp_path / "bert")
    assert "neither a folder nor a name" in fails("tag", articles_file, "--model", tmp_path / "nowhere")


def test_weights_of_other_sizes_are_one_sentence(fails, tiny_model, articles_file, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"embedding_size": 6}))
    fails("tag", articles_file, "--model", folder, "--quiet")
    (folder / "config.json").write_text(json.dumps(config | {"kernel_size": "wide"}))
    assert "kernel_size" in fails("tag", articles_file, "--model", folder, "--quiet")


def test_a_closed_pipe_is_no_error(monkeypatch):
    def closed(arguments):
        raise BrokenPipeError

    monkeypatch.setitem(COMMANDS, "info", replace(COMMANDS["info"], run=closed))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", sys.stdout)
        assert main(["info"]) == 0


def test_prepare_and_train_get_their_options(monkeypatch):
    calls = []
    report = {"splits": {"train": {"articles": 7}}, "index": "by hand", "files": []}
    monkeypatch.setattr(
        preparing, "prepare", lambda options, progress: calls.append((options, progress)) or report
    )
    monkeypatch.setattr(training, "train", lambda *arguments, **options: calls.append((arguments, options)))
    given = ["--mesh", "desc.xml", "--out", "data", "--pubmed", "a.xml", "b.xml", "--no-human-only"]
    assert main(["prepare", *given, "--split-by", "pmid", "--max-words", "9", "--quiet"]) == 0
    options, progress = calls.pop()
    assert options == PrepareOptions(
        mesh="desc.xml", out="data", pubmed=["a.xml", "b.xml"], human_only=False, split_by="pmid", max_words=9
    )
    assert progress is False
    main(["train", "data", "--out", "model", "--epochs", "2", "--no-residual", "--resume"])
    arguments, settings = calls.pop()
    assert arguments[0] == training.options_for("small", epochs=2, residual=False)
    assert [str(path) for path in arguments[1:]] == ["data", "model"]
    assert settings["resume"] is True
    main(["train", "data", "--out", "model", "--preset", "paper"])
    assert calls.pop()[0][0] == training.TrainingOptions()


def test_python_m_is_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["kenmesh", "tag", "--model", "no where", "--title", "a"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("kenmesh_hf", run_name="__main__")
    assert ended.value.code == 1 and capsys.readouterr().err.startswith("kenmesh: error: ")


@pytest.mark.parametrize(
    "words, code",
    [(["--help"], 0), (["tag", "--help"], 0), (["train", "--help"], 0), (["tag"], 1), (["frobnicate"], 2)],
)
def test_help_and_wrong_usage_load_no_network(words, code):
    script = (
        "import sys; sys.argv[0] = 'kenmesh'; sys.modules |= {'torch': None, 'transformers': None}\n"
        "from kenmesh_hf.commands import main; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


def test_an_old_encoding_stops_no_command(tiny_model):
    """In the C locale, which Python is kept from mending, standard output could write ASCII only."""
    old = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    one = ["--model", tiny_model, "--title", "babake", "--top-k", "1", "--format", "table"]
    for words, letter in ((["tag", "--help"], "…"), (["tag", *one], "↳")):
        command = [sys.executable, "-m", "kenmesh_hf", *map(str, words)]
        done = subprocess.run(command, capture_output=True, env=os.environ | old)
        assert done.returncode == 0, done.stderr
        assert letter in done.stdout.decode("utf-8")
    missing = [sys.executable, "-m", "kenmesh_hf", "tag", "nö.xml"]
    done = subprocess.run(missing, capture_output=True, env=os.environ | old)
    assert done.returncode == 1 and done.stderr.startswith(b"kenmesh: error: n")


def test_threads_of_torch_sleep_while_tagging_unless_the_user_says_otherwise(monkeypatch, tiny_model):
    command = ["tag", "--model", str(tiny_model), "--title", "babake", "--quiet"]
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    assert main(command) == 0
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    assert main(command) == 0
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"


def test_the_package_knows_its_names_and_no_others():
    assert all(hasattr(kenmesh_hf, name) for name in kenmesh_hf.__all__)
    with pytest.raises(AttributeError, match="kenmesh_hf.*nothing"):
        kenmesh_hf.nothing  # noqa: B018


def test_a_port_that_cannot_be_is_told_before_the_model_is_loaded(fails):
    for port in ("-1", "65536"):
        assert f"--port is {port}" in fails("serve", "--port", port)
