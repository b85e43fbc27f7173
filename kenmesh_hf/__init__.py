"""kenmesh_hf: MeSH indexing of biomedical articles with KenMeSH, the Hugging Face way."""

from ._version import __version__

__all__ = ["__version__"]
