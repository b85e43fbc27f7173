"""kenmesh_hf: MeSH indexing of biomedical articles with KenMeSH, the Hugging Face way.

Importing it teaches `AutoConfig`, `AutoModel`, `AutoProcessor` and `pipeline("mesh-indexing")` about KenMeSH.
"""

from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoProcessor, pipeline
from transformers.pipelines import PIPELINE_REGISTRY

from ._version import __version__
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


def load(model: str | Path = BUNDLED_CHECKPOINT, **options: Any) -> MeSHIndexingPipeline:
    """The pipeline of a saved model: the bundled checkpoint, a folder, or a name on the Hub.

    Args:
        model: Folder or Hub name.
        **options: Passed on to `transformers.pipeline` (`revision`, `token`, `device`, `top_k`, …).
    """
    return pipeline(TASK, model=str(model), **options)


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
