"""Push a saved model, index and card included, in one commit, and pull it back; push a prepared dataset."""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, constants, snapshot_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    HfHubHTTPError,
    HTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from ..errors import InputError, KenMeSHError, MismatchError
from ..modeling import checksums_kenmesh
from ..modeling.checksums_kenmesh import check_checksums, is_artefact, is_index
from .dataset_card import measure_candidates, parquet_files, render_dataset_card
from .model_card import card_template, has_results_blocks, read_results, render_model_card

logger = logging.getLogger(__name__)

CARD = "README.md"
CODE = Path(checksums_kenmesh.__file__).parent
BUNDLED = Path(__file__).parent.parent / "checkpoint"
SHARED_SUFFIXES = (".json", ".py", ".md")
TRAINING_FILES = ("trainer_state.json", "all_results.json", "train_results.json", "eval_results.json")
# What a push may leave behind in the repository from an earlier one: parts that would no longer fit the rest.
PARTS = ("*_kenmesh.py", "*.safetensors", "*.safetensors.index.json", "*.faiss", "*.npz", "*.tsv.gz", "*.txt")


class HubError(KenMeSHError):
    """The Hub refused, could not be reached, or does not have what was asked for."""


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
        with_index: Off leaves the neighbour index out; it must then be built again where the model is used.
        commit_message: Title of the commit.
    """
    folder = Path(folder)
    names = _check_model_folder(folder)
    sent = [name for name in names if _is_shared(name) and (with_index or not is_index(name))]
    contents: dict[str, Path | bytes] = {name: folder / name for name in sent}
    # The bundled checkpoint has no code of its own: it stands in the package that has it.
    if folder.resolve() == BUNDLED.resolve():
        contents |= {path.name: path for path in CODE.glob("*_kenmesh.py")}
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
    _check_files(folder)
    return names


def _check_files(folder: Path) -> tuple[str, ...]:
    try:
        return check_checksums(folder)
    except FileNotFoundError as error:
        raise InputError(str(error)) from error
    except ValueError as error:
        raise MismatchError(str(error)) from error


def _model_card(folder: Path, repo_id: str) -> str:
    path = folder / CARD
    card = path.read_text(encoding="utf-8") if path.exists() else card_template()
    return (
        render_model_card(read_results(folder), card, repo_id=repo_id) if has_results_blocks(card) else card
    )


def pull(
    repo_id_or_path: str | os.PathLike,
    revision: str | None = None,
    token: str | None = None,
    cache_dir: str | Path | None = None,
    local_files_only: bool = False,
) -> Path:
    """Folder of a model, downloaded unless it is there already, with all its files checked.

    Args:
        repo_id_or_path: `"organisation/name"`, or a folder.
        revision: Branch, tag or commit.
        token: Access token; by default the one of `hf auth login`.
        cache_dir: Where downloads are kept; by default the cache of the Hub's library.
        local_files_only: Never ask the Hub.
    """
    folder = Path(repo_id_or_path)
    if not folder.is_dir():
        repo_id = str(repo_id_or_path)
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", repo_id) or repo_id.startswith("."):
            raise InputError(
                f"{repo_id} is neither a folder nor a name on the Hub such as organisation/name."
            )
        with _sentences(repo_id, revision):
            folder = Path(
                snapshot_download(
                    repo_id,
                    revision=revision,
                    token=token,
                    cache_dir=cache_dir,
                    local_files_only=local_files_only,
                )
            )
    if missing := _check_files(folder):
        logger.warning(
            "%s comes without its neighbour index (%s); build one with `kenmesh index`.",
            repo_id_or_path,
            ", ".join(missing),
        )
    return folder


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
    with _sentences(repo_id, revision, sending=True):
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


@contextmanager
def _sentences(repo_id: str, revision: str | None, sending: bool = False) -> Iterator[None]:
    """Turns what the Hub's library raises into one sentence that says what to do."""
    access = "write to" if sending else "read"
    login = f"log in with `hf auth login` or give a token that may {access} it"
    try:
        yield
    except RevisionNotFoundError as error:
        raise HubError(
            f"{repo_id} has no revision {revision!r}; see its branches and tags on the Hub."
        ) from error
    except RepositoryNotFoundError as error:
        raise HubError(
            f"{repo_id} is not on {constants.ENDPOINT}, or it is private; check the name, {login}."
        ) from error
    except LocalEntryNotFoundError as error:
        raise HubError(
            f"{repo_id} is not complete in the cache and the Hub cannot be asked; pull it once while online."
        ) from error
    except EntryNotFoundError as error:
        where = getattr(getattr(error, "response", None), "url", repo_id)
        raise HubError(
            f"The Hub lists a file of {repo_id} but does not have it ({where}); push the model again."
        ) from error
    except HfHubHTTPError as error:
        if error.response.status_code in (401, 403):
            raise HubError(f"The Hub does not let you {access} {repo_id}; {login}.") from error
        raise HubError(f"The Hub answered for {repo_id}: {error}") from error
    except ValueError as error:
        raise HubError(f"{repo_id}: {error}") from error
    except (HTTPError, OSError, RuntimeError) as error:
        advice = (
            "nothing was published, and what arrived is not sent twice" if sending else "what arrived is kept"
        )
        raise HubError(
            f"The transfer of {repo_id} was interrupted ({error}); try again: {advice}."
        ) from error
