"""The rules of the house: who may import whom and from where, and what the wheel holds."""

import ast
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from places import ROOT

from kenmesh_hf import __version__

SOURCES = ("kenmesh_hf", "modeling", "pyproject.toml", "README.md", "LICENSE")
LAYERS = "Rooms import downwards"
ROOMS = {path.parent.name for path in (ROOT / "kenmesh_hf").glob("*/__init__.py")}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked; built from a copy, in which no earlier build left anything."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*command, "--wheel-dir", out, copy], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [packed] = out.glob("kenmesh_hf-*.whl")
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(out / "unpacked")
    return out / "unpacked"


def test_the_wheel_holds_every_file(wheel: Path):
    def files(folder: Path) -> set[str]:
        found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return {path.relative_to(folder).as_posix() for path in found}

    wanted = files(ROOT / "kenmesh_hf") | {f"modeling/{name}" for name in files(ROOT / "modeling")}
    assert files(wheel / "kenmesh_hf") == wanted
    assert {"serving/page/index.html", "checkpoint/model.safetensors", "py.typed"} <= wanted


def test_the_list_of_public_names_can_be_read_in_any_locale():
    assert (ROOT / "kenmesh_hf" / "__init__.pyi").read_bytes().isascii()


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    [paper] = citation["references"]
    assert paper["doi"] == "10.18653/v1/2022.acl-long.210"


def lint_imports(folder: Path) -> subprocess.CompletedProcess:
    """`lint-imports` for the package in a folder, with the project's contracts."""
    program = "import sys; from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", program, "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_rooms_import_downwards(wheel: Path):
    done = lint_imports(wheel)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "file, line, contract",
    [
        ("reading/tables.py", "from ..tagging import tag_files", LAYERS),
        ("modeling/text_kenmesh.py", "from ..errors import InputError", LAYERS),
        ("tagging/files.py", "from ..evaluating import evaluate", LAYERS),
        ("attic/__init__.py", '"""A room that no layer knows."""', LAYERS),
        ("indexing/growth.py", "from .. import load", "Rooms import from rooms"),
        ("updating/plan.py", "from .mesh_update import update_mesh", "No files of a room"),
    ],
)
def test_a_wrong_import_is_told(wheel: Path, tmp_path: Path, file: str, line: str, contract: str):
    ignored = shutil.ignore_patterns("checkpoint", "page", "__pycache__")
    shutil.copytree(wheel / "kenmesh_hf", tmp_path / "kenmesh_hf", ignore=ignored)
    path = tmp_path / "kenmesh_hf" / file
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as target:
        target.write(f"\n{line}\n")
    done = lint_imports(tmp_path)
    assert done.returncode != 0
    assert re.search(rf"{contract}.* BROKEN", done.stdout)


def room_files(path: Path) -> Iterator[str]:
    """Files inside rooms that a file imports, or imports from, as `room.file`."""
    depth = len(path.relative_to(ROOT).parts) - 1
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level in (0, depth):
            modules = [f"{node.module or ''}.{alias.name}" for alias in node.names]
        for module in modules:
            room, _, rest = module.removeprefix("kenmesh_hf.").partition(".")
            file = rest.split(".")[0]
            if room in ROOMS and (ROOT / "kenmesh_hf" / room / f"{file}.py").exists():
                yield f"{room}.{file}"


def test_others_import_from_a_room_and_not_from_its_files():
    folders = ("kenmesh_hf", "tests", "examples", "benchmarks")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in paths
        for name in room_files(path)
        if name.split(".")[0] not in path.relative_to(ROOT).parts
    ]
    assert not wrong
