"""`kenmesh tag` over files: every format out, damage in, order kept, work shared, kills survived."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from patience import wait_until
from process_tree import descendants, title_of
from tiny import tiny_articles
from tiny_model import UNSEEN

from kenmesh_hf.commands import main
from kenmesh_hf.errors import InputError, KenMeSHError
from kenmesh_hf.reading import Article, Heading, read_articles, write_articles
from kenmesh_hf.tagging import TagOptions, files, tag_files
from kenmesh_hf.tagging import articles as tagging
from kenmesh_hf.tagging.articles import tag_articles

ROWS = [article.as_input() for article in UNSEEN]


@pytest.fixture
def articles_file(tmp_path) -> Path:
    path = tmp_path / "articles.jsonl"
    write_articles(UNSEEN, path)
    return path


@pytest.fixture
def tag(tiny_model, capsys):
    """Runs `kenmesh tag` with the tiny model: exit code, standard output, standard error."""

    def tag(*arguments) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["tag", "--model", str(tiny_model), *map(str, arguments)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return tag


def read_jsonl(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_jsonl_has_pmid_and_tags_of_each_article_in_order(tag, articles_file, tiny_tagger):
    code, out, _ = tag(articles_file)
    assert code == 0
    rows = read_jsonl(out)
    assert [list(row) for row in rows] == [["pmid", "tags"]] * len(UNSEEN)
    assert [row["pmid"] for row in rows] == [article.pmid for article in UNSEEN]
    assert [row["tags"] for row in rows] == tiny_tagger(ROWS)


def test_an_unknown_pmid_is_null(tag, tmp_path):
    write_articles([Article(title="babake"), Article(title="babake", pmid="7")], tmp_path / "a.jsonl")
    assert [row["pmid"] for row in read_jsonl(tag(tmp_path / "a.jsonl")[1])] == [None, "7"]


def test_options_reach_the_pipeline(tag, articles_file, tiny_tagger):
    code, out, _ = tag(
        articles_file, "--top-k", 4, "--threshold", 0.01, "--include", "C01", "C02", "--exclude", "D900001"
    )
    expected = tiny_tagger(ROWS, top_k=4, threshold=0.01, include=["C01", "C02"], exclude=["D900001"])
    assert [row["tags"] for row in read_jsonl(out)] == expected
    code, out, _ = tag(articles_file, "--preset", "recall", "--no-check-tags", "--evidence")
    expected = tiny_tagger(ROWS, preset="recall", check_tags=False, evidence=True)
    assert [row["tags"] for row in read_jsonl(out)] == expected


def test_more_candidates_can_be_asked_for(tag, tmp_path):
    write_articles([Article(title="Nothing that is known")], tmp_path / "a.jsonl")
    found = [
        read_jsonl(tag(tmp_path / "a.jsonl", "--threshold", 0, "--min-candidates", number)[1])[0]["tags"]
        for number in (0, 10)
    ]
    assert len(found[0]) < 10 == len(found[1])
    assert {"D006801", "D000818"} <= {tag["ui"] for tag in found[1]}


def test_csv_is_named_by_its_ending_and_has_one_header(tag, articles_file, tmp_path, tiny_tagger):
    out = tmp_path / "tags.csv"
    code, printed, said = tag(articles_file, "--out", out, "--batch-size", 1)
    assert (code, printed) == (0, "") and f"40 articles tagged → {out}" in said
    rows = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"))))
    expected = [
        (row["pmid"], tag["ui"]) for row, tags in zip(ROWS, tiny_tagger(ROWS), strict=True) for tag in tags
    ]
    assert [(row["pmid"], row["ui"]) for row in rows] == expected


@pytest.mark.parametrize("name", ["tags.ris", "tags.nbib"])
def test_tags_join_the_keywords_and_headings_that_others_can_read(tag, articles_file, tmp_path, name):
    out = tmp_path / name
    assert tag(articles_file, "--out", out)[0] == 0
    found = list(read_articles(out))
    assert [article.pmid for article in found] == [article.pmid for article in UNSEEN]
    assert {heading.name for heading in UNSEEN[0].headings} <= {heading.name for heading in found[0].headings}


def test_table_is_for_people(tag, articles_file):
    code, out, _ = tag(articles_file, "--format", "table")
    assert code == 0
    blocks = out.strip().split("\n\n")
    assert len(blocks) == len(UNSEEN)
    assert blocks[0].startswith(f"PMID {UNSEEN[0].pmid}: {UNSEEN[0].title}")
    assert UNSEEN[0].descriptors[0] in blocks[0] and "█" in blocks[0] and "↳" not in blocks[0]
    assert "↳" in tag(articles_file, "--format", "table", "--evidence")[1]


def test_one_article_by_options(tag, tiny_tagger):
    article = UNSEEN[0]
    fields = ["--title", article.title, "--abstract", article.abstract, "--journal", article.journal]
    code, out, _ = tag(*fields)
    assert code == 0 and article.descriptors[0] in out and "↳" in out
    [row] = read_jsonl(tag(*fields, "--format", "jsonl")[1])
    expected = tiny_tagger(ROWS[0] | {"pmid": None})
    # A model that was loaded lies elsewhere in memory, which may move the last digit of a sum.
    assert [tag.pop("score") for tag in row["tags"]] == pytest.approx([tag.pop("score") for tag in expected])
    assert row == {"pmid": None, "tags": expected}


def test_search_strings(tag, articles_file, tmp_path):
    one = tag("--title", UNSEEN[0].title, "--export-search", "pubmed")[1]
    assert "[MeSH Terms]" in one
    out = tmp_path / "search.txt"
    assert tag(articles_file, "--export-search", "ovid", "--out", out)[:2] == (0, "")
    assert out.read_text().startswith("(exp ")


def test_files_folders_and_standard_input(tag, tmp_path, monkeypatch):
    folder = tmp_path / "exports"
    folder.mkdir()
    write_articles(UNSEEN[10:20], folder / "a.ris")
    write_articles(UNSEEN[20:30], folder / "b.csv")
    write_articles(UNSEEN[:10], tmp_path / "z.jsonl.gz")
    rows = read_jsonl(tag(tmp_path / "z.jsonl.gz", folder)[1])
    assert [row["pmid"] for row in rows] == [article.pmid for article in UNSEEN[:30]]
    data = (folder / "b.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert [row["pmid"] for row in read_jsonl(tag("-")[1])] == [a.pmid for a in UNSEEN[20:30]]


def test_every_version_of_an_article_has_its_line(tag, tmp_path):
    write_articles([*UNSEEN[:3], UNSEEN[1]], tmp_path / "a.jsonl")
    code, out, _ = tag(tmp_path / "a.jsonl")
    assert code == 0 and len(out.splitlines()) == 4


def test_damaged_records_are_told_and_skipped(tag, tmp_path):
    path = tmp_path / "a.jsonl"
    good = [json.dumps(article.to_dict()) for article in UNSEEN[:4]]
    path.write_text("\n".join([good[0], "{broken", good[1], '{"title": 3.5}', good[2], good[3][:50]]) + "\n")
    code, out, said = tag(path)
    assert code == 3
    assert [row["pmid"] for row in read_jsonl(out)] == [article.pmid for article in UNSEEN[:3]]
    assert "3 articles read, 3 skipped" in said and "line 2" in said
    code, out, said = tag(path, "--strict", "--out", tmp_path / "tags.jsonl")
    assert code == 1 and "line 2" in said and not (tmp_path / "tags.jsonl").exists()


def test_several_processes_give_the_same(tiny_model, articles_file, tmp_path):
    outputs = []
    for number in (1, 2):
        out = tmp_path / f"{number}.jsonl"
        options = TagOptions(str(tiny_model), {"top_k": 5}, batch_size=1, num_proc=number)
        assert tag_files([articles_file], out, options, progress=False)[0] == len(UNSEEN)
        outputs.append(read_jsonl(out.read_text()))
    one, two = outputs
    assert [row["pmid"] for row in two] == [row["pmid"] for row in one]
    for ours, theirs in zip(one, two, strict=True):
        scores = [{tag["ui"]: tag["score"] for tag in row["tags"]} for row in (ours, theirs)]
        assert scores[1] == pytest.approx(scores[0], abs=1e-6)


def test_a_process_that_cannot_start_says_why_with_its_first_work(tmp_path, monkeypatch):
    monkeypatch.setattr(tagging, "_worker", None)
    options = TagOptions(str(tmp_path / "nowhere"))
    tagging._start_worker(options)
    with pytest.raises(InputError, match="neither a folder nor a name"):
        tagging._work(UNSEEN[:1], options)


def test_an_ended_process_says_what_to_do(tiny_model, monkeypatch):
    class Broken:
        def __init__(self, *arguments, **options):
            pass

        def submit(self, *arguments):
            raise tagging.BrokenProcessPool("gone")

        def shutdown(self, **options):
            pass

    monkeypatch.setattr(tagging, "ProcessPoolExecutor", Broken)
    with pytest.raises(KenMeSHError, match="--num-proc"):
        list(tag_articles(UNSEEN[:1], TagOptions(str(tiny_model), num_proc=2)))


def test_processes_end_with_a_job_that_is_killed(tiny_model, tmp_path):
    write_articles(tiny_articles(2000, seed=3, first_pmid=7001), tmp_path / "many.jsonl")
    program = [sys.executable, "-m", "kenmesh_hf", "tag", tmp_path / "many.jsonl", "--model", tiny_model]
    options = ["--out", tmp_path / "tags.jsonl", "--num-proc", "2", "--batch-size", "1", "--quiet"]
    job = subprocess.Popen([*program, *options], env=os.environ | {"OMP_NUM_THREADS": "1"})
    wait_until((tmp_path / "tags.jsonl").exists, "the first tags")
    started = descendants(job.pid)
    job.send_signal(signal.SIGTERM)
    assert len(started) >= 2 and job.wait() == -signal.SIGTERM
    wait_until(lambda: not any(title_of(pid) for pid in started), "the end of its processes")


def test_a_killed_job_goes_on_without_loss_or_repeats(tag, tiny_model, tmp_path):
    write_articles(tiny_articles(400, seed=3, first_pmid=7001), tmp_path / "many.jsonl")
    job = [tmp_path / "many.jsonl", "--batch-size", "1", "--quiet", "--out"]
    running = {}
    for name in ("tags.jsonl", "tags.csv"):
        # Nicer than the test, which must be there to kill them before they are done.
        program = ["nice", "-n", "19", sys.executable, "-m", "kenmesh_hf"]
        command = [*program, "tag", *job, tmp_path / name, "--model", tiny_model]
        running[name] = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})
    notes = {name: tmp_path / f"{name}.progress" for name in running}
    alive = set(running)
    while alive:
        for name in list(alive):
            if notes[name].exists() and json.loads(notes[name].read_text())["articles"] >= 8:
                running[name].send_signal(signal.SIGKILL)
                alive.remove(name)
        assert all(running[name].poll() is None for name in alive)
        time.sleep(0.002)
    for name, process in running.items():
        assert process.wait() == -signal.SIGKILL
        assert 8 <= json.loads(notes[name].read_text())["articles"] < 400
        with open(tmp_path / name, "ab") as file:
            file.write(b'{"pmid": "half a li')
        assert tag(*job, tmp_path / name, "--resume")[0] == 0
        assert not notes[name].exists()
        assert tag(*job, tmp_path / f"whole-{name}")[0] == 0
        assert (tmp_path / name).read_bytes() == (tmp_path / f"whole-{name}").read_bytes()


def test_tagging_loads_neither_datasets_nor_arrow():
    code = "import sys, kenmesh_hf.tagging; print({'datasets', 'pyarrow'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_only_the_same_job_is_resumed(tag, articles_file, tmp_path, monkeypatch):
    out = tmp_path / "tags.jsonl"

    def stopped(*arguments, **options):
        tagged = original(*arguments, **options)
        yield from (next(tagged) for _ in range(16))
        raise KeyboardInterrupt

    original = files.tag_articles
    with monkeypatch.context() as patch:
        patch.setattr(files, "tag_articles", stopped)
        code, _, said = tag(articles_file, "--out", out, "--batch-size", 1)
    assert code == 130 and "--resume" in said
    assert len(out.read_text().splitlines()) == 16
    code, _, said = tag(articles_file, "--out", out, "--resume", "--top-k", 3)
    assert code == 1 and "another choice" in said and "'top_k': 3" in said
    assert tag(articles_file, "--out", out, "--resume")[0] == 0
    assert [row["pmid"] for row in read_jsonl(out.read_text())] == [article.pmid for article in UNSEEN]
    code, _, said = tag(articles_file, "--out", out, "--resume")
    assert code == 1 and "nothing to resume" in said


def test_a_model_that_cannot_be_loaded_leaves_the_old_output_alone(articles_file, tmp_path, capsys):
    out = tmp_path / "tags.jsonl"
    out.write_text("precious\n")
    assert main(["tag", str(articles_file), "--model", str(tmp_path), "--out", str(out)]) == 1
    assert "no config.json" in capsys.readouterr().err
    assert out.read_text() == "precious\n"


def test_nothing_to_read_gives_an_empty_output(tag, tmp_path):
    (tmp_path / "none.jsonl").write_text("")
    code, _, said = tag(tmp_path / "none.jsonl", "--out", tmp_path / "tags.csv")
    assert code == 3 and "empty file" in said
    assert (tmp_path / "tags.csv").read_text().startswith("pmid,")


def test_the_bar_tells_how_many_articles_there_are(tag, articles_file, tmp_path):
    assert "40/40" in tag(articles_file, "--out", tmp_path / "tags.jsonl")[2]
    assert "40" not in tag(articles_file, "--out", tmp_path / "tags.jsonl", "--quiet")[2]


def test_a_journal_goes_by_every_name_that_is_known():
    article = Article("a", "b", journal="Sopeti Letters", journal_abbreviation="Sopeti Lett", nlm_id="77")
    assert article.as_input()["journal"] == ["77", "Sopeti Letters", "Sopeti Lett"]
    assert Article("a", headings=(Heading("D1"),)).as_input()["journal"] == []


def test_options_that_cannot_be_are_named():
    with pytest.raises(InputError, match="batch_size is 0"):
        TagOptions(batch_size=0)
    with pytest.raises(InputError, match="num_proc is -2"):
        TagOptions(num_proc=-2)


def test_numbered_files_of_a_folder_are_tagged_in_the_order_of_their_names(tag, tmp_path):
    names = ("a.jsonl", "pubmed26n0001.jsonl", "pubmed26n0002.jsonl")
    for position, name in reversed(list(enumerate(names))):
        write_articles(UNSEEN[2 * position : 2 * position + 2], tmp_path / name)
    code, out, _ = tag(tmp_path)
    assert code == 0
    assert [row["pmid"] for row in read_jsonl(out)] == [article.pmid for article in UNSEEN[:6]]
