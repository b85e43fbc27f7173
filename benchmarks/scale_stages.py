"""What is measured at one size: preparing, the search of neighbours, tagging, the first steps of training.

Each `measure_*` returns figures by name. What is measured in one thread runs in a fresh process.
"""

import json
import multiprocessing
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from threading import BrokenBarrierError
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from processes import SAMPLE_SECONDS, Cost, in_fresh_process, memory_of, one_thread, run_measured
from tagging import read_strangers

from kenmesh_hf.errors import InputError
from kenmesh_hf.files import unfinished, write_json
from kenmesh_hf.indexing import candidate_report, find_candidates, hash_texts, label_ids
from kenmesh_hf.modeling.candidates_kenmesh import KenMeSHCandidates
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor
from kenmesh_hf.modeling.thresholds_kenmesh import Thresholds
from kenmesh_hf.modeling.word_counts_kenmesh import count_terms, hash_articles
from kenmesh_hf.preparing import load_prepared
from kenmesh_hf.reading import Article, read_articles
from kenmesh_hf.sharing import load
from kenmesh_hf.training import build_network, options_for, start_evidence

# The nearest articles that must be found; more of them vote, but these weigh most.
NEAREST = 100
TAGGED_AT_ONCE = 128
# Articles whose candidates teach a network for the measures of speed what a likely label is.
TAUGHT = 200
TRAIN_STEPS = 20
# A process that has not loaded its model by then was ended by the system.
LOAD_SECONDS = 600


def measure_prepare(
    folder: Path, options: Sequence[str], made_from: dict[str, Any], afresh: bool
) -> dict[str, Any]:
    """`kenmesh prepare`: processor time, memory, room on the disk.

    Args:
        folder: Gets `dataset/`.
        options: Arguments of the command beside `--out`.
        made_from: What a run that was killed must have been made from to go on, its costs added up.
        afresh: Begin anew even so.
    """
    dataset, partial = folder / "dataset", folder / "prepare.partial.json"
    before = read_json(partial)
    if before.get("made_from") != made_from or afresh:
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
    command = ["-m", "kenmesh_hf", "prepare", "--out", str(dataset), "--quiet", *options]
    run_measured(command, folder / "prepare.log", note)
    report = read_json(dataset / "report.json")
    return {
        "prepare_cpu_per_1000": 1000 * total["cpu"] / made_from["corpus"]["count"],
        "peak_gb": total["peak"] / 1e9,
        "prepare_runs": total["runs"],
        "stage_seconds": report["seconds"],
        "descriptors": report["mesh"]["descriptors"],
        "index_mb": megabytes((dataset / "processor").rglob("*")),
        "rows_mb": megabytes((dataset / "data").rglob("*")),
    }


def measure_search(dataset: Path, queries: Path, most: int, compared: int) -> dict[str, Any]:
    """Processor time of a search of neighbours, and how near it comes to an exact one.

    Args:
        dataset: Prepared.
        queries: File of articles that are searched for.
        most: Queries at most.
        compared: How many of them are also searched for exactly, which takes long; may be 0.
    """
    return in_fresh_process(_search, dataset, queries, most, compared)


def _search(dataset: Path, queries: Path, most: int, compared: int) -> dict[str, Any]:
    processor = KenMeSHProcessor.from_pretrained(dataset / "processor")
    articles = list(islice(read_articles(queries), most))
    figures = {"search_ms": 1000 * _search_seconds(processor.candidates, articles) / len(articles)}
    # A dense index has no exact search to be compared with.
    if compared and hasattr(processor.candidates.index, "exact_search"):
        figures |= compare_searches(processor, spread(articles, compared))
    return figures


def _search_seconds(candidates: KenMeSHCandidates, articles: Sequence[Article]) -> float:
    """Processor seconds of this thread for the neighbours of all articles, which come one by one."""
    asked = []
    for article in articles:
        words = hash_texts([article])
        asked.append((count_terms(*words), candidates.articles.find([article.pmid], hash_articles(*words))))
    index, k = candidates.index, candidates.options.neighbours
    # Pages of a mapped index are slow the first time that someone looks at them, whoever it is.
    for counts, own in asked:
        index.search(counts, k, own)
    started = time.thread_time()
    for counts, own in asked:
        index.search(counts, k, own)
    return time.thread_time() - started


def spread(articles: Sequence[Article], most: int) -> list[Article]:
    """At most so many of the articles, from all over: neighbours in a file are of the same journal."""
    count = min(most, len(articles))
    return [articles[i * len(articles) // count] for i in range(count)]


def compare_searches(processor: KenMeSHProcessor, articles: Sequence[Article]) -> dict[str, float]:
    """Neighbours of the same articles by both searches of the index, and the candidates they lead to."""
    candidates, figures = processor.candidates, {}
    index = candidates.index
    searches = {"candidate_recall": index.search, "candidate_recall_exact": index.exact_search}
    nearest: list[list[np.ndarray]] = []
    for name, search in searches.items():
        nearest.append([])
        # Kept on the way, since an exact search takes too long to be done twice.
        candidates.index = SimpleNamespace(search=_keeping(search, nearest[-1]))
        report = candidate_report(candidates, articles, processor.vocabulary)
        figures[name] = float(report["kept"]["recall"])
    candidates.index = index
    return {"neighbour_recall": recall_of(*nearest)} | figures


def _keeping(search: Callable[..., list], nearest: list[np.ndarray]) -> Callable[..., list]:
    """The search, which also adds the nearest articles of each query to a list."""

    def keeping(*query: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        found = search(*query)
        nearest.extend(documents[:NEAREST] for documents, _ in found)
        return found

    return keeping


def recall_of(found: Sequence[np.ndarray], nearest: Sequence[np.ndarray]) -> float:
    """Share of the nearest articles that are among as many of those found, nearest first."""
    pairs = zip(found, nearest, strict=True)
    hits = sum(np.isin(right, ours[: len(right)]).sum() for ours, right in pairs)
    return float(hits / max(1, sum(map(len, nearest))))


def measure_tag(folder: Path, taught: Path, queries: Path, most: int, bundled: str | None) -> dict[str, Any]:
    """Processor time of the tags of an article, and the memory of one process that tags and of two.

    Args:
        folder: Has `dataset/` and gets `model/`.
        taught: File of articles that the model is built with.
        queries: File of articles that are tagged.
        most: Of these at most.
        bundled: Model that tags beside; the bundled one if None.
    """
    model = folder / "model"
    in_fresh_process(build_model, folder / "dataset", taught, model)
    figures = in_fresh_process(_tag, model, queries, most, bundled)
    memory = {str(n): tagging_memory(model, queries, most, n) for n in (1, 2)}
    return figures | {"tag_memory_mb": memory}


def build_model(dataset: Path, articles: Path, folder: Path) -> None:
    """A model for measures of speed, which gives about as many tags as it should.

    It weighs the numbers of candidates as learned from a few articles; the network is left as it started.
    """
    torch.manual_seed(0)
    prepared, options = load_prepared(dataset), options_for("small")
    processor = prepared.processor
    model = build_network(processor, prepared.word_vectors, options.evidence, **options.network_settings())
    start_evidence(model, _evidence_rows(processor, list(islice(read_articles(articles), TAUGHT))))
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


def _tag(model: Path, queries: Path, most: int, bundled: str | None) -> dict[str, float]:
    """Processor time of the tags of an article, by the model and by the bundled one, which take turns."""
    torch.set_num_threads(1)
    taggers = {"tag_ms": load(model), "tag_ms_bundled": load(bundled)}
    # Of the bundled model's index some queries are a part.
    articles = [article.as_input() for article in read_strangers(queries, most)]
    parts = [articles[i : i + TAGGED_AT_ONCE] for i in range(0, len(articles), TAGGED_AT_ONCE)]
    seconds = dict.fromkeys(taggers, 0.0)
    tags = 0
    # All of them once before, so that the index is mapped.
    for number, part in enumerate([articles, *parts]):
        for name, tagger in taggers.items():
            # Of all threads: batches are prepared in one while the network works in the other.
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
        barrier.wait(LOAD_SECONDS)
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


def measure_train(folder: Path) -> dict[str, Any]:
    """Memory of the first steps of `kenmesh train` with the dataset in a folder."""
    trained, cache = folder / "trained", folder / "cache"
    shutil.rmtree(trained, ignore_errors=True)
    command = ["-m", "kenmesh_hf", "train", str(folder / "dataset"), "--out", str(trained)]
    command += ["--max-steps", str(TRAIN_STEPS)]
    cost = run_measured(command, folder / "train.log", HF_DATASETS_CACHE=str(cache))
    # A second copy of all rows, of no use to another run.
    shutil.rmtree(cache, ignore_errors=True)
    return {"train_peak_gb": cost.peak / 1e9, "train_cpu": cost.cpu}


def read_json(path: Path) -> dict[str, Any]:
    """What a file holds; nothing if it is missing or damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def megabytes(paths: Iterable[Path]) -> float:
    """Size of files together."""
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6
