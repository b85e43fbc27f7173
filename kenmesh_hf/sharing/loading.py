"""A model's folder, found here or downloaded from the Hub, checked, and loaded as a pipeline."""

import json
import logging
import os
import re
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from safetensors import SafetensorError

from ..errors import InputError, MismatchError
from ..files import BUNDLED_CHECKPOINT
from ..modeling.checksums_kenmesh import check_checksums
from ..modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from ..modeling.pipeline_kenmesh import MeSHIndexingPipeline
from ..modeling.processing_kenmesh import KenMeSHProcessor
from .hub_errors import hub_sentences

logger = logging.getLogger(__name__)


def check_files(folder: Path) -> tuple[str, ...]:
    """Refuses a folder whose files are missing or damaged; names those of an index that was left out."""
    try:
        return check_checksums(folder)
    except FileNotFoundError as error:
        raise InputError(str(error)) from error
    except ValueError as error:
        raise MismatchError(str(error)) from error


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
        with hub_sentences(repo_id, revision):
            folder = Path(
                snapshot_download(
                    repo_id,
                    revision=revision,
                    token=token,
                    cache_dir=cache_dir,
                    local_files_only=local_files_only,
                )
            )
    if missing := check_files(folder):
        logger.warning(
            "%s comes without its neighbour index (%s): nothing votes, and tags will be poorer.",
            repo_id_or_path,
            ", ".join(missing),
        )
    return folder


def load(model: str | Path | None = None, **options: Any) -> MeSHIndexingPipeline:
    """The pipeline of a saved model: the bundled checkpoint, a folder, or a name on the Hub.

    Args:
        model: Folder or Hub name; the bundled checkpoint if not given.
        **options: As of `transformers.pipeline` (`revision`, `token`, `device`, `dtype`, `top_k`, …).

    Raises:
        InputError: There is no such model, or a part of it is missing or damaged.
    """
    # The command `kenmesh` imports the package without it, and so do the processes that it starts.
    from .. import registration  # noqa: F401

    folder = find_model(BUNDLED_CHECKPOINT if model is None else model, options)
    how = {name: options.pop(name) for name in ("dtype", "device_map") if name in options}
    try:
        # `transformers.pipeline` would try several classes and tell the errors of all of them.
        processor = KenMeSHProcessor.from_pretrained(folder)
        network = KenMeSHForMeSHIndexing.from_pretrained(folder, **how)
        return MeSHIndexingPipeline(model=network, processor=processor, **options)
    except (KeyError, RuntimeError, AssertionError, SafetensorError) as error:
        # An assertion is what a PyTorch without CUDA says of a GPU.
        sentence = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{folder} cannot be loaded: {sentence}") from error


def find_model(model: str | os.PathLike, options: dict[str, Any]) -> Path:
    """The folder of a model, downloaded if need be; uses up the options that say which one is meant."""
    folder = Path(model)
    if not folder.is_dir():
        if folder == BUNDLED_CHECKPOINT:
            raise InputError("kenmesh_hf was installed without its checkpoint; name a model of your own.")
        names = ("revision", "token", "cache_dir", "local_files_only")
        return pull(model, **{name: options.pop(name) for name in names if name in options})
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder} has no config.json, so it is no saved model.") from None
    except ValueError as error:
        raise InputError(f"config.json in {folder} is not JSON ({error}); save the model again.") from error
    if config.get("model_type") != "kenmesh":
        raise InputError(f"{folder} holds a {config.get('model_type')!r} model, not a KenMeSH model.")
    return folder
