"""Push a saved model, index and card included, or a prepared dataset, each in one commit."""

import os
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, constants

from ..errors import InputError
from ..files import BUNDLED_CHECKPOINT
from ..modeling import checksums_kenmesh
from ..modeling.checksums_kenmesh import is_artefact, is_index
from ..modeling.configuration_kenmesh import KenMeSHConfig
from ..showing import has_results_blocks
from .dataset_card import measure_candidates, parquet_files, render_dataset_card
from .hub_errors import hub_sentences
from .loading import check_files
from .model_card import card_template, render_model_card
from .results import CARD, describe_encoder, read_results

SHARED_SUFFIXES = (".json", ".py", ".md")
TRAINING_FILES = ("trainer_state.json", "all_results.json", "train_results.json", "eval_results.json")
# What a push may leave behind in the repository from an earlier one: parts that would no longer fit the rest.
PARTS = ("*_kenmesh.py", "*.safetensors", "*.safetensors.index.json", "*.faiss", "*.npz", "*.tsv.gz", "*.txt")


@dataclass(frozen=True)
class Push:
    """What a push sent, or would send.

    Attributes:
        repo_id: Name of the repository.
        revision: Branch.
        files: Size in bytes by path in the repository.
        left_out: Files of the folder that stay behind.
        url: Of the commit; None after a dry run.
    """

    repo_id: str
    revision: str
    files: dict[str, int]
    left_out: tuple[str, ...] = ()
    url: str | None = None

    def lines(self) -> list[str]:
        """A line for each file, then the sum and, once sent, the address of the commit."""
        lines = [f"{size:>14,}  {path}" for path, size in self.files.items()]
        lines += [f"{'left out':>14}  {name}" for name in self.left_out]
        total = f"{sum(self.files.values()):>14,}  bytes in {len(self.files)} files"
        lines.append(f"{total} → {self.repo_id} ({self.revision})")
        return lines if self.url is None else [*lines, self.url]


def push(
    folder: str | os.PathLike,
    repo_id: str,
    *,
    private: bool | None = None,
    revision: str | None = None,
    token: str | None = None,
    dry_run: bool = False,
    with_index: bool = True,
    commit_message: str | None = None,
) -> Push:
    """Sends a saved model with everything it needs, in one commit: other people see all of it or nothing.

    After an interruption push again; large files that arrived are not sent twice.

    Args:
        folder: Where model and processor were saved.
        repo_id: `"organisation/name"`.
        private: Whether only the organisation may see a new repository.
        revision: Branch to commit to, made if need be.
        token: Access token; by default the one of `hf auth login`.
        dry_run: Only say what would be sent.
        with_index: Off leaves the neighbour index out; candidates then come from the other tables only.
        commit_message: Title of the commit.
    """
    folder = Path(folder)
    names = _check_model_folder(folder)
    sent = [name for name in names if _is_shared(name) and (with_index or not is_index(name))]
    contents: dict[str, Path | bytes] = {name: folder / name for name in sent}
    # The bundled checkpoint has no code of its own: it stands in the package that has it.
    if folder.resolve() == BUNDLED_CHECKPOINT.resolve():
        code = Path(checksums_kenmesh.__file__).parent
        contents |= {path.name: path for path in code.glob("*_kenmesh.py")}
    contents[CARD] = _model_card(folder, repo_id).encode()
    return _commit(
        contents,
        repo_id,
        repo_type="model",
        left_out=tuple(name for name in names if name not in contents),
        private=private,
        revision=revision,
        token=token,
        dry_run=dry_run,
        commit_message=commit_message or "Upload KenMeSH model",
    )


def _is_shared(name: str) -> bool:
    return (
        not name.startswith(".")
        and name not in TRAINING_FILES
        and (is_artefact(name) or name.endswith(SHARED_SUFFIXES))
    )


def _check_model_folder(folder: Path) -> list[str]:
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; save model and processor with save_pretrained first.")
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    if "config.json" not in names:
        raise InputError(f"{folder} has no config.json; save model and processor to it with save_pretrained.")
    if not any(name.startswith("model") and name.endswith(".safetensors") for name in names):
        raise InputError(
            f"{folder} has no weights (model.safetensors); save the model to it with save_pretrained."
        )
    check_files(folder)
    return names


def _model_card(folder: Path, repo_id: str) -> str:
    path = folder / CARD
    card = path.read_text(encoding="utf-8") if path.exists() else card_template()
    if not has_results_blocks(card):
        return card
    results, encoder = read_results(folder), describe_encoder(KenMeSHConfig.from_pretrained(folder))
    if encoder:
        results["text_encoder"] = encoder
    return render_model_card(results, card, repo_id=repo_id)


def push_dataset(
    folder: str | os.PathLike,
    repo_id: str,
    *,
    private: bool | None = None,
    revision: str | None = None,
    token: str | None = None,
    dry_run: bool = False,
    commit_message: str | None = None,
) -> Push:
    """Sends a prepared dataset as Parquet with its card, in one commit, for `load_dataset(repo_id)`.

    Args:
        folder: What `kenmesh prepare` or `DatasetDict.save_to_disk` wrote, or any Parquet files with a split
            in their names. Without a card there (`README.md`) one is made, from `results.json` where it is.
        repo_id: `"organisation/name"`.
        private: Whether only the organisation may see a new repository.
        revision: Branch to commit to, made if need be.
        token: Access token; by default the one of `hf auth login`.
        dry_run: Only say what would be sent.
        commit_message: Title of the commit.
    """
    folder = Path(folder)
    with parquet_files(folder) as splits:
        measured = {split: measure_candidates(paths) for split, paths in splits.items()}
        contents: dict[str, Path | bytes] = {
            f"data/{split}-{number:05}-of-{len(paths):05}.parquet": path
            for split, paths in splits.items()
            for number, path in enumerate(paths)
        }
        contents[CARD] = _dataset_card(folder, measured, repo_id).encode()
        return _commit(
            contents,
            repo_id,
            repo_type="dataset",
            private=private,
            revision=revision,
            token=token,
            dry_run=dry_run,
            commit_message=commit_message or "Upload prepared dataset",
        )


def _dataset_card(folder: Path, measured: dict[str, dict[str, float]], repo_id: str) -> str:
    path = folder / CARD
    if path.exists():
        return path.read_text(encoding="utf-8")
    articles = {split: int(found["articles"]) for split, found in measured.items()}
    return render_dataset_card({"candidates": measured} | read_results(folder), articles, repo_id)


def _commit(
    contents: dict[str, Path | bytes],
    repo_id: str,
    *,
    repo_type: str,
    private: bool | None,
    revision: str | None,
    token: str | None,
    dry_run: bool,
    commit_message: str,
    left_out: tuple[str, ...] = (),
) -> Push:
    sizes = {
        path: len(content) if isinstance(content, bytes) else content.stat().st_size
        for path, content in sorted(contents.items())
    }
    planned = Push(repo_id, revision or constants.DEFAULT_REVISION, sizes, left_out)
    if dry_run:
        return planned
    api = HfApi(token=token, library_name="kenmesh_hf")
    with hub_sentences(repo_id, revision, sending=True):
        api.create_repo(repo_id, repo_type=repo_type, private=private, exist_ok=True)
        if revision is not None:
            api.create_branch(repo_id, branch=revision, repo_type=repo_type, exist_ok=True)
        there = api.list_repo_files(repo_id, revision=revision, repo_type=repo_type)
        operations: list[CommitOperationAdd | CommitOperationDelete] = [
            CommitOperationDelete(path)
            for path in there
            if path not in contents and _is_stale(path, repo_type)
        ]
        operations += [CommitOperationAdd(path, contents[path]) for path in sizes]
        commit = api.create_commit(
            repo_id, operations, commit_message=commit_message, repo_type=repo_type, revision=revision
        )
    return Push(repo_id, planned.revision, sizes, left_out, commit.commit_url)


def _is_stale(path: str, repo_type: str) -> bool:
    if repo_type == "dataset":
        return fnmatch(path, "data/*.parquet")
    return "/" not in path and any(fnmatch(path, pattern) for pattern in PARTS)
