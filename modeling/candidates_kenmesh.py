"""Labels worth looking at for an article, with evidence for each: neighbours ∪ journal ∪ terms ∪ words."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from transformers.utils import logging

from .article_words_kenmesh import ArticleWords
from .associations_kenmesh import Readings, WordAssociations
from .dense_neighbours_kenmesh import DenseNeighbours
from .evidence_kenmesh import FEATURES, Evidence, LabelGraph
from .indexed_articles_kenmesh import IndexedArticles, LabelFrequencies
from .journals_kenmesh import Journal, JournalTable
from .lexicon_kenmesh import Hits, Lexicon
from .neighbours_kenmesh import SparseNeighbours
from .proposals_kenmesh import CandidateOptions, Findings
from .pruned_neighbours_kenmesh import PrunedNeighbours
from .tensors_kenmesh import map_tensors, save_tensors
from .terms_kenmesh import hash_words
from .word_counts_kenmesh import count_terms, hash_articles

OPTIONS_FILE = "candidates.json"
TABLES_FILE = "candidates.safetensors"
NEIGHBOURS_FILE = "neighbours.safetensors"
logger = logging.get_logger(__name__)


@dataclass
class CandidateBatch:
    """Candidates of several articles, one article after the other.

    Attributes:
        offsets: Where each article's candidates begin, int64 `(articles + 1,)`.
        label_ids: int32 `(candidates,)`, ascending within an article.
        features: The numbers of each candidate, float32 `(candidates, features)`.
        findings: What the sources said about each article, if it was to be kept.
    """

    offsets: np.ndarray
    label_ids: np.ndarray
    features: np.ndarray
    findings: list[Findings] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def row(self, article: int) -> tuple[np.ndarray, np.ndarray]:
        """Labels and numbers of one article."""
        span = slice(self.offsets[article], self.offsets[article + 1])
        return self.label_ids[span], self.features[span]

    def split(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Labels and numbers of each article in turn."""
        return (self.row(article) for article in range(len(self)))


class KenMeSHCandidates:
    """Proposes labels for articles.

    An article that is itself in the index, known by its PMID or its words, never meets itself: it is no
    neighbour of its own, and its counts are taken out of every table. So training articles get the numbers
    that unseen ones would get.
    """

    FEATURES = FEATURES

    def __init__(
        self,
        index: SparseNeighbours | DenseNeighbours,
        articles: IndexedArticles,
        journals: JournalTable,
        lexicon: Lexicon,
        associations: WordAssociations,
        edges: np.ndarray,
        num_labels: int,
        options: CandidateOptions | None = None,
        ranker: np.ndarray | None = None,
        frequencies: LabelFrequencies | None = None,
    ):
        self.index, self.articles, self.journals, self.lexicon = index, articles, journals, lexicon
        self.associations = associations
        self.edges = edges
        self.num_labels = num_labels
        self.options = options or CandidateOptions()
        self.ranker = np.zeros(len(FEATURES) + 1, np.float32) if ranker is None else ranker
        self.graph = LabelGraph.from_edges(edges, num_labels)
        self._recent = articles.since(self.options.recent)
        # A model shared without its index still knows how frequent each label was.
        self.frequencies = frequencies or LabelFrequencies.of(
            articles, np.arange(len(articles)), self._recent, num_labels
        )
        # Most articles that are tagged are not indexed, so what `_count_own` says of them is kept.
        self._stranger = np.zeros(num_labels, np.int64), self.frequencies.shares()

    @property
    def label_counts(self) -> np.ndarray:
        """How many training articles carry each label, `(labels,)`."""
        return self.frequencies.counts[0]

    @property
    def num_articles(self) -> int:
        """Number of training articles."""
        return int(self.frequencies.sizes[0])

    def __call__(
        self,
        titles: Sequence[str],
        abstracts: Sequence[str],
        journals: Sequence[Journal],
        pmids: Sequence[str | int | None] | None = None,
        *,
        keep_findings: bool = False,
        keep_neighbours: bool = False,
    ) -> CandidateBatch:
        """Candidates of a batch of articles.

        Args:
            titles: Titles; may be empty.
            abstracts: Abstracts; may be empty.
            journals: Title, abbreviation or NLM id of each journal, or several of these; may be empty.
            pmids: PMIDs, where known.
            keep_findings: Keep what the sources said, half a megabyte an article.
            keep_neighbours: Keep of it what has no number for each label, a tenth of a megabyte an article.
        """
        kept: list[Findings] = []
        labels, features = [np.zeros(0, np.int32)], [np.zeros((0, len(FEATURES)), np.float32)]
        for findings in self.look_up(titles, abstracts, journals, pmids):
            found, numbers = self.weigh(findings, self.options)
            labels.append(found)
            features.append(numbers)
            if keep_findings or keep_neighbours:
                kept.append(findings if keep_findings else findings.without_labels())
        offsets = np.cumsum([*map(len, labels)])
        return CandidateBatch(offsets, np.concatenate(labels), np.concatenate(features), kept)

    def look_up(
        self,
        titles: Sequence[str],
        abstracts: Sequence[str],
        journals: Sequence[Journal],
        pmids: Sequence[str | int | None] | None = None,
    ) -> Iterator[Findings]:
        """What every source says about each article of a batch; arguments as for a call."""
        title_words, abstract_words = hash_words(titles), hash_words(abstracts)
        pmids = [None] * len(titles) if pmids is None else pmids
        own = self.articles.find(pmids, hash_articles(title_words, abstract_words))
        counts = count_terms(title_words, abstract_words)
        neighbours = self.index.search(counts, self.options.neighbours, own)
        hits = self.lexicon.hits(title_words, abstract_words)
        named = self.lexicon.labels[hits.terms].astype(np.int64)
        numbers = self.journals.numbers(journals)
        readings = Readings.of(counts, count_terms(title_words), hits, named, numbers)
        inputs = self.associations.inputs(readings)
        bounds = np.searchsorted(hits.articles, np.arange(len(titles) + 1))
        for row, (near, similarities) in enumerate(neighbours):
            span = slice(bounds[row], bounds[row + 1])
            own_counts, (prior, recent_prior) = self._count_own(own[row])
            voted, lengths = self.articles.labels_of(near)
            given, given_counts, journal_size = self._journal_counts(numbers[row], own[row])
            yield Findings(
                own=own[row],
                own_counts=own_counts,
                prior=prior,
                recent_prior=recent_prior,
                near=near,
                similarities=similarities,
                voted=voted,
                lengths=lengths,
                journal=int(numbers[row]),
                given=given,
                given_counts=given_counts,
                journal_size=journal_size,
                hits=Hits(*(part[span] for part in hits)),
                named=named[span],
                predicted=self.associations.predict(inputs, row, self.num_labels, own[row].tolist()),
                words=counts.of(row),
            )

    def weigh(self, findings: Findings, options: CandidateOptions) -> tuple[np.ndarray, np.ndarray]:
        """The candidates of one article, ascending, and their numbers."""
        evidence = Evidence(findings.propose(options), findings.prior, findings.recent_prior, self.graph)
        evidence.add_votes(findings.voted, findings.lengths, findings.similarities)
        evidence.add_journal(findings.given, findings.given_counts, findings.journal_size)
        hits, named = findings.hits, findings.named
        evidence.add_terms(
            named,
            hits.places,
            self.lexicon.precision(hits, np.array(len(findings.own)), findings.own_counts[named]),
            hits.counts,
            self.lexicon.is_name[hits.terms],
            self.lexicon.lengths[hits.terms],
        )
        evidence.add_words(findings.predicted)
        labels, table, most = evidence.labels, evidence.table, options.max_candidates
        if most is not None and len(labels) > most:
            best = np.argpartition(-self.ranker[:-1] @ table, most - 1)[:most]
            best.sort()
            labels, table = labels[best], table[:, best]
        return labels.astype(np.int32), np.ascontiguousarray(table.T)

    def _count_own(self, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How often each label is given to the article itself, and its shares of all other articles."""
        if not len(own):
            return self._stranger
        less = LabelFrequencies.of(self.articles, own, self._recent, self.num_labels)
        return less.counts[0], self.frequencies.shares(less)

    def _journal_counts(self, number: int, own: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """Labels of a journal with their counts and its size, the article itself taken out."""
        labels, counts, size = self.journals.counts_at(number)
        labels = labels.astype(np.int64)
        own = own[self.journals.of_articles[own] == number]
        own_counts = np.bincount(self.articles.labels_of(own)[0], minlength=self.num_labels)
        return labels, np.maximum(counts - own_counts[labels], 0), max(size - len(own), 0)

    def explain(
        self,
        title: str = "",
        abstract: str = "",
        journal: Journal = None,
        pmid: str | int | None = None,
        labels: Sequence[int] | np.ndarray = (),
        most: int = 5,
    ) -> list[dict[str, Any]]:
        """Says why labels are proposed for one article.

        Args:
            title: Title; may be empty.
            abstract: Abstract; may be empty.
            journal: Title, abbreviation or NLM id of the journal, or several of these.
            pmid: PMID, where known.
            labels: The labels to explain.
            most: How many neighbours are named for a label.

        Returns:
            For each label the nearest training articles that carry it (`neighbours`: PMID and similarity),
            its share of the journal's articles (`journal`, None for an unknown journal) and the term found in
            the text (`term`: text, field, start and end, None if there is none).
        """
        [findings] = self.look_up([title], [abstract], [journal], [pmid])
        [article] = ArticleWords.of_all([(title, abstract)], self.lexicon)
        return self.tell(article, findings, np.asarray(labels, np.int64), most)

    def tell(
        self, article: ArticleWords, findings: Findings, labels: np.ndarray, most: int
    ) -> list[dict[str, Any]]:
        """What `explain` says, of an article that was looked up; each neighbour also has its `rank`.

        Args:
            article: Its words, and the terms among them.
            findings: What was found out about it.
            labels: The labels to explain.
            most: How many neighbours are named for a label.
        """
        asked = np.zeros(self.num_labels, bool)
        asked[labels] = True
        votes = np.flatnonzero(asked[findings.voted])
        voted, owner = findings.voted[votes], np.searchsorted(np.cumsum(findings.lengths), votes, "right")
        terms = self._best_terms(article, asked)
        pmids, size = self.articles.pmids[findings.near], findings.journal_size
        reasons = []
        for label in labels.tolist():
            carriers = owner[voted == label]
            carriers = carriers[pmids[carriers] > 0][:most]
            share = findings.given_counts[findings.given == label].sum()
            reasons.append(
                {
                    "neighbours": [
                        {
                            "pmid": str(pmids[rank]),
                            "similarity": round(float(findings.similarities[rank]), 4),
                            "rank": rank,
                        }
                        for rank in carriers.tolist()
                    ],
                    "journal": float(share / size) if size else None,
                    "term": terms.get(label),
                }
            )
        return reasons

    def _best_terms(self, article: ArticleWords, asked: np.ndarray) -> dict[int, dict[str, Any]]:
        """For each label asked for and named in the article its longest term, in the title first."""
        spans = article.spans
        best: dict[int, dict[str, Any]] = {}
        length: dict[int, int] = {}
        named = self.lexicon.labels[spans.terms]
        chosen = np.flatnonzero(asked[named])
        columns = (spans.starts[chosen], spans.lengths[chosen], named[chosen])
        for first, count, label in zip(*(column.tolist() for column in columns), strict=True):
            if count > length.get(label, 0):
                field = int(first >= article.titles)
                start, end = int(article.positions[first, 0]), int(article.positions[first + count - 1, 1])
                best[label] = {
                    "text": article.texts[field][start:end],
                    "field": ("title", "abstract")[field],
                    "start": start,
                    "end": end,
                }
                length[label] = count
        return best

    @classmethod
    def is_saved_in(cls, folder: str | os.PathLike) -> bool:
        """Whether a folder holds saved candidates."""
        return (Path(folder) / OPTIONS_FILE).exists()

    def save_pretrained(self, save_directory: str | os.PathLike) -> list[str]:
        """Writes options and tables; the same candidates give the same bytes."""
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        settings = {"num_labels": self.num_labels, "features": FEATURES} | asdict(self.options)
        (folder / OPTIONS_FILE).write_text(
            json.dumps(settings, indent=2) + "\n", encoding="utf-8", newline="\n"
        )
        parts: dict[str, Any] = {
            "journals": self.journals,
            "lexicon": self.lexicon,
            "words": self.associations,
        }
        tables = {
            f"{name}.{key}": value for name, part in parts.items() for key, value in part.tensors.items()
        }
        tables |= {
            "edges": self.edges.astype(np.uint32),
            "ranker": self.ranker.astype(np.float32),
            "label_counts": self.frequencies.counts.astype(np.uint32),
            "num_articles": self.frequencies.sizes.astype(np.uint32),
        }
        if isinstance(self.index, DenseNeighbours):
            self.index.save_index(folder)
        parts = {"index": self.index, "articles": self.articles}
        stored = {
            f"{name}.{key}": value for name, part in parts.items() for key, value in part.tensors.items()
        }
        for name, tensors in ((TABLES_FILE, tables), (NEIGHBOURS_FILE, stored)):
            save_tensors(tensors, folder / name)
        return [str(folder / name) for name in (OPTIONS_FILE, TABLES_FILE, NEIGHBOURS_FILE)]

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike) -> "KenMeSHCandidates":
        """Reads what `save_pretrained` wrote."""
        folder = Path(folder)
        settings = json.loads((folder / OPTIONS_FILE).read_text(encoding="utf-8"))
        num_labels, features = settings.pop("num_labels"), settings.pop("features")
        if tuple(features) != FEATURES:
            raise ValueError(
                f"{folder / OPTIONS_FILE} lists other numbers for a candidate than this version computes; "
                "build the candidates again."
            )
        tables = map_tensors(folder / TABLES_FILE)
        options = CandidateOptions(**settings)
        index, articles = cls._load_index(folder, options)

        def part(tensors: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
            return {key.removeprefix(name): value for key, value in tensors.items() if key.startswith(name)}

        return cls(
            index,
            articles,
            JournalTable(part(tables, "journals.")),
            Lexicon(part(tables, "lexicon.")),
            WordAssociations(part(tables, "words.")),
            tables["edges"].astype(np.int64),
            num_labels,
            options,
            tables["ranker"],
            LabelFrequencies(
                tables["label_counts"].astype(np.int64), tables["num_articles"].astype(np.int64)
            ),
        )

    @classmethod
    def _load_index(
        cls, folder: Path, options: CandidateOptions
    ) -> tuple[SparseNeighbours | DenseNeighbours, IndexedArticles]:
        """The neighbour index and what is remembered of its articles; empty for a model without them."""
        if not (folder / NEIGHBOURS_FILE).exists():
            logger.warning_once(
                f"{folder} has no neighbour index: candidates come from the other sources only."
            )
            return SparseNeighbours.build([]), IndexedArticles.build([], np.zeros(0, np.uint64), [], [])
        stored = map_tensors(folder / NEIGHBOURS_FILE)
        index: dict[str, np.ndarray] = {}
        articles: dict[str, np.ndarray] = {}
        for key, value in stored.items():
            kind, _, name = key.partition(".")
            (index if kind == "index" else articles)[name] = value
        if options.index == "dense":
            return DenseNeighbours.load(index, folder), IndexedArticles(articles)
        form = PrunedNeighbours if "article_words" in index else SparseNeighbours
        return form(index), IndexedArticles(articles)
