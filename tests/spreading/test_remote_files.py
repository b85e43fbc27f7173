"""Inputs and outputs that lie elsewhere: a server that speaks S3, and the test double of the Hub."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from hub_server import TOKEN, HubServer, Repository, StoredFile
from moto.server import ThreadedMotoServer
from patience import PATIENCE
from tiny import tiny_articles

from kenmesh_hf.reading import write_articles

pytestmark = pytest.mark.ray
ARTICLES = 30
SECRETS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("files")
    for number in range(3):
        articles = tiny_articles(ARTICLES, seed=number, first_pmid=1000 * number + 1)
        write_articles(articles, folder / f"part{number}.jsonl.gz")
    return sorted(folder.iterdir())


@pytest.fixture
def s3(monkeypatch) -> Iterator[tuple[dict[str, str], object]]:
    """Variables that lead to the server, and a client of it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    settings = SECRETS | {"AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3", endpoint_url=settings["AWS_ENDPOINT_URL"])
    client.create_bucket(Bucket="library")
    yield settings, client
    server.stop()


def kenmesh(*arguments: object, code: int = 0, **settings: str) -> str:
    command = [sys.executable, "-m", "kenmesh_hf", *map(str, arguments)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment |= {"OMP_NUM_THREADS": "1"} | settings
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def assert_tags(outputs: dict[str, bytes], files: list[Path], folder: str) -> None:
    """A file of tags for each input, and a line of the manifest that leads to it."""
    assert {name for name in outputs if not name.startswith(".")} == {
        *(f"part{number}.jsonl" for number in range(len(files))), "manifest.jsonl"
    }  # fmt: skip
    for line in outputs["manifest.jsonl"].splitlines():
        record = json.loads(line)
        assert record["input"].startswith(folder) and record["articles"] == ARTICLES
        rows = [json.loads(row) for row in outputs[record["output"]].splitlines()]
        assert len(rows) == ARTICLES and all(row["tags"] for row in rows)


def test_from_s3_to_s3(s3, files, tiny_model):
    settings, client = s3
    for path in files:
        client.upload_file(str(path), "library", f"pubmed/{path.name}")

    def stored(prefix: str) -> dict[str, dict]:
        found = client.list_objects_v2(Bucket="library", Prefix=prefix).get("Contents", [])
        return {item["Key"].removeprefix(prefix): item for item in found}

    job = ["tag", "s3://library/pubmed/", "--out", "s3://library/tags", "--engine", "ray", "--workers", "2"]
    job += ["--model", tiny_model, "--quiet"]
    kenmesh(*job, **settings)
    before = stored("tags/")
    contents = {
        name: client.get_object(Bucket="library", Key=item["Key"])["Body"].read()
        for name, item in before.items()
    }
    assert_tags(contents, files, "s3://library/pubmed/part")
    assert "--resume" in kenmesh(*job, code=1, **settings)

    # Only what changed is done again.
    client.upload_file(str(files[0]), "library", "pubmed/part2.jsonl.gz")
    kenmesh(*job, "--resume", **settings)
    after = stored("tags/")
    changed = {name for name in after if after[name]["LastModified"] != before[name]["LastModified"]}
    assert {"part2.jsonl", "manifest.jsonl"} <= changed and not changed & {"part0.jsonl", "part1.jsonl"}
    said = kenmesh("tag", "s3://nobodys/files", *job[2:], code=1, **settings)
    assert said.startswith("kenmesh: error: s3://nobodys/files") and said.count("\n") == 1


def test_from_the_hub_to_the_hub(files, tiny_model, tmp_path):
    with HubServer() as server:
        given = {f"data/{path.name}": StoredFile(path.read_bytes()) for path in files}
        for name, content in (("library/pubmed", given), ("library/tags", {})):
            repository = server.repositories["dataset", name] = Repository()
            repository.add("main", content, "first")
        settings = {"HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path), "HF_TOKEN": TOKEN}
        kenmesh(
            "tag", "hf://datasets/library/pubmed/data", "--out", "hf://datasets/library/tags/out",
            "--engine", "ray", "--workers", "1", "--model", tiny_model, "--quiet",
            **settings, HF_HUB_DISABLE_XET="1",
        )  # fmt: skip
        outputs = server.files("library/tags", kind="dataset")
    found = {name.removeprefix("out/"): content for name, content in outputs.items()}
    assert_tags(found, files, "hf://datasets/library/pubmed/data/part")


def test_preparing_from_s3(s3, tiny_sources, tiny_prepared, tmp_path):
    settings, client = s3
    for path in map(Path, tiny_sources["articles"]):
        client.upload_file(str(path), "library", f"articles/{path.name}")
    said = ["prepare", "--out", tmp_path / "data", "--quiet", "--articles", "s3://library/articles/"]
    for name, value in tiny_sources.items():
        if name != "articles":
            said += [f"--{name.replace('_', '-')}", value]
    kenmesh(*said, "--engine", "ray", "--workers", "2", **settings)
    rows = {path.name: path.read_bytes() for path in (tmp_path / "data" / "data").iterdir()}
    assert rows == {path.name: path.read_bytes() for path in (tiny_prepared / "data").iterdir()}
