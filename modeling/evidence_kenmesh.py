"""The numbers that speak for a candidate label: votes of neighbours, journal share, terms found, prior."""

from typing import NamedTuple

import numpy as np

from .lexicon_kenmesh import ABSTRACT, INSIDE, TITLE

FEATURES = (
    "vote_all",
    "vote_50",
    "vote_15",
    "vote_5",
    "vote_all_log",
    "vote_50_log",
    "vote_15_log",
    "vote_count",
    "vote_lift",
    "best_similarity",
    "best_rank",
    "journal_share",
    "journal_log",
    "journal_lift",
    "term_title",
    "term_abstract",
    "term_inside",
    "term_logit",
    "term_count",
    "term_in_title",
    "term_is_name",
    "term_words",
    "parent_term",
    "child_term",
    "parent_vote",
    "child_vote",
    "words",
    "words_log",
    "log_prior",
    "recent_log_prior",
    "recent_lift",
    "journal_known",
    "terms_found",
)
"""Names of the numbers, in their order."""

ROW = {name: row for row, name in enumerate(FEATURES)}
_VOTERS = (("vote_all", None), ("vote_50", 50), ("vote_15", 15), ("vote_5", 5))
_JOURNAL_SMOOTHING = 8.0


class LabelGraph(NamedTuple):
    """Children and parents of each label: flat lists with offsets `(labels + 1,)`."""

    children: np.ndarray
    child_offsets: np.ndarray
    parents: np.ndarray
    parent_offsets: np.ndarray

    @classmethod
    def from_edges(cls, edges: np.ndarray, size: int) -> "LabelGraph":
        """Both directions of parent–child pairs `(2, edges)`."""
        parts = []
        for start, end in ((edges[0], edges[1]), (edges[1], edges[0])):
            order = np.argsort(start, kind="stable")
            offsets = np.searchsorted(start[order], np.arange(size + 1))
            parts += [end[order].astype(np.int64), offsets.astype(np.int64)]
        return cls(*parts)


class Evidence:
    """The numbers of one article's candidates, filled source by source.

    Args:
        labels: The candidates, ascending.
        prior: Share of training articles that carry each label, the article itself left out, `(labels,)`.
        recent_prior: The same of the recent ones alone, `(labels,)`.
        graph: The hierarchy.
    """

    def __init__(self, labels: np.ndarray, prior: np.ndarray, recent_prior: np.ndarray, graph: LabelGraph):
        self.labels = labels
        self.prior = prior[labels]
        self.graph = graph
        self.table = np.zeros((len(FEATURES), len(labels)), np.float32)
        # Where each label stands among the candidates; the spare place at the end takes all others.
        self.place = np.full(len(prior), len(labels))
        self.place[labels] = np.arange(len(labels))
        self["log_prior"] = np.log(self.prior)
        self["recent_log_prior"] = np.log(recent_prior[labels])
        self["recent_lift"] = self["recent_log_prior"] - self["log_prior"]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.table[ROW[name]]

    def __setitem__(self, name: str, values: np.ndarray | float) -> None:
        self.table[ROW[name]] = values

    def _sum(self, place: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        return np.bincount(place, weights, len(self.labels) + 1)[:-1]

    def _greatest(self, labels: np.ndarray, values: np.ndarray) -> np.ndarray:
        result = np.zeros(len(self.labels) + 1)
        np.maximum.at(result, self.place[labels], values)
        return result[:-1]

    def add_votes(self, labels: np.ndarray, lengths: np.ndarray, similarities: np.ndarray) -> None:
        """Weighs the labels of neighbours.

        Args:
            labels: Labels of the neighbours, nearest first, one neighbour after the other.
            lengths: How many labels each neighbour has.
            similarities: Cosine of each neighbour.
        """
        # Each array of all votes is thousands long, so none is made twice.
        voter = np.repeat(np.arange(len(lengths)), lengths)
        place = self.place[labels]
        weights = similarities**2
        each = weights[voter]
        for name, most in _VOTERS:
            if len(lengths):
                end = lengths[:most].sum()
                self[name] = self._sum(place[:end], each[:end]) / weights[:most].sum()
        self["vote_all_log"] = np.log(self["vote_all"] + 1e-3)
        self["vote_50_log"] = np.log(self["vote_50"] + 5e-3)
        self["vote_15_log"] = np.log(self["vote_15"] + 1e-2)
        self["vote_count"] = np.log1p(self._sum(place))
        self["vote_lift"] = np.log(self["vote_all"] / self.prior + 0.02)
        # Assigning from far to near leaves at each label its nearest carrier.
        nearest = np.full(len(self.labels) + 1, -1)
        nearest[place[::-1]] = voter[::-1]
        voted = np.flatnonzero(nearest[:-1] >= 0)
        self["best_similarity"][voted] = similarities[nearest[voted]]
        self["best_rank"][voted] = 1 / np.sqrt(1 + nearest[voted])
        self._add_relatives("vote", self.labels, self["vote_15"])

    def add_journal(self, labels: np.ndarray, counts: np.ndarray, size: int) -> None:
        """Smoothed share of each label among the journal's `size` articles."""
        share = self._sum(self.place[labels], counts) + _JOURNAL_SMOOTHING * self.prior
        share /= size + _JOURNAL_SMOOTHING
        self["journal_share"] = share
        self["journal_log"] = np.log(share + 1e-3)
        self["journal_lift"] = np.log(share / self.prior)
        self["journal_known"] = size > 0

    def add_terms(
        self,
        labels: np.ndarray,
        places: np.ndarray,
        precisions: np.ndarray,
        counts: np.ndarray,
        is_name: np.ndarray,
        lengths: np.ndarray,
    ) -> None:
        """The most telling terms of each label, and what they say about its relatives; `(hits,)` each."""
        for name, place in (("term_title", TITLE), ("term_abstract", ABSTRACT), ("term_inside", INSIDE)):
            here = places == place
            self[name] = self._greatest(labels[here], precisions[here])
        best = np.clip(np.maximum(self["term_title"], self["term_abstract"]), 0.01, 0.99)
        self["term_logit"] = np.log(best / (1 - best)) / 4 + 1.2
        free = places != INSIDE
        labels, precisions = labels[free], precisions[free]
        self["term_count"] = np.log1p(self._sum(self.place[labels], counts[free]))
        self["terms_found"] = np.log1p(len(np.unique(labels)))
        self["term_in_title"] = self["term_title"] > 0
        self["term_is_name"] = self._greatest(labels, is_name[free])
        self["term_words"] = self._greatest(labels, lengths[free] / 4)
        self._add_relatives("term", labels, precisions)

    def add_words(self, predicted: np.ndarray) -> None:
        """What the words alone say about each label, `(labels,)`."""
        predicted = predicted[self.labels]
        self["words"] = predicted
        self["words_log"] = np.log(np.clip(predicted, 0, 1) + 1e-2)

    def _add_relatives(self, what: str, labels: np.ndarray, values: np.ndarray) -> None:
        """Gives each candidate the greatest value among its parents, and among its children."""
        graph = self.graph
        some = values > 0
        labels, values = labels[some], values[some]
        for name, targets, offsets in (
            ("parent", graph.children, graph.child_offsets),
            ("child", graph.parents, graph.parent_offsets),
        ):
            lengths = offsets[labels + 1] - offsets[labels]
            before = np.cumsum(lengths) - lengths
            related = targets[np.repeat(offsets[labels] - before, lengths) + np.arange(lengths.sum())]
            self[f"{name}_{what}"] = self._greatest(related, np.repeat(values, lengths))
