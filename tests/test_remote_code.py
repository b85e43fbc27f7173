"""A saved model where kenmesh_hf is not installed: its own code gives the same numbers, offline."""

import json
import os
import subprocess
import sys

import pytest
from tiny_model import UNSEEN

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


def test_remote_code_gives_the_same_numbers_without_the_package(tiny_model, tiny_tagger, tmp_path):
    rows = [
        {"title": article.title, "abstract": article.abstract, "journal": article.journal}
        for article in UNSEEN[:6]
    ]
    settings = {
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(tmp_path / "home"),
        "HF_MODULES_CACHE": str(tmp_path / "modules"),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-c", CODE, str(tiny_model), json.dumps(rows)]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | settings,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    tags, logits, modules, words = json.loads(done.stdout.splitlines()[-1])
    assert all(module.startswith("transformers_modules.") for module in modules)
    for theirs, ours in zip(tags, tiny_tagger(rows, top_k=6, evidence=True), strict=True):
        assert [tag["ui"] for tag in theirs] == [tag["ui"] for tag in ours]
        assert [tag["score"] for tag in theirs] == pytest.approx([tag["score"] for tag in ours], abs=1e-6)
        assert [tag["evidence"]["neighbours"] for tag in theirs] == [
            tag["evidence"]["neighbours"] for tag in ours
        ]
    batch = tiny_tagger.processor(**{name: [row[name] for row in rows] for name in rows[0]})
    expected = tiny_tagger.model(**batch).logits.detach().flatten().tolist()
    assert [value for row in logits for value in row] == pytest.approx(expected, abs=1e-5)
    assert words == tiny_tagger.processor.tokenizer.tokenize(rows[0]["title"])
