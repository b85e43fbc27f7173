"""kenmesh_hf: MeSH indexing of biomedical articles with KenMeSH, the Hugging Face way.

Importing it teaches `AutoConfig`, `AutoModel`, `AutoProcessor` and `pipeline("mesh-indexing")` about KenMeSH.
"""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._version import __version__
from .errors import InputError

if TYPE_CHECKING:
    from .registration import (
        KenMeSHCandidates,
        KenMeSHConfig,
        KenMeSHForMeSHIndexing,
        KenMeSHModel,
        KenMeSHOutput,
        KenMeSHProcessor,
        MeSHIndexingPipeline,
        MeshVocabulary,
    )

BUNDLED_CHECKPOINT = Path(__file__).parent / "checkpoint"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import registration

    return getattr(registration, name)


def load(model: str | Path | None = None, **options: Any) -> "MeSHIndexingPipeline":
    """The pipeline of a saved model: the bundled checkpoint, a folder, or a name on the Hub.

    Args:
        model: Folder or Hub name; the bundled checkpoint if not given.
        **options: As of `transformers.pipeline` (`revision`, `token`, `device`, `dtype`, `top_k`, …).

    Raises:
        InputError: There is no such model, or a part of it is missing or damaged.
    """
    from safetensors import SafetensorError

    from .registration import KenMeSHForMeSHIndexing, KenMeSHProcessor, MeSHIndexingPipeline

    folder = find_model(BUNDLED_CHECKPOINT if model is None else model, options)
    how = {name: options.pop(name) for name in ("dtype", "device_map") if name in options}
    try:
        # `transformers.pipeline` would try several classes and tell the errors of all of them.
        processor = KenMeSHProcessor.from_pretrained(folder)
        network = KenMeSHForMeSHIndexing.from_pretrained(folder, **how)
        return MeSHIndexingPipeline(model=network, processor=processor, **options)
    except (KeyError, RuntimeError, SafetensorError) as error:
        sentence = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{folder} cannot be loaded: {sentence}") from error


def find_model(model: str | os.PathLike, options: dict[str, Any]) -> Path:
    """The folder of a model, downloaded if need be; uses up the options that say which one is meant."""
    folder = Path(model)
    if not folder.is_dir():
        if folder == BUNDLED_CHECKPOINT:
            raise InputError("kenmesh_hf was installed without its checkpoint; name a model of your own.")
        from .sharing.pushing import pull

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


__all__ = [
    "BUNDLED_CHECKPOINT",
    "KenMeSHCandidates",
    "KenMeSHConfig",
    "KenMeSHForMeSHIndexing",
    "KenMeSHModel",
    "KenMeSHOutput",
    "KenMeSHProcessor",
    "MeSHIndexingPipeline",
    "MeshVocabulary",
    "__version__",
    "load",
]

# The command `kenmesh` registers once its options are read: help and wrong usage need no network.
if Path(*sys.argv[:1]).name != "kenmesh" and sys.orig_argv[1:3] != ["-m", "kenmesh_hf"]:
    from . import registration  # noqa: F401
