"""kenmesh_hf: MeSH indexing of biomedical articles with KenMeSH, the Hugging Face way.

Importing it teaches `AutoConfig`, `AutoModel`, `AutoProcessor` and `pipeline("mesh-indexing")` about KenMeSH.
"""

import json
import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoProcessor
from transformers.pipelines import PIPELINE_REGISTRY

from ._version import __version__
from .errors import InputError
from .modeling.candidates_kenmesh import KenMeSHCandidates
from .modeling.configuration_kenmesh import KenMeSHConfig
from .modeling.modeling_kenmesh import KenMeSHForMeSHIndexing, KenMeSHModel, KenMeSHOutput
from .modeling.pipeline_kenmesh import MeSHIndexingPipeline
from .modeling.processing_kenmesh import KenMeSHProcessor
from .modeling.vocabulary_kenmesh import MeshVocabulary

BUNDLED_CHECKPOINT = Path(__file__).parent / "checkpoint"
TASK = "mesh-indexing"

AutoConfig.register(KenMeSHConfig.model_type, KenMeSHConfig)
AutoModel.register(KenMeSHConfig, KenMeSHForMeSHIndexing)
AutoModelForSequenceClassification.register(KenMeSHConfig, KenMeSHForMeSHIndexing)
AutoProcessor.register(KenMeSHConfig, KenMeSHProcessor)
PIPELINE_REGISTRY.register_pipeline(
    TASK,
    pipeline_class=MeSHIndexingPipeline,
    pt_model=AutoModel,
    default={"model": (str(BUNDLED_CHECKPOINT), "main")},
    type="text",
)
# Saved models carry their code, so that they also load where this package is not installed.
KenMeSHConfig.register_for_auto_class()
KenMeSHForMeSHIndexing.register_for_auto_class("AutoModel")
KenMeSHProcessor.register_for_auto_class()


def load(model: str | Path | None = None, **options: Any) -> MeSHIndexingPipeline:
    """The pipeline of a saved model: the bundled checkpoint, a folder, or a name on the Hub.

    Args:
        model: Folder or Hub name; the bundled checkpoint if not given.
        **options: As of `transformers.pipeline` (`revision`, `token`, `device`, `dtype`, `top_k`, …).

    Raises:
        InputError: There is no such model, or a part of it is missing or damaged.
    """
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
        from .hub import pull

        names = ("revision", "token", "cache_dir", "local_files_only")
        return pull(model, **{name: options.pop(name) for name in names if name in options})
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder} has no config.json, so it is no saved model.") from None
    except ValueError as error:
        raise InputError(f"config.json in {folder} is not JSON ({error}); save the model again.") from error
    if config.get("model_type") != KenMeSHConfig.model_type:
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
