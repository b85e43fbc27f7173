"""Requests over HTTP enter, tags and look-ups leave; the page that people see lies in `page/`."""

from .app import create_app, serve
from .desk_routes import DeskSettings
from .service import Limits

__all__ = [
    "DeskSettings",
    "Limits",
    "create_app",
    "serve",
]
