"""Options with one description each: the command line and the documentation take it from the field."""

from dataclasses import field
from typing import Any


def option(default: Any, help: str) -> Any:
    """A dataclass field with a description; a list or dict is copied for each object."""
    if isinstance(default, list | dict):
        return field(default_factory=lambda: type(default)(default), metadata={"help": help})
    return field(default=default, metadata={"help": help})
