"""A line typed enters, calls into the rooms leave: one file a command, with its options and its examples.

`cli` reads the line, `command` says what a command is, `arguments` has the options that several share. No
room imports from here.
"""

from .cli import COMMANDS, main

__all__ = ["COMMANDS", "main"]
