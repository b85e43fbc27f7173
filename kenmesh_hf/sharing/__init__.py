"""A folder or a name on the Hub enters, a checked and loaded model leaves; and the other way, to the Hub.

Here is also what goes with a model's folder: its card, its measured results, and a description of its files.
"""

from .dataset_card import SPLITS, render_dataset_card
from .hub_errors import HubError
from .info import describe_model, info_lines
from .loading import find_model, load, pull
from .model_card import card_template, render_model_card
from .pushing import push, push_dataset
from .results import CARD, RESULTS_FILE, read_results, write_results

__all__ = [
    "CARD",
    "HubError",
    "RESULTS_FILE",
    "SPLITS",
    "card_template",
    "describe_model",
    "find_model",
    "info_lines",
    "load",
    "pull",
    "push",
    "push_dataset",
    "read_results",
    "render_dataset_card",
    "render_model_card",
    "write_results",
]
