"""Errors for people: what was wrong, where, and what to do about it."""


class KenMeSHError(Exception):
    """Base of every error that the command line prints as one sentence, without a traceback."""


class InputError(KenMeSHError):
    """A file or a record that cannot be used."""


class DependencyError(KenMeSHError):
    """An optional library is missing; the message names the extra that brings it."""


class MismatchError(KenMeSHError):
    """Two parts of a model (weights, index, vocabulary, thresholds) do not belong together."""
