"""kenmesh_hf: MeSH indexing of biomedical articles with KenMeSH, the Hugging Face way.

Importing it teaches `AutoConfig`, `AutoModel`, `AutoProcessor` and `pipeline("mesh-indexing")` about KenMeSH.
`__init__.pyi` lists the public names. What a builder runs is in rooms, in the order in which articles pass
through them: `reading`, `mesh`, `words`, `indexing`, `preparing`, `training`, `evaluating`, `updating`,
`tagging`, `spreading`, `serving`; beside them `sharing` and `showing`, above them `commands`. What a Hub
user runs is in `modeling`.
"""

import sys
from pathlib import Path

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

# The command `kenmesh` registers once its options are read: help and wrong usage need no network.
if Path(*sys.argv[:1]).name != "kenmesh" and sys.orig_argv[1:3] != ["-m", "kenmesh_hf"]:
    from . import registration  # noqa: F401
