"""The numbers that speak for a candidate label: votes of neighbours, journal share, terms found, prior."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from .lexicon_kenmesh import ABSTRACT, INSIDE, TITLE
from .word_counts_kenmesh import places_of

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
VOTERS = (("vote_all", None), ("vote_50", 50), ("vote_15", 15), ("vote_5", 5))
_JOURNAL_SMOOTHING = 8.0


def rank_number(rank: np.ndarray) -> np.ndarray:
    """The number of a label whose nearest carrier has this rank among the neighbours, 0 for the first."""
    return 1 / np.sqrt(1 + rank)


def term_numbers(
    places: np.ndarray, precisions: np.ndarray, is_name: np.ndarray, lengths: np.ndarray
) -> dict[str, np.ndarray]:
    """What a term says of its label; a label has the greatest of each number.

    Args:
        places: `TITLE`, `ABSTRACT` or, within a longer term, `INSIDE`.
        precisions: Share of articles with the term there that carry its label.
        is_name: Whether it is the name of the descriptor.
        lengths: Number of its words.
    """
    free = places != INSIDE
    return {
        "term_title": precisions * (places == TITLE),
        "term_abstract": precisions * (places == ABSTRACT),
        "term_inside": precisions * ~free,
        "term_is_name": is_name * free,
        "term_words": lengths / 4 * free,
    }


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


class Numbers:
    """The numbers of labels, set source by source: how what a source says becomes what is learned from.

    Args:
        prior: Share of training articles that carry each label, of any shape.
        recent_prior: The same of the recent ones alone.
    """

    def __init__(self, prior: np.ndarray, recent_prior: np.ndarray):
        self.prior = prior
        self.table = np.zeros((len(FEATURES), *prior.shape), np.float32)
        self["log_prior"] = np.log(prior)
        self["recent_log_prior"] = np.log(recent_prior)
        self["recent_lift"] = self["recent_log_prior"] - self["log_prior"]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.table[ROW[name]]

    def __setitem__(self, name: str, values: np.ndarray | float) -> None:
        self.table[ROW[name]] = values

    def set_votes(self, shares: Mapping[str, np.ndarray], counts: np.ndarray) -> None:
        """Weighed shares of the votes, by the names of `VOTERS`, and how many neighbours carry the label."""
        for name, share in shares.items():
            self[name] = share
        self["vote_all_log"] = np.log(self["vote_all"] + 1e-3)
        self["vote_50_log"] = np.log(self["vote_50"] + 5e-3)
        self["vote_15_log"] = np.log(self["vote_15"] + 1e-2)
        self["vote_count"] = np.log1p(counts)
        self["vote_lift"] = np.log(self["vote_all"] / self.prior + 0.02)

    def set_journal(self, counts: np.ndarray, size: np.ndarray | int) -> None:
        """How many of the journal's `size` articles carry the label; the share is smoothed."""
        share = (counts + _JOURNAL_SMOOTHING * self.prior) / (size + _JOURNAL_SMOOTHING)
        self["journal_share"] = share
        self["journal_log"] = np.log(share + 1e-3)
        self["journal_lift"] = np.log(share / self.prior)
        self["journal_known"] = size > 0

    def set_terms(self, best: Mapping[str, np.ndarray], counts: np.ndarray, found: np.ndarray | int) -> None:
        """The greatest of each of `term_numbers` among the label's terms, how often they stand in the text,
        and how many labels have terms in it.
        """
        for name, values in best.items():
            self[name] = values
        precision = np.clip(np.maximum(self["term_title"], self["term_abstract"]), 0.01, 0.99)
        self["term_logit"] = np.log(precision / (1 - precision)) / 4 + 1.2
        self["term_count"] = np.log1p(counts)
        self["terms_found"] = np.log1p(found)
        self["term_in_title"] = self["term_title"] > 0

    def set_words(self, predicted: np.ndarray) -> None:
        """What the words alone say about the label."""
        self["words"] = predicted
        self["words_log"] = np.log(np.clip(predicted, 0, 1) + 1e-2)


class Evidence(Numbers):
    """The numbers of one article's candidates, filled source by source.

    Args:
        labels: The candidates, ascending.
        prior: Share of training articles that carry each label, the article itself left out, `(labels,)`.
        recent_prior: The same of the recent ones alone, `(labels,)`.
        graph: The hierarchy.
    """

    def __init__(self, labels: np.ndarray, prior: np.ndarray, recent_prior: np.ndarray, graph: LabelGraph):
        super().__init__(prior[labels], recent_prior[labels])
        self.labels = labels
        self.graph = graph
        # Where each label stands among the candidates; the spare place at the end takes all others.
        self.place = np.full(len(prior), len(labels))
        self.place[labels] = np.arange(len(labels))

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
        shares = {}
        for name, most in VOTERS if len(lengths) else ():
            end = lengths[:most].sum()
            shares[name] = self._sum(place[:end], each[:end]) / weights[:most].sum()
        self.set_votes(shares, self._sum(place))
        # Assigning from far to near leaves at each label its nearest carrier.
        nearest = np.full(len(self.labels) + 1, -1)
        nearest[place[::-1]] = voter[::-1]
        voted = np.flatnonzero(nearest[:-1] >= 0)
        self["best_similarity"][voted] = similarities[nearest[voted]]
        self["best_rank"][voted] = rank_number(nearest[voted])
        self._add_relatives("vote", self.labels, self["vote_15"])

    def add_journal(self, labels: np.ndarray, counts: np.ndarray, size: int) -> None:
        """The labels given in the article's journal, how often each, and the number of its articles."""
        self.set_journal(self._sum(self.place[labels], counts), size)

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
        free = places != INSIDE
        values = term_numbers(places, precisions, is_name, lengths)
        found = len(np.unique(labels[free]))
        best = {name: self._greatest(labels, number) for name, number in values.items()}
        self.set_terms(best, self._sum(self.place[labels[free]], counts[free]), found)
        self._add_relatives("term", labels[free], precisions[free])

    def add_words(self, predicted: np.ndarray) -> None:
        """What the words alone say about each label, `(labels,)`."""
        self.set_words(predicted[self.labels])

    def _add_relatives(self, what: str, labels: np.ndarray, values: np.ndarray) -> None:
        """Gives each candidate the greatest value among its parents, and among its children."""
        graph = self.graph
        some = values > 0
        labels, values = labels[some], values[some]
        for name, targets, offsets in (
            ("parent", graph.children, graph.child_offsets),
            ("child", graph.parents, graph.parent_offsets),
        ):
            places, lengths = places_of(offsets, labels)
            self[f"{name}_{what}"] = self._greatest(targets[places], np.repeat(values, lengths))
