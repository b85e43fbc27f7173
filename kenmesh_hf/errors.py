"""Errors for people: what was wrong, where, and what to do about it."""

from importlib import import_module


class KenMeSHError(Exception):
    """Base of every error that the command line prints as one sentence, without a traceback."""


class InputError(KenMeSHError):
    """A file or a record that cannot be used."""


class DependencyError(KenMeSHError):
    """An optional library is missing; the message names the extra that brings it."""


class MismatchError(KenMeSHError):
    """Two parts of a model (weights, index, vocabulary, thresholds) do not belong together."""


def need(library: str, extra: str, purpose: str) -> None:
    """Refuses work before it begins where an optional library is missing that it would need in the end.

    Args:
        library: Name of the module.
        extra: Extra of this package that brings it.
        purpose: What needs it, as the beginning of a sentence.

    Raises:
        DependencyError: It is not installed, or cannot be loaded.
    """
    try:
        import_module(library)
    except ImportError as error:
        raise DependencyError(
            f"{purpose} needs {library}. Install it: pip install 'kenmesh-hf[{extra}]'. ({error})"
        ) from error
