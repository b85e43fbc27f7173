"""The first half of `kenmesh prepare`: read every file once, then divide the articles into three sets."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from ..errors import InputError
from ..mesh import read_vocabulary, uis_of_terms
from ..modeling.pipeline_kenmesh import batches
from ..modeling.text_kenmesh import content_words
from ..options import PrepareOptions
from ..reading import (
    COMPANIONS,
    Article,
    PmidSet,
    ReadReport,
    join_headings,
    list_files,
    read_articles,
    read_heading_files,
    write_articles,
)
from ..sharing import SPLITS
from .dataset import ARTICLES_FOLDER
from .splits import SplitPlan, plan_split
from .stages import Job, Stage, Stages, file_state

READ_FOLDER = "read"


class _Recorded(PmidSet):
    """A set of PMIDs that also tells which were added."""

    def __init__(self) -> None:
        self.added: list[str] = []
        super().__init__()

    def add(self, pmid: str) -> None:
        self.added.append(pmid)
        super().add(pmid)


def list_inputs(paths: Iterable[str]) -> list[Path]:
    """All files behind paths but checksums and the like, which `pubmed26n*` names, too.

    NLM's numbered ones come first, the newest foremost: a PMID's first record counts.
    """
    files = (Path(path) for path in list_files(paths))
    return [path for path in files if path.suffix not in COMPANIONS]


# The MeSH file, and that of its tree numbers if there is one.
Mesh = tuple[str, str | None]


@lru_cache(maxsize=1)
def _uis_of_terms(mesh: Mesh) -> dict[str, str]:
    return uis_of_terms(read_vocabulary(*mesh))


def resolve(article: Article, mesh: Mesh) -> Article:
    """The article with the descriptors of headings that only have a name; most files give descriptors."""
    return article.with_uis(_uis_of_terms(mesh)) if article.unresolved else article


def read_file(path: str, target: Path, human_only: bool, strict: bool, mesh: Mesh) -> dict[str, Any]:
    """Reads one file into compressed JSONL.

    An article that cannot be trained on leaves its PMID alone, as does one that NLM withdrew: a row without
    headings says that older files' records of this PMID don't count.
    """
    report, left_out = ReadReport(deleted=_Recorded()), Counter[str]()

    def rows() -> Iterator[Article]:
        for article in read_articles(path, strict=strict, report=report):
            article = resolve(article, mesh)
            if reason := why_not(article, human_only):
                left_out[reason] += 1
                article = Article(pmid=article.pmid)
            yield article
        assert isinstance(report.deleted, _Recorded)
        yield from (Article(pmid=pmid) for pmid in report.deleted.added)

    target.parent.mkdir(parents=True, exist_ok=True)
    write_articles((article for article in rows() if article.pmid or article.headings), target)
    return {"file": Path(path).name, "left_out": dict(left_out), **report.to_dict()}


def why_not(article: Article, human_only: bool) -> str | None:
    """Why an article cannot be trained on; None if it can."""
    if not article.descriptors:
        return "no MeSH headings"
    if human_only and not article.human_indexed:
        return "headings chosen by a program"
    if not content_words(article.title) and not content_words(article.abstract):
        return "no text"
    return None


def read_pmids(path: str, target: Path, strict: bool) -> dict[str, Any]:
    """Writes the PMIDs of the articles in a file."""
    report = ReadReport()
    found = read_articles(path, strict=strict, report=report)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_articles((Article(pmid=article.pmid) for article in found if article.pmid), target)
    return {"file": Path(path).name, **report.to_dict()}


def read_all(
    stages: Stages, options: PrepareOptions, progress: bool
) -> tuple[list[Stage], list[Path], list[Path]]:
    """Reads every file of labelled articles and of PMC.

    Returns:
        The stages, the files with articles, the files with PMC's PMIDs.
    """
    folder = stages.folder / READ_FOLDER
    jobs, articles, pmids = [], [], []
    for path in chain(list_inputs(options.pubmed), list_inputs(options.articles)):
        settings = (options.human_only, options.strict)
        jobs.append(_reading(folder, path, read_file, settings, (options.mesh, options.mesh_trees)))
        articles.append(jobs[-1].output)
    for path in list_inputs(options.pmc):
        jobs.append(_reading(folder, path, read_pmids, (options.strict,)))
        pmids.append(jobs[-1].output)
    size = sum(job.weight for job in jobs)
    with tqdm(total=size, desc="Reading", unit="B", unit_scale=True, disable=not progress) as bar:
        return stages.run_all(jobs, options.num_proc, bar), articles, pmids


def _reading(folder: Path, path: Path, work: Any, settings: tuple[Any, ...], *mesh: Mesh) -> Job:
    key = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]
    name = f"{work.__name__}-{path.name}-{key}"
    output = folder / f"{name}.jsonl.gz"
    return Job(
        f"{READ_FOLDER}/{name}",
        [file_state(path), *settings, *(file_state(file) for files in mesh for file in files if file)],
        output,
        work,
        (str(path), output, *settings, *mesh),
        path.stat().st_size,
    )


def merge(files: Iterable[Path], wanted: PmidSet | None = None) -> Iterator[Article]:
    """Articles of what `read_file` wrote: the first record of each PMID, where it can be trained on."""
    seen = PmidSet()
    for file in files:
        for article in read_articles(file, strict=True, every_version=True):
            if article.pmid:
                if article.pmid in seen:
                    continue
                seen.add(article.pmid)
            if article.headings and (wanted is None or (article.pmid and article.pmid in wanted)):
                yield article


def text_key(article: Article) -> bytes:
    """The same for articles of the same words."""
    words = " ".join([*content_words(article.title), "", *content_words(article.abstract)])
    return hashlib.blake2b(words.encode(), digest_size=12).digest()


def divide(
    files: list[Path], pmids: list[Path], options: PrepareOptions, folder: Path, progress: bool
) -> dict[str, Any]:
    """Writes the articles of each set to files of a fixed number of articles.

    A training article that also stands in another set, by PMID or by its words, is left out.
    """
    wanted = None
    if pmids:
        rows = (row for file in pmids for row in read_articles(file, every_version=True))
        wanted = PmidSet(row.pmid for row in rows if row.pmid)
    left_out, known = Counter[str](), read_heading_files(options.headings)
    bar = tqdm(desc="Dividing", unit=" articles", disable=not progress)

    def merged() -> Iterator[Article]:
        for article in merge(files, wanted):
            bar.update()
            yield join_headings(article, known)

    with bar:
        plan = None if options.validation or options.test else _plan(merged(), options)
        held_out = _held_out(plan, merged(), options, left_out)
        held_out = {split: [join_headings(a, known) for a in part] for split, part in held_out.items()}
        pmids_out = PmidSet(a.pmid for part in held_out.values() for a in part if a.pmid)
        texts_out = {text_key(article) for part in held_out.values() for article in part}

        def training() -> Iterator[Article]:
            for article in merged():
                if plan is not None and plan.part(article) != "train":
                    continue
                if not article.abstract and not options.title_only:
                    left_out["no abstract"] += 1
                elif (article.pmid and article.pmid in pmids_out) or text_key(article) in texts_out:
                    left_out["also in the validation or test set"] += 1
                else:
                    yield article

        sizes = {"train": _write(training(), folder, "train", options.articles_per_file)}
        for split, articles in held_out.items():
            sizes[split] = _write(articles, folder, split, options.articles_per_file)
    if not sum(sizes["train"]):
        raise InputError("No article is left to train on; the report of the reading above tells why.")
    return {"files": sizes, "left_out": dict(left_out), "rule": _rule(plan, options)}


def _plan(articles: Iterable[Article], options: PrepareOptions) -> SplitPlan:
    return plan_split(
        articles, test=options.test_size, validation=options.validation_size, by=options.split_by
    )


def _held_out(
    plan: SplitPlan | None, articles: Iterable[Article], options: PrepareOptions, left_out: Counter[str]
) -> dict[str, list[Article]]:
    """Validation and test articles, split off or given."""
    if plan is None:
        given = {"validation": options.validation, "test": options.test}
        return {split: _given(path, options, left_out) for split, path in given.items() if path}
    held_out: dict[str, list[Article]] = {"validation": [], "test": []}
    for article in articles:
        part = plan.part(article)
        if part is None:
            left_out["as new as the articles held out, but without abstract"] += 1
        elif part != "train":
            held_out[part].append(article)
    return held_out


def _given(path: str, options: PrepareOptions, left_out: Counter[str]) -> list[Article]:
    mesh = options.mesh, options.mesh_trees
    articles = [resolve(article, mesh) for article in read_articles(path, strict=True)]
    labelled = [article for article in articles if article.descriptors]
    if not labelled:
        raise InputError(f"{path} has no article with MeSH headings, so nothing can be measured on it.")
    if len(labelled) < len(articles):
        left_out[f"no MeSH headings, in {Path(path).name}"] += len(articles) - len(labelled)
    return labelled


def _rule(plan: SplitPlan | None, options: PrepareOptions) -> str:
    if plan is None:
        sets = {"validation": options.validation, "test": options.test}
        given = [f"the {split} set is {Path(path).name}" for split, path in sets.items() if path]
        return (
            f"Given: {', '.join(given)}. Articles that also stand there were taken out of the training set."
        )
    order = "date of publication" if plan.by == "date" else "PMID"
    return (
        f"The newest {options.test_size:,} articles with abstract by {order} are the test set, the "
        f"{options.validation_size:,} before them the validation set, older ones the training set."
    )


def _write(articles: Iterable[Article], folder: Path, split: str, size: int) -> list[int]:
    """Writes numbered files of at most `size` articles; tells the number in each."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = []
    for number, batch in enumerate(batches(articles, size)):
        sizes.append(write_articles(batch, article_file(folder, split, number)))
    return sizes


def article_file(folder: Path, split: str, number: int) -> Path:
    """Name of a file of divided articles."""
    return folder / f"{split}-{number:05d}.jsonl.gz"


def prepare_articles(stages: Stages, options: PrepareOptions, progress: bool) -> tuple[list[Stage], Stage]:
    """Reads and divides; what is already done stays."""
    reading, files, pmids = read_all(stages, options, progress)
    folder = Path(options.out) / ARTICLES_FOLDER
    settings = {
        name: getattr(options, name)
        for name in ("validation_size", "test_size", "split_by", "title_only", "articles_per_file")
    }
    given = [file_state(path) for path in (options.validation, options.test, *options.headings) if path]
    inputs = [[stage.fingerprint for stage in reading], settings, bool(options.validation), given]
    # A stale file of a larger division would be taken for a part of this one.
    stage = stages.find("divide", inputs, [folder])
    if not stage.reused:
        for split in SPLITS:
            for path in folder.glob(f"{split}-*.jsonl.gz"):
                path.unlink()
    return reading, stages.run(
        "divide", inputs, [folder], lambda: divide(files, pmids, options, folder, progress)
    )
