"""Push and pull against the Hub's test double, each in a process of its own, as two people would."""

import json
import os
import sys
from subprocess import DEVNULL, PIPE, Popen

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hub_server import TOKEN, HubServer, StoredFile
from patience import PATIENCE

from kenmesh_hf import sharing
from kenmesh_hf.errors import InputError, MismatchError
from kenmesh_hf.modeling.checksums_kenmesh import write_checksums
from kenmesh_hf.modeling.configuration_kenmesh import KenMeSHConfig
from kenmesh_hf.modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor
from kenmesh_hf.modeling.vocabulary_kenmesh import MeshVocabulary
from kenmesh_hf.words import build_tokenizer

NAME = "library/mesh-tagger"
PRELUDE = """
import json, sys
from pathlib import Path
from kenmesh_hf.sharing import pull, push, push_dataset

def say(call):
    try:
        return str(call())
    except Exception as error:
        return f"{type(error).__name__}: {error}"

folder, name, token = sys.argv[1:]
"""


@pytest.fixture
def server():
    with HubServer() as server:
        yield server


@pytest.fixture
def start(server, tmp_path):
    """Starts Python with the Hub's address set before any import; the last line it prints is JSON."""

    def start(code, folder="", **environment):
        settings = {
            "HF_ENDPOINT": server.url,
            "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-c", PRELUDE + code, str(folder), NAME, TOKEN]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        environment = inherited | settings | environment
        return Popen(command, env=environment, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, text=True)

    return start


@pytest.fixture
def run(start):
    def run(code, folder="", **options):
        output, errors = start(code, folder, **options).communicate(timeout=PATIENCE)
        assert output, errors
        return json.loads(output.splitlines()[-1])

    return run


@pytest.fixture
def folder(tmp_path):
    """A saved model as far as the Hub can tell."""
    files = {
        "config.json": b'{"model_type": "kenmesh"}',
        "model.safetensors": b"weights " * 50_000,
        "mesh_vocabulary.tsv.gz": b"vocabulary",
        "neighbours.safetensors": b"index " * 40_000,
        "thresholds.safetensors": b"thresholds",
        "tokenizer.json": b"{}",
        "modeling_kenmesh.py": b"",
        "trainer_state.json": b"{}",
        "optimizer.pt": b"pickle",
        ".cache": b"",
    }
    folder = tmp_path / "model"
    (folder / "checkpoint-1").mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    write_checksums(folder)
    return folder


SHARED = {
    "README.md",
    "checksums.json",
    "config.json",
    "mesh_vocabulary.tsv.gz",
    "model.safetensors",
    "modeling_kenmesh.py",
    "neighbours.safetensors",
    "thresholds.safetensors",
    "tokenizer.json",
}


def test_everything_goes_in_one_commit_and_comes_back(server, run, folder):
    pushed = run(
        """
plan = push(folder, name, dry_run=True)
done = push(folder, name, token=token, commit_message="First")
print(json.dumps([plan.lines(), done.files, done.left_out, done.url]))
""",
        folder,
    )
    plan, files, left_out, url = pushed
    stored = server.files(NAME)
    assert set(stored) == SHARED | {".gitattributes"}
    assert server.repositories["model", NAME].messages == ["initial commit", "First"]
    assert files == {path: len(content) for path, content in stored.items() if path != ".gitattributes"}
    assert set(left_out) == {".cache", "optimizer.pt", "trainer_state.json"}
    assert url.startswith(server.url)
    listed = [[part.strip() for part in line.rsplit("  ", 1)] for line in plan]
    assert [f"{len(stored['model.safetensors']):,}", "model.safetensors"] in listed
    assert ["left out", "optimizer.pt"] in listed
    assert f'model="{NAME}"' in stored["README.md"].decode()

    pulled = run(
        """
first, again = pull(name), pull(name)
sizes = {path.name: len(path.read_bytes()) for path in first.iterdir()}
print(json.dumps([str(first), first == again, sizes]))
"""
    )
    assert pulled[1:] == [True, {path: len(content) for path, content in stored.items()}]
    server.stop()
    offline = run(
        """
known = [str(pull(name)), str(pull(name, local_files_only=True))]
print(json.dumps([*known, say(lambda: pull("library/other"))]))
""",
        HF_HUB_OFFLINE="1",
    )
    assert offline[:2] == [pulled[0]] * 2
    assert "while online" in offline[2]


def test_interrupted_upload_publishes_nothing_and_the_next_sends_the_rest(server, start, run, folder):
    server.hold_after = 2
    process = start("push(folder, name, token=token)", folder)
    assert server.holding.wait(PATIENCE)
    process.kill()
    process.communicate()
    assert set(server.files(NAME)) == {".gitattributes"}

    sent = sum(request.startswith("PUT") for request in server.requests)
    arrived = len(server.large_files)
    server.hold_after, server.drop_puts = None, 1
    run("print(json.dumps(push(folder, name, token=token).url))", folder)
    assert set(server.files(NAME)) == SHARED | {".gitattributes"}
    resent = sum(request.startswith("PUT") for request in server.requests) - sent
    assert arrived == 2
    assert resent == 4 - arrived + 1  # what was missing, and once more what was dropped


def test_dry_run_asks_the_hub_nothing(server, run, folder):
    assert run("print(json.dumps(push(folder, name, dry_run=True).url))", folder) is None
    assert server.requests == []


def test_index_may_stay_home_and_goes_from_the_hub_with_the_next_push(server, run, folder):
    answers = run(
        """
push(folder, name, token=token)
before = pull(name)
push(folder, name, token=token, with_index=False)
after = pull(name)
index = "neighbours.safetensors"
print(json.dumps([(before / index).exists(), (after / index).exists(), before != after]))
""",
        folder,
    )
    assert answers == [True, False, True]
    assert "neighbours.safetensors" in json.loads(server.files(NAME)["checksums.json"])


def test_private_repositories_and_revisions(server, run, folder):
    answers = run(
        """
refused = say(lambda: push(folder, name))
push(folder, name, token=token, private=True)
(Path(folder) / "config.json").write_text("{}")
push(folder, name, token=token, revision="mesh-2025")
old, new = (pull(name, revision, token, cache_dir=f"{folder}-cache") for revision in (None, "mesh-2025"))
pinned = pull(name, old.name, token)
print(json.dumps([
    refused,
    say(lambda: pull(name)),
    say(lambda: pull(name, "mesh-1966", token)),
    say(lambda: pull("library/unknown", token=token)),
    *((path / "config.json").read_text() for path in (old, new, pinned)),
    str(old).startswith(f"{folder}-cache"),
]))
""",
        folder,
    )
    assert "does not let you write to library/mesh-tagger" in answers[0] and "hf auth login" in answers[0]
    assert "private" in answers[1] and "token" in answers[1]
    assert "no revision 'mesh-1966'" in answers[2]
    assert "check the name" in answers[3]
    assert answers[4:] == ['{"model_type": "kenmesh"}', "{}", '{"model_type": "kenmesh"}', True]
    assert all(answer.startswith("HubError: ") for answer in answers[:4])


def test_missing_and_damaged_files_are_named(server, run, folder):
    run("print(json.dumps(push(folder, name, token=token).url))", folder)
    server.hidden.add("thresholds.safetensors")
    asked = """print(json.dumps(say(lambda: pull(name, cache_dir=f"{folder}-cache"))))"""
    answer = run(asked, folder)
    assert (
        answer.startswith("HubError")
        and "thresholds.safetensors" in answer
        and "push the model again" in answer
    )

    server.hidden.clear()
    repository = server.repositories["model", NAME]
    stored = dict(repository.commits[repository.find("main")])
    weights = stored["model.safetensors"].content
    repository.add("main", stored | {"model.safetensors": StoredFile(weights[:1000], large=True)}, "cut")
    answer = run(asked, folder)
    assert answer.startswith("MismatchError: model.safetensors") and "cut short" in answer

    del stored["model.safetensors"]
    repository.add("main", stored, "gone")
    answer = run(asked, folder)
    assert answer.startswith("InputError: model.safetensors is missing")


@pytest.mark.parametrize(
    ("spoil", "error", "sentence"),
    [
        (lambda folder: (folder / "config.json").unlink(), InputError, "no config.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), InputError, "no weights"),
        (lambda folder: (folder / "tokenizer.json").unlink(), InputError, "tokenizer.json is missing"),
        (lambda folder: (folder / "tokenizer.json").write_text(""), MismatchError, "tokenizer.json"),
        (lambda folder: (folder / "results.json").write_text("["), InputError, "results.json is not JSON"),
        (lambda folder: folder.rename(folder.with_name("elsewhere")), InputError, "is not a folder"),
    ],
)
def test_a_folder_that_cannot_be_used_is_not_pushed(folder, spoil, error, sentence):
    spoil(folder)
    with pytest.raises(error, match=sentence):
        sharing.push(folder, NAME, dry_run=True)


def test_a_card_written_by_hand_is_sent_as_it_is(folder):
    card = "# My own card\n"
    (folder / "README.md").write_text(card)
    assert sharing.push(folder, NAME, dry_run=True).files["README.md"] == len(card)


def test_pull_takes_folders_and_refuses_what_is_no_name(folder):
    assert sharing.pull(folder) == folder
    for name in ("no-such-folder/deeper/still", "./mesh-tagger", "mesh tagger"):
        with pytest.raises(InputError, match="neither a folder nor a name"):
            sharing.pull(name)


def test_prepared_dataset_is_loaded_from_the_hub_without_code(server, run, tmp_path):
    folder = tmp_path / "prepared"
    folder.mkdir()
    rows = {
        "pmid": ["1", "2"],
        "labels": [[1, 2], [3]],
        "unknown_labels": [0, 0],
        "candidate_ids": [[1, 2], [4]],
    }
    for split in ("train", "test"):
        pq.write_table(pa.table(rows), folder / f"kenmesh-{split}-00000-of-00001.parquet")
    (folder / "results.json").write_text(json.dumps({"mesh_year": 2021, "sources": ["pubmed20n0014.xml.gz"]}))
    loaded = run(
        """
push_dataset(folder, name, token=token, private=True)
from datasets import load_dataset
data = load_dataset(name, token=token)
print(json.dumps({split: list(data[split]["labels"]) for split in data}))
""",
        folder,
    )
    assert loaded == {"train": [[1, 2], [3]], "test": [[1, 2], [3]]}
    files = server.files(NAME, kind="dataset")
    assert "data/train-00000-of-00001.parquet" in files
    assert "0.667" in files["README.md"].decode() and "MeSH 2021" in files["README.md"].decode()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folder of a tiny untrained model, and the pipeline that was saved there."""
    uis, names = ["D000001", "D000002", "D000003"], ["Aspirin", "Stroke", "Humans"]
    trees = [["D02.455"], ["C10.228"], ["B01.050"]]
    vocabulary = MeshVocabulary(uis, names, [[] for _ in uis], trees, year=2021)
    tokenizer = build_tokenizer(["aspirin", "stroke", "humans", "treatment"])
    config = KenMeSHConfig(
        vocab_size=len(tokenizer),
        embedding_size=8,
        num_label_tokens=3,
        id2label=dict(enumerate(uis)),
        label2id={ui: label for label, ui in enumerate(uis)},
    )
    torch.manual_seed(0)
    model = KenMeSHForMeSHIndexing(config)
    ids = torch.arange(3)
    model.kenmesh.set_labels(ids + 2, ids, torch.empty(2, 0, dtype=torch.long))
    folder = tmp_path_factory.mktemp("tagger")
    model.save_pretrained(folder)
    processor = KenMeSHProcessor(tokenizer, vocabulary=vocabulary)
    processor.save_pretrained(folder)
    return folder, MeSHIndexingPipeline(model=model, processor=processor)


LOAD = """
from transformers import AutoConfig
from kenmesh_hf.modeling.configuration_kenmesh import KenMeSHConfig
from kenmesh_hf.modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor

AutoConfig.register("kenmesh", KenMeSHConfig, exist_ok=True)

def tags(**options):
    model = KenMeSHForMeSHIndexing.from_pretrained(name, **options)
    tagger = MeSHIndexingPipeline(model=model, processor=KenMeSHProcessor.from_pretrained(name, **options))
    return [[tag["ui"], round(tag["score"], 5)] for tag in tagger("Aspirin after stroke.", top_k=3)]
"""


def test_a_pushed_model_tags_elsewhere_online_and_offline(server, run, saved):
    folder, tagger = saved
    ours = [[tag["ui"], round(tag["score"], 5)] for tag in tagger("Aspirin after stroke.", top_k=3)]
    run("print(json.dumps(push(folder, name, token=token, revision='v1').url))", folder)
    assert run(LOAD + "print(json.dumps(tags(revision='v1')))") == ours  # main holds no model
    server.stop()
    cached = "print(json.dumps([tags(revision='v1'), tags(revision='v1', local_files_only=True)]))"
    assert run(LOAD + cached, HF_HUB_OFFLINE="1") == [ours, ours]
