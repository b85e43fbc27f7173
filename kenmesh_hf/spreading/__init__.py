"""Work on files enters and is spread over a Ray cluster; the same outputs leave as from one process.

Ray decides where workers run and what becomes of lost ones' memory; here are files, records of what is
finished, and how a model gets to machines that share no disk.
"""

from ..options import RayOptions, RayPrepareOptions
from .cluster import connected
from .crew import Crew
from .manifest import Manifest
from .parcel import Parcel
from .places import find_inputs
from .prepare import prepare_on_ray
from .tag_datasets import tag_dataset
from .tag_files import FileJob, FileTagger, tag_files_on_ray

__all__ = [
    "Crew",
    "FileJob",
    "FileTagger",
    "Manifest",
    "Parcel",
    "RayOptions",
    "RayPrepareOptions",
    "connected",
    "find_inputs",
    "prepare_on_ray",
    "tag_dataset",
    "tag_files_on_ray",
]
