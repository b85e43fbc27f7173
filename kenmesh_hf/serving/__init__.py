"""Requests over HTTP enter, tags and look-ups leave; the page that people see lies in `page/`."""

from .app import create_app, serve
from .service import Limits

__all__ = [
    "Limits",
    "create_app",
    "serve",
]
