"""What is shipped to the Hub: files that import nothing but each other and what every Hub user has."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hub_server import TOKEN, HubServer

from kenmesh_hf.modeling import checksums_kenmesh
from kenmesh_hf.modeling.configuration_kenmesh import REMOTE_CLASSES, REMOTE_PIPELINES

MODELING = Path(checksums_kenmesh.__file__).parent
FILES = sorted(MODELING.glob("*.py"))
ALLOWED = {"torch", "transformers", "numpy", "safetensors", "huggingface_hub"} | sys.stdlib_module_names
NAME = "library/mesh-tagger"


def imports_of(path: Path) -> list[tuple[int, str | None]]:
    """Level and module of every import of a file, wherever it stands."""
    found: list[tuple[int, str | None]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.level, node.module))
    return found


def guarded_imports_of(path: Path) -> set[str]:
    """Modules that a file can do without: the import stands in a `try` that expects it to fail."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Try) and any("ImportError" in ast.dump(handler) for handler in node.handlers):
            imports = [item for item in node.body if isinstance(item, ast.Import)]
            found |= {alias.name for item in imports for alias in item.names}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_import_only_siblings_and_common_libraries(path):
    siblings = {file.stem for file in FILES}
    optional = {"faiss"} & guarded_imports_of(path)
    for level, module in imports_of(path):
        if level:
            assert (level, module in siblings) == (1, True), (
                f"{path.name}: from {'.' * level}{module} import …"
            )
        else:
            assert module.split(".")[0] in ALLOWED | optional, f"{path.name}: import {module}"


def test_there_are_no_subfolders():
    assert not [path for path in MODELING.iterdir() if path.is_dir() and path.name != "__pycache__"]


def test_the_classes_that_a_configuration_names_are_there():
    named = [*REMOTE_CLASSES.values(), *(task["impl"] for task in REMOTE_PIPELINES.values())]
    for name in named:
        file, kind = name.split(".")
        tree = ast.parse((MODELING / f"{file}.py").read_text(encoding="utf-8"))
        assert kind in {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


PUSH = """
import json, sys
import torch
from transformers import AutoModel, AutoProcessor, pipeline
import kenmesh_hf
from kenmesh_hf.modeling.checksums_kenmesh import check_checksums
folder, name, token, text = sys.argv[1:]

def tags(repo):
    tagger = pipeline("mesh-indexing", model=repo)
    return [[tag["ui"], round(tag["score"], 4)] for tag in tagger(text, top_k=4)]

model, processor = AutoModel.from_pretrained(folder), AutoProcessor.from_pretrained(folder)
model.push_to_hub(name, token=token)
processor.push_to_hub(name, token=token)
pushed = tags(name)
with torch.no_grad():
    model.label_bias.add_(2.0)
model.push_to_hub(name, token=token)
changed = tags(name)
processor.save_pretrained(folder + "-copy", push_to_hub=True, repo_id=name + "-2", token=token)
model.save_pretrained(folder + "-copy", push_to_hub=True, repo_id=name + "-2", token=token)
print(json.dumps([pushed, changed, tags(name + "-2"), check_checksums(folder + "-copy")]))
"""


def test_model_and_processor_are_pushed_the_usual_way(tiny_model, tiny_tagger, tmp_path):
    text = "babake babali mobake liliti"
    local = tmp_path / "model"
    local.symlink_to(tiny_model)
    with HubServer() as server:
        settings = {
            "HF_ENDPOINT": server.url,
            "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_DISABLE_XET": "1",
            "OMP_NUM_THREADS": "1",
        }
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        command = [sys.executable, "-c", PUSH, str(local), NAME, TOKEN, text]
        done = subprocess.run(command, env=inherited | settings, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        files = server.files(NAME)
    pushed, changed, copied, missing = json.loads(done.stdout.splitlines()[-1])
    assert pushed == [[tag["ui"], round(tag["score"], 4)] for tag in tiny_tagger(text, top_k=4)]
    assert changed == copied != pushed and missing == []
    assert {path.name for path in FILES if path.stem.endswith("_kenmesh")} <= set(files)
    assert json.loads(files["processor_config.json"])["auto_map"]["AutoProcessor"].startswith("processing_")
