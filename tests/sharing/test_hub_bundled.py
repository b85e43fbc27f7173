"""The bundled checkpoint on the Hub: code included, it tags where the package is not installed."""

import json
import os
import subprocess
import sys
from pathlib import Path

from hub_server import TOKEN, HubServer
from patience import PATIENCE
from without_package import CODE as WITHOUT_PACKAGE

from kenmesh_hf import load
from kenmesh_hf.files import BUNDLED_CHECKPOINT
from kenmesh_hf.modeling import checksums_kenmesh

NAME = "library/bundled"
ARTICLE = {
    "title": "Aspirin for the prevention of stroke in older women",
    "abstract": "A randomized trial of low-dose aspirin in women aged 65 years or older.",
}
TAG = (
    WITHOUT_PACKAGE.split("import torch\n")[0]
    + """
from transformers import pipeline
tagger = pipeline("mesh-indexing", model=sys.argv[1], trust_remote_code=True)
tags = tagger(json.loads(sys.argv[2]), top_k=5)
print(json.dumps([type(tagger).__module__, [[tag["ui"], tag["score"]] for tag in tags]]))
"""
)


def run(hub: str, folder: Path, *arguments: str, **changes: str) -> str:
    settings = {
        "HF_ENDPOINT": hub,
        "HF_HOME": str(folder / "home"),
        "HF_TOKEN": TOKEN,
        "HF_HUB_DISABLE_XET": "1",
        "OMP_NUM_THREADS": "1",
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=inherited | settings | changes,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_it_is_pushed_with_its_code_and_tags_without_the_package(tmp_path: Path) -> None:
    with HubServer() as server:
        run(server.url, tmp_path, "-m", "kenmesh_hf", "push", str(BUNDLED_CHECKPOINT), NAME)
        files = server.files(NAME)
        online = run(server.url, tmp_path, "-c", TAG, NAME, json.dumps(ARTICLE))
    offline = run(server.url, tmp_path, "-c", TAG, NAME, json.dumps(ARTICLE), HF_HUB_OFFLINE="1")
    names = {path.name for path in BUNDLED_CHECKPOINT.iterdir() if path.is_file()}
    assert set(files) >= names | {
        path.name for path in Path(checksums_kenmesh.__file__).parent.glob("*_kenmesh.py")
    }
    assert f'model="{NAME}"' in files["README.md"].decode()
    module, tags = json.loads(online)
    assert json.loads(offline) == [module, tags] and module.startswith("transformers_modules.")
    ours = load()(ARTICLE, top_k=5)
    assert [ui for ui, _ in tags] == [tag["ui"] for tag in ours]
    assert all(abs(score - tag["score"]) < 1e-5 for (_, score), tag in zip(tags, ours, strict=True))
