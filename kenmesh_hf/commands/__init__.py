"""A line typed enters, one call into a room leaves: one file a command, with its options and its examples.

`cli` reads the line, `arguments` has the options that several commands share. No room imports from here.
"""

from .cli import COMMANDS, main

__all__ = ["COMMANDS", "main"]
