"""What `import kenmesh_hf` teaches transformers: the Auto classes and `pipeline("mesh-indexing")`."""

from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoProcessor
from transformers.pipelines import PIPELINE_REGISTRY

from .files import BUNDLED_CHECKPOINT
from .modeling.configuration_kenmesh import KenMeSHConfig
from .modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from .modeling.pipeline_kenmesh import MeSHIndexingPipeline
from .modeling.processing_kenmesh import KenMeSHProcessor

AutoConfig.register(KenMeSHConfig.model_type, KenMeSHConfig)
AutoModel.register(KenMeSHConfig, KenMeSHForMeSHIndexing)
AutoModelForSequenceClassification.register(KenMeSHConfig, KenMeSHForMeSHIndexing)
AutoProcessor.register(KenMeSHConfig, KenMeSHProcessor)
PIPELINE_REGISTRY.register_pipeline(
    "mesh-indexing",
    pipeline_class=MeSHIndexingPipeline,
    pt_model=AutoModel,
    default={"model": (str(BUNDLED_CHECKPOINT), "main")},
    type="text",
)
# Saved models carry their code, so that they also load where this package is not installed.
KenMeSHConfig.register_for_auto_class()
KenMeSHForMeSHIndexing.register_for_auto_class("AutoModel")
KenMeSHProcessor.register_for_auto_class()
