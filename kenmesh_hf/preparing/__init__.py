"""NLM's files, or labelled articles in any format, enter; a dataset on disk leaves.

It has rows of ids, the processor that made them, and a report. The work is done in stages, each of which is
whole or not there, so that it can be stopped and gone on with.
"""

from ..options import PrepareOptions
from .dataset import PreparedDataset, column_bytes, encode_articles, load_prepared, write_rows
from .preparation import Division, divide_articles, prepare
from .row_stream import RowStream
from .stages import Engine, Job, Stages, do_job, file_state
from .tokens import tokenize_anew

__all__ = [
    "Division",
    "Engine",
    "Job",
    "PrepareOptions",
    "PreparedDataset",
    "RowStream",
    "Stages",
    "column_bytes",
    "divide_articles",
    "do_job",
    "encode_articles",
    "file_state",
    "load_prepared",
    "prepare",
    "tokenize_anew",
    "write_rows",
]
