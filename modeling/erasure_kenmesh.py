"""The numbers of an article's labels as they would be without one of its words, its journal, a neighbour.

To find all candidates anew for each word of an article would take a hundred times as long as its tags. Here
only the labels asked for are looked at, and everything that a word acts through is worked out at once for all
words: how near each neighbour is, which terms are found, what the word associations say. What is left as it
is: which articles are neighbours, and in which order. An age counts as gone with any of its words, though of
"aged 70 years" the first two may be enough.
"""

from typing import TYPE_CHECKING

import numpy as np

from .article_words_kenmesh import LONGEST, ArticleWords
from .evidence_kenmesh import VOTERS, LabelGraph, Numbers, rank_number, term_numbers
from .lexicon_kenmesh import INSIDE, Hits, Spans
from .proposals_kenmesh import Findings
from .word_counts_kenmesh import TITLE_WEIGHT, amounts_of, places_of, run_places

if TYPE_CHECKING:
    from .candidates_kenmesh import KenMeSHCandidates

# The first variants of an article: as it is, without any word, without its journal.
WHOLE, TEXTLESS, WITHOUT_JOURNAL = range(3)
# Carriers of a label among which the nearest one is looked for.
_NEAREST = 20
# Neighbours among which its rank is looked for.
_FIRST = 30
# Among how many times the nearest neighbours those of a variant are looked for.
_AMONG = 4


class Variants:
    """Variants of an article: `WHOLE`, `TEXTLESS`, `WITHOUT_JOURNAL`, without each word, without neighbours.

    Args:
        article: Its words.
        left_out: Neighbours of which a variant each lacks one, by their ranks.

    Attributes:
        words: The first variant that lacks a single word.
        neighbours: The first that lacks a neighbour.
        size: Number of variants.
    """

    def __init__(self, article: ArticleWords, left_out: np.ndarray):
        self.left_out = left_out
        self.words = WITHOUT_JOURNAL + 1
        self.neighbours = self.words + len(article.words)
        self.size = self.neighbours + len(left_out)
        # The variant that lacks the word of a position alone; none where the word is in all of them.
        self.of_position = np.where(article.number_of < 0, -1, self.words + article.number_of)

    def lacks(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Which of some runs of words, from `starts` to before `ends`, are not whole, `(runs, variants)`."""
        lacks = np.zeros((len(starts), self.size), bool)
        lengths = ends - starts
        run = np.repeat(np.arange(len(starts)), lengths)
        variant = self.of_position[run_places(starts, lengths)]
        lacks[run[variant >= 0], variant[variant >= 0]] = True
        lacks[:, TEXTLESS] = lengths > 0
        return lacks

    def count(self, positions: np.ndarray, groups: np.ndarray, worth: np.ndarray) -> np.ndarray:
        """What is left of groups of words in each variant, `(groups, variants)`.

        Args:
            positions: Of the words.
            groups: The group of each.
            worth: What each counts.
        """
        counts = np.repeat(np.bincount(groups, worth)[:, None], self.size, axis=1)
        variant = self.of_position[positions]
        some = variant >= 0
        np.subtract.at(counts, (groups[some], variant[some]), worth[some])
        counts[:, TEXTLESS] = 0
        return counts


class Erasures:
    """Numbers of labels in every variant of one article.

    Args:
        candidates: What proposes labels.
        article: Its words.
        findings: What the sources say about it.
        labels: The labels asked for.
        variants: Its variants.
    """

    def __init__(
        self,
        candidates: "KenMeSHCandidates",
        article: ArticleWords,
        findings: Findings,
        labels: np.ndarray,
        variants: Variants,
    ):
        self.candidates, self.article, self.findings, self.labels = candidates, article, findings, labels
        self.variants = variants
        self.relatives = _Relatives(labels, candidates.graph)

    def numbers(self) -> np.ndarray:
        """`(labels, variants, features)`."""
        shape = len(self.labels), self.variants.size
        priors = (self.findings.prior, self.findings.recent_prior)
        numbers = Numbers(*(np.broadcast_to(prior[self.labels][:, None], shape) for prior in priors))
        hashes, counts = self.count_words()
        self._add_votes(numbers, hashes, counts)
        journal = self._add_journal(numbers)
        named, free = self._add_terms(numbers)
        title_hashes, title_counts = self.count_words(self.article.titles)
        predicted = self.candidates.associations.predict_variants(
            {
                "words": (hashes, amounts_of(counts)),
                "title_words": (title_hashes, amounts_of(title_counts)),
                "terms": (named, free),
                "journals": journal,
            },
            self.labels,
            self.candidates.num_labels,
            self.findings.own.tolist(),
        )
        if predicted is None:
            # Stored for the article as it was: what each word adds to it is not known.
            predicted = np.broadcast_to(self.findings.predicted[self.labels][:, None], shape)
        numbers.set_words(predicted)
        return np.moveaxis(numbers.table, 0, -1)

    def count_words(self, last: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The distinct content words before a position, and how often each stands in each variant."""
        article = self.article
        chosen = np.flatnonzero(article.hashed.content[:last])
        hashes, group = np.unique(article.hashed.folded[chosen], return_inverse=True)
        worth = np.where(chosen < article.titles, float(TITLE_WEIGHT), 1.0)
        return hashes, self.variants.count(chosen, group, worth)

    def _add_votes(self, numbers: Numbers, hashes: np.ndarray, counts: np.ndarray) -> None:
        findings, variants = self.findings, self.variants
        near = findings.near
        if not len(near):
            numbers.set_votes({}, np.zeros(numbers.prior.shape))
            return
        similarities = self.candidates.index.similarities(hashes, counts, near, findings.own)
        similarities[variants.left_out, np.arange(variants.neighbours, variants.size)] = 0
        carriers, own = self.relatives.carriers(findings), len(self.labels)
        votes = {name: _votes(similarities, most) for name, most in VOTERS}
        voted = carriers[:, :own].T
        shares = {name: voted[:, : len(weights)] @ weights for name, weights in votes.items()}
        numbers.set_votes(shares, self._count_carriers(voted, similarities))
        for row in range(own):
            self._add_nearest(numbers, row, np.flatnonzero(carriers[:, row])[:_NEAREST], similarities)
        weights = votes["vote_15"]
        self.relatives.give(numbers, "vote", carriers[: len(weights)].T @ weights)

    def _count_carriers(self, voted: np.ndarray, similarities: np.ndarray) -> np.ndarray:
        """How many neighbours carry each label in each variant."""
        if len(similarities) < self.candidates.options.neighbours:
            return voted @ (similarities > 0).astype(np.float32)
        # For one that is no neighbour without a word another comes.
        counts = np.repeat(voted.sum(1)[:, None], self.variants.size, axis=1)
        counts[:, TEXTLESS] = 0
        return counts

    def _add_nearest(
        self, numbers: Numbers, row: int, carriers: np.ndarray, similarities: np.ndarray
    ) -> None:
        """How near the nearest carrier of a label is, and its rank, as exact as its place among the first."""
        if not len(carriers):
            return
        best = carriers[similarities[carriers].argmax(0)]
        nearest = similarities[best, np.arange(self.variants.size)]
        first = similarities[:_FIRST]
        # Of articles that are equally near the first comes first.
        before = np.where(np.arange(len(first))[:, None] < best, first >= nearest, first > nearest)
        rank = np.where(best < len(first), before.sum(0), best)
        numbers["best_similarity"][row] = nearest
        numbers["best_rank"][row] = rank_number(rank) * (nearest > 0)

    def _add_journal(self, numbers: Numbers) -> tuple[np.ndarray, np.ndarray]:
        """Sets the numbers; gives the journal as an input of the word associations."""
        findings = self.findings
        known = np.ones(self.variants.size)
        known[WITHOUT_JOURNAL] = 0
        counts = np.zeros(self.candidates.num_labels)
        counts[findings.given] = findings.given_counts
        numbers.set_journal(counts[self.labels][:, None] * known, findings.journal_size * known)
        journal = np.array([findings.journal] if findings.journal >= 0 else [], np.int64)
        return journal, np.broadcast_to(known, (len(journal), len(known)))

    def _add_terms(self, numbers: Numbers) -> tuple[np.ndarray, np.ndarray]:
        """Sets the numbers; gives the labels that terms name, and in which variants they do."""
        lexicon, findings, spans = self.candidates.lexicon, self.findings, self.article.spans
        named = lexicon.labels[spans.terms].astype(np.int64)
        order = np.argsort(named, kind="stable")
        spans = Spans(*(part[order] for part in spans))
        labels, starts = np.unique(named[order], return_index=True)
        if not len(labels):
            numbers.set_terms({}, np.zeros(numbers.prior.shape), 0)
            return labels, np.zeros((0, self.variants.size))
        alive, inside = self._alive(spans)
        fields = np.where(inside, INSIDE, spans.texts[:, None])
        both = [
            lexicon.precision(
                Hits(spans.texts, spans.terms, place, spans.lengths),
                np.array(len(findings.own)),
                findings.own_counts[named[order]],
            )
            for place in (spans.texts, np.full_like(spans.texts, INSIDE))
        ]
        precisions = np.where(inside, both[1][:, None], both[0][:, None])
        is_name = lexicon.is_name[spans.terms][:, None]
        values = term_numbers(fields, precisions, is_name, lexicon.lengths[spans.terms][:, None])
        best = {name: np.maximum.reduceat(value * alive, starts) for name, value in values.items()}
        counts = np.add.reduceat(alive & ~inside, starts, dtype=np.int64)
        mine = self.relatives.rows_of(labels)
        found = (counts > 0).sum(0)
        own = len(self.labels)
        spread = {name: _spread(value, mine, self.relatives.size)[:own] for name, value in best.items()}
        numbers.set_terms(spread, _spread(counts, mine, self.relatives.size)[:own], found)
        free = np.maximum(best["term_title"], best["term_abstract"])
        self.relatives.give(numbers, "term", _spread(free, mine, self.relatives.size))
        return labels, (counts > 0).astype(np.float64)

    def _alive(self, spans: Spans) -> tuple[np.ndarray, np.ndarray]:
        """In which variants each term is found, and in which it lies within another, `(spans, variants)`."""
        ends = spans.starts + spans.lengths
        alive = ~self.variants.lacks(spans.starts, ends)
        inside = np.repeat(spans.inside[:, None], self.variants.size, axis=1)
        # Further on nothing is taken out but all.
        here = np.flatnonzero(spans.starts < LONGEST)
        starts, ends, lengths = spans.starts[here], ends[here], spans.lengths[here]
        within = (starts <= starts[:, None]) & (ends >= ends[:, None]) & (lengths != lengths[:, None])
        inside[here] = (within.astype(np.float32) @ alive[here].astype(np.float32)) > 0
        return alive, inside


class _Relatives:
    """Some labels, then their parents and children: what is said of these counts for them, too."""

    def __init__(self, labels: np.ndarray, graph: LabelGraph):
        related = {}
        for name, targets, offsets in (
            ("parent", graph.parents, graph.parent_offsets),
            ("child", graph.children, graph.child_offsets),
        ):
            places, lengths = places_of(offsets, labels)
            related[name] = targets[places], lengths
        others = np.setdiff1d(np.concatenate([relatives for relatives, _ in related.values()]), labels)
        self.labels = np.concatenate([labels, others])
        self.size = len(self.labels)
        self._row = np.full(len(graph.parent_offsets) - 1, -1)
        self._row[self.labels] = np.arange(self.size)
        # Which labels have such relatives, where those of each begin, and which they are among these.
        self.pairs = {
            name: (
                np.flatnonzero(lengths),
                (np.cumsum(lengths) - lengths)[lengths > 0],
                self.rows_of(relatives),
            )
            for name, (relatives, lengths) in related.items()
        }

    def rows_of(self, labels: np.ndarray) -> np.ndarray:
        """Where labels stand among these; -1 for others."""
        return self._row[labels]

    def carriers(self, findings: Findings) -> np.ndarray:
        """Which neighbours carry which of the labels, `(neighbours, labels)`."""
        rows = self.rows_of(findings.voted)
        voter = np.repeat(np.arange(len(findings.lengths)), findings.lengths)
        carriers = np.zeros((len(findings.lengths), self.size), np.float32)
        carriers[voter[rows >= 0], rows[rows >= 0]] = 1
        return carriers

    def give(self, numbers: Numbers, what: str, values: np.ndarray) -> None:
        """Gives each label the greatest value among its parents, and among its children."""
        for name, (rows, starts, relatives) in self.pairs.items():
            if len(rows):
                numbers[f"{name}_{what}"][rows] = np.maximum.reduceat(values[relatives], starts)


def _votes(similarities: np.ndarray, most: int | None) -> np.ndarray:
    """What the vote of each neighbour is worth if only the nearest `most` of each variant vote.

    Those are looked for among a few times as many, which are then all that is returned.
    """
    votes = similarities[: _AMONG * most if most else None] ** 2
    if most and len(votes) > most:
        least = np.partition(votes.T, len(votes) - most, axis=1)[:, len(votes) - most]
        votes *= votes >= least
    return votes / np.maximum(votes.sum(0), 1e-12)


def _spread(values: np.ndarray, rows: np.ndarray, size: int) -> np.ndarray:
    """Values at their rows, zeros elsewhere; those of row -1 are left out."""
    spread = np.zeros((size, *values.shape[1:]))
    spread[rows[rows >= 0]] = values[rows >= 0]
    return spread
