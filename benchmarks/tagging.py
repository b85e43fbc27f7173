"""Tagging a real PubMed file, XML to JSON, on two cores: rate beside BERT, stages, memory, cold start.

Rounds of ours and of a BERT take turns. The BERT has the shape of BERT-base with a dense layer and a sigmoid
for each label, its weights random, its texts padded to 512 tokens: the way WellcomeBertMesh runs. Stages are
measured in a run of their own by the processor time of one thread, so that other programs hardly touch
their shares. `encoder_share` is what reading the words takes, `network_share` adds the scoring of labels.
A cold start is a fresh process that tags one article, against fresh ones that only import. The citations of
the file are in the index of the bundled model; a word more in each title makes them strangers, as a user's.

    python benchmarks/tagging.py [--articles 3000] [--file FILE] [--model FOLDER]
"""

import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

# As the command `kenmesh` does before it imports torch.
os.environ["OMP_WAIT_POLICY"] = os.environ.get("OMP_WAIT_POLICY", "PASSIVE")

import torch
from _measure import parse_arguments, print_table
from parse_pubmed import sample_file
from transformers import BertConfig, BertModel

from kenmesh_hf import BUNDLED_CHECKPOINT
from kenmesh_hf.modeling import pipeline_kenmesh, processing_kenmesh
from kenmesh_hf.modeling.candidates_kenmesh import KenMeSHCandidates
from kenmesh_hf.modeling.modeling_kenmesh import KenMeSHForMeSHIndexing, KenMeSHModel
from kenmesh_hf.modeling.pipeline_kenmesh import MeSHIndexingPipeline
from kenmesh_hf.reading import Article, read_articles
from kenmesh_hf.tagging import WRITERS, ResumableFile, TagOptions, write_tags

STAGES = ("parse", "tokenise", "candidates", "encoder", "labels", "output", "other")
ONE_ARTICLE = ["--title", "Zinc in childhood diarrhoea", "--abstract", "We gave zinc to 200 children."]


class Stages:
    """Processor seconds of each stage; a stage inside another one is taken out of that one's time."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._running = ["other"]
        self._since = time.thread_time()

    def _switch(self) -> None:
        now = time.thread_time()
        self.seconds[self._running[-1]] += now - self._since
        self._since = now

    def run(self, stage: str, call: Callable, *args: Any, **kwargs: Any) -> Any:
        self._switch()
        self._running.append(stage)
        try:
            return call(*args, **kwargs)
        finally:
            self._switch()
            self._running.pop()

    def reading(self, articles: Iterable[Article]) -> Iterator[Article]:
        """The same articles, what it takes to read them counted."""
        iterator, nothing = iter(articles), object()
        while (article := self.run("parse", next, iterator, nothing)) is not nothing:
            yield article  # type: ignore[misc]


class LoadedOptions(TagOptions):
    """Options whose model is loaded before the time runs."""

    def load(self) -> MeSHIndexingPipeline:
        if not hasattr(self, "tagger"):
            self.tagger = super().load()
        return self.tagger


def read_strangers(file: Path, count: int | None = None) -> Iterator[Article]:
    """Articles of a file that no index knows."""
    for article in islice(read_articles(file, every_version=True), count):
        yield replace(article, pmid=None, title=f"{article.title} Unpublished")


def tag(articles: Iterable[Article], options: TagOptions) -> int:
    """As `kenmesh tag`: the tags of articles as JSON lines in a file."""
    with tempfile.TemporaryDirectory() as folder:
        return write_tags(articles, Path(folder) / "tags.jsonl", options, progress=False)


def measure_stages(file: Path, count: int, options: TagOptions) -> dict[str, float]:
    """Seconds of each stage on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    stages = Stages()
    with ExitStack() as patches:
        # Batches are otherwise prepared in a thread while the network works.
        patches.enter_context(patch.object(pipeline_kenmesh, "prepare_ahead", map))
        for owner, name, stage in (
            (processing_kenmesh, "encode_words", "tokenise"),
            (KenMeSHCandidates, "__call__", "candidates"),
            (KenMeSHModel, "encode_text", "encoder"),
            (KenMeSHForMeSHIndexing, "forward", "labels"),
            (ResumableFile, "write", "output"),
        ):
            call = _method(stages, stage, getattr(owner, name))
            patches.enter_context(patch.object(owner, name, call))
        write = WRITERS["jsonl"]
        patches.enter_context(
            patch.dict(WRITERS, jsonl=lambda tagged: iter(stages.run("output", list, write(tagged))))
        )
        tag(stages.reading(read_strangers(file, count)), options)
    stages.run("other", int)
    torch.set_num_threads(threads)
    return {stage: stages.seconds[stage] for stage in STAGES}


def _method(stages: Stages, stage: str, call: Callable) -> Callable:
    def method(*args: Any, **kwargs: Any) -> Any:
        return stages.run(stage, call, *args, **kwargs)

    return method


def build_bert(labels: int, layers: int, words: int) -> Callable[[], torch.Tensor]:
    """A function that gives texts of BERT tokens a probability for every label."""
    bert = BertModel(BertConfig(num_hidden_layers=layers), add_pooling_layer=False).eval()
    dense = torch.nn.Linear(bert.config.hidden_size, labels)
    text = torch.randint(1000, bert.config.vocab_size, (1, words))

    @torch.inference_mode()
    def run() -> torch.Tensor:
        return dense(bert(input_ids=text).last_hidden_state[:, 0]).sigmoid()

    return run


def measure_rates(
    file: Path, args: Any, options: LoadedOptions, bert: Callable[[], object]
) -> list[tuple[float, float]]:
    """Articles a second of ours and of the BERT, in rounds of both; the first round only warms up."""
    articles = read_strangers(file)
    size = max(1, args.articles // args.repeats)
    tag(islice(articles, options.window), options)
    bert()
    rates = []
    for _ in range(args.repeats):
        started = time.perf_counter()
        done = tag(islice(articles, size), options)
        tagged = time.perf_counter()
        for _ in range(args.bert_texts):
            bert()
        rates.append((done / (tagged - started), args.bert_texts / (time.perf_counter() - tagged)))
    return rates


def _tag_and_tell_memory(file: Path, args: Any, results: Any) -> None:
    torch.set_num_threads(args.threads)
    done = tag(read_strangers(file, args.articles), TagOptions(args.model))
    status = Path("/proc/self/status").read_text()
    results.put((done, int(status.split("VmHWM:")[1].split()[0]) / 1024))


def measure_memory(file: Path, args: Any) -> float:
    """Megabytes of a fresh process that tags the articles, at its highest point."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    worker = context.Process(target=_tag_and_tell_memory, args=(file, args, results))
    worker.start()
    megabytes = results.get()[1]
    worker.join()
    return megabytes


def cold_processes(model: str) -> dict[str, list[str]]:
    """Arguments of Python for each of the fresh processes that are compared."""
    return {
        "import transformers": ["-c", "import transformers"],
        "import torch, transformers": ["-c", "import torch, transformers"],
        "first tag": ["-m", "kenmesh_hf", "tag", "--model", model, "--format", "jsonl", *ONE_ARTICLE],
        "kenmesh --help": ["-m", "kenmesh_hf", "--help"],
    }


def measure_cold_starts(processes: dict[str, list[str]], repeats: int) -> dict[str, float]:
    """Median seconds of fresh processes that take turns, after one of each that fills the file cache."""
    seconds: dict[str, list[float]] = {name: [] for name in processes}
    for repeat in range(repeats + 1):
        for name, arguments in processes.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            if repeat:
                seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in seconds.items()}


def print_figures(result: dict[str, Any], starts: dict[str, float]) -> None:
    print_table(
        {
            "ours": {"articles a second": f"{result['articles_per_second']:,.1f}"},
            "BERT": {"articles a second": f"{result['bert_articles_per_second']:,.2f}"},
        }
    )
    print()
    print_table(
        {
            stage: {"ms an article": f"{result['stage_ms'][stage]:.2f}", "share": f"{share:.0%}"}
            for stage, share in result["stage_shares"].items()
        }
    )
    print()
    print_table({name: {"cold start": f"{seconds:.2f} s"} for name, seconds in starts.items()})
    print(f"\npeak memory {result['peak_memory_mb']:,} MB, {result['ratio']} times the rate of BERT\n")


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(
        __doc__.splitlines()[0],
        argv,
        threads=2,
        articles=3000,
        file="",
        model=str(BUNDLED_CHECKPOINT),
        batch_size=32,
        bert_texts=4,
        bert_layers=12,
        bert_words=512,
    )
    file = Path(args.file) if args.file else sample_file()
    starts = measure_cold_starts(cold_processes(args.model), args.repeats)
    memory = measure_memory(file, args)
    options = LoadedOptions(args.model, batch_size=args.batch_size)
    labels = len(options.load().processor.vocabulary)
    rates = measure_rates(file, args, options, build_bert(labels, args.bert_layers, args.bert_words))
    seconds = measure_stages(file, args.articles, options)
    total = sum(seconds.values())
    shares = {stage: round(value / total, 3) for stage, value in seconds.items()}
    first, plain, with_torch = (
        starts[name] for name in ("first tag", "import transformers", "import torch, transformers")
    )
    result = {
        "benchmark": "tagging",
        "articles_per_second": round(statistics.median(ours for ours, _ in rates), 1),
        "bert_articles_per_second": round(statistics.median(bert for _, bert in rates), 3),
        "ratio": round(statistics.median(ours / bert for ours, bert in rates), 1),
        "encoder_share": shares["encoder"],
        "network_share": round(shares["encoder"] + shares["labels"], 3),
        "stage_shares": shares,
        "stage_ms": {stage: round(1000 * value / args.articles, 3) for stage, value in seconds.items()},
        "peak_memory_mb": round(memory),
        "cold_start_seconds": round(first, 2),
        "cold_start_ratio": round(first / plain, 2),
        "cold_start_over_torch_ratio": round(first / with_torch, 2),
        "help_seconds": round(starts["kenmesh --help"], 2),
    }
    print_figures(result, starts)
    print(json.dumps(result | vars(args) | {"file": file.name}))


if __name__ == "__main__":
    main()
