"""A saved model and what is new enter, a model leaves: another MeSH year, more articles, whole headings."""

from .heading_update import add_headings_to_model_folder
from .index_update import add_to_model_folder, save_grown
from .mesh_update import update_mesh, update_model_folder
from .update_scores import score_each, score_update

__all__ = [
    "add_headings_to_model_folder",
    "add_to_model_folder",
    "save_grown",
    "score_each",
    "score_update",
    "update_mesh",
    "update_model_folder",
]
