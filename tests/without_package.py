"""A saved model in a process where kenmesh_hf must not be found: its own code tags, offline."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CODE = """
import json, sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "kenmesh_hf":
            raise ModuleNotFoundError(f"No module named {name!r}")

sys.meta_path.insert(0, NotInstalled())
try:
    import kenmesh_hf
except ModuleNotFoundError:
    pass
else:
    raise AssertionError("the package is there")

import torch
from transformers import AutoModel, AutoProcessor, AutoTokenizer, pipeline
folder, rows = sys.argv[1], json.loads(sys.argv[2])
tagger = pipeline("mesh-indexing", model=folder, trust_remote_code=True)
model = AutoModel.from_pretrained(folder, trust_remote_code=True).eval()
processor = AutoProcessor.from_pretrained(folder, trust_remote_code=True)
fields = {name: [row[name] for row in rows] for name in ("title", "abstract", "journal")}
with torch.no_grad():
    logits = model(**processor(**fields)).logits
modules = [type(part).__module__ for part in (tagger, tagger.processor, model, processor)]
words = AutoTokenizer.from_pretrained(folder, trust_remote_code=True).tokenize(rows[0]["title"])
print(json.dumps([tagger(rows, top_k=6, evidence=True), logits.tolist(), modules, words]))
"""


def run_without_package(model: Path, rows: list[dict[str, Any]], folder: Path) -> list[Any]:
    """Tags of rows, their logits, the modules of pipeline, processor and model, words of the first title.

    Args:
        model: Folder of the saved model.
        rows: Articles.
        folder: For what transformers keeps.
    """
    settings = {
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder / "home"),
        "HF_MODULES_CACHE": str(folder / "modules"),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(model), json.dumps(rows)],
        cwd=folder,
        env=os.environ | settings,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
