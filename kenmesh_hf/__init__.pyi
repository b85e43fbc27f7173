"""The public names and where each comes from; they are loaded when they are first asked for."""

from ._version import __version__ as __version__
from .errors import InputError as InputError
from .files import BUNDLED_CHECKPOINT as BUNDLED_CHECKPOINT
from .modeling.candidates_kenmesh import KenMeSHCandidates as KenMeSHCandidates
from .modeling.configuration_kenmesh import KenMeSHConfig as KenMeSHConfig
from .modeling.modeling_kenmesh import KenMeSHForMeSHIndexing as KenMeSHForMeSHIndexing
from .modeling.modeling_kenmesh import KenMeSHModel as KenMeSHModel
from .modeling.output_kenmesh import KenMeSHOutput as KenMeSHOutput
from .modeling.pipeline_kenmesh import MeSHIndexingPipeline as MeSHIndexingPipeline
from .modeling.processing_kenmesh import KenMeSHProcessor as KenMeSHProcessor
from .modeling.vocabulary_kenmesh import MeshVocabulary as MeshVocabulary
from .sharing.loading import load as load
