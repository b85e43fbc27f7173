"""A prepared dataset for the Hub: its Parquet files by split, and a card that says what is in them."""

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from huggingface_hub import DatasetCardData

from ..errors import InputError
from ..showing import count, fill_card, table

SPLITS = ("train", "validation", "test")
NLM_TERMS = "https://www.nlm.nih.gov/databases/download/terms_and_conditions.html"


@contextmanager
def parquet_files(folder: Path) -> Iterator[dict[str, list[Path]]]:
    """Parquet files of each split; made in a temporary folder from what `DatasetDict.save_to_disk` wrote."""
    with tempfile.TemporaryDirectory() as temporary:
        if (folder / "dataset_dict.json").exists():
            from datasets import load_from_disk

            for split, dataset in load_from_disk(str(folder)).items():
                dataset.to_parquet(Path(temporary) / f"{split}.parquet")
            splits = _find_splits(Path(temporary))
        else:
            splits = _find_splits(folder)
        if not splits:
            raise InputError(
                f"{folder} holds no Parquet file named after a split ({', '.join(SPLITS)}); "
                "prepare the dataset as Parquet first."
            )
        yield splits


def _find_splits(folder: Path) -> dict[str, list[Path]]:
    splits: dict[str, list[Path]] = {}
    paths = [
        path
        for path in sorted(folder.rglob("*.parquet"))
        if "/." not in path.relative_to(folder.parent).as_posix()
    ]
    for split in SPLITS:
        if found := [path for path in paths if re.search(rf"(?:^|[-_]){split}(?:[-_.]|$)", path.name)]:
            splits[split] = found
    return splits


def measure_candidates(paths: list[Path]) -> dict[str, float]:
    """Candidate recall and size over the rows of a split, or just `articles` if rows have no candidates."""
    # Only here: whoever tags loads this room, too, and should not wait for Arrow.
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    articles = gold = found = size = 0
    for path in paths:
        file = pq.ParquetFile(path)
        articles += file.metadata.num_rows
        if not {"labels", "candidate_ids", "unknown_labels"} <= set(file.schema_arrow.names):
            continue
        for batch in file.iter_batches(1024, columns=["labels", "candidate_ids", "unknown_labels"]):
            gold += pc.sum(batch["unknown_labels"]).as_py() or 0
            for labels, candidates in zip(
                batch["labels"].to_pylist(), batch["candidate_ids"].to_pylist(), strict=True
            ):
                gold, size = gold + len(labels), size + len(candidates)
                found += len(set(labels).intersection(candidates))
    measured: dict[str, float] = {"articles": articles}
    if gold and articles:
        measured |= {"candidate_recall": found / gold, "candidate_size": size / articles}
    return measured


_DATASET_CARD = f"""
# <!-- title -->

Biomedical articles with their MeSH descriptors, prepared for training a KenMeSH model: word ids, label ids
and candidate labels of each article.

## Contents
<!-- results: splits -->
<!-- /results -->

## Sources and licence
<!-- results: sources -->
<!-- /results -->

The citations come from MEDLINE/PubMed and the descriptors from MeSH, courtesy of the U.S. National Library of
Medicine, whose [terms and conditions]({NLM_TERMS})
apply: NLM is the source, these data may be older than what NLM offers now, and abstracts may be under the
copyright of their publishers.

## How it was split
<!-- results: split -->
<!-- /results -->

Index, journal table and word weights behind the candidates come from training articles only, and no article
is its own neighbour.
"""


def render_dataset_card(results: Mapping[str, Any], splits: Mapping[str, int], repo_id: str) -> str:
    """The card of a prepared dataset.

    Args:
        results: `mesh_year`, `sources`, `split_rule`, and `candidates`: for each split `candidate_recall` and
            `candidate_size`. All may be missing.
        splits: Articles of each split.
        repo_id: Where the dataset will be found.
    """
    candidates = results.get("candidates", {})
    rows = [["split", "articles", "candidate recall", "candidates an article"]]
    for split, articles in splits.items():
        found = candidates.get(split, {})
        recall = f"{found['candidate_recall']:.3f}" if "candidate_recall" in found else ""
        size = count(found["candidate_size"]) if "candidate_size" in found else ""
        rows.append([split, count(articles), recall, size])
    sources = [f"- {source}" for source in results.get("sources", [])]
    if "mesh_year" in results:
        sources.append(f"- MeSH {results['mesh_year']}")
    writers: dict[str, Callable[[], str]] = {
        "splits": lambda: table(rows),
        "sources": lambda: "\n".join(sources) or "- Not recorded.",
        "split": lambda: results.get("split_rule", "Not recorded."),
    }
    template = _DATASET_CARD.replace("<!-- title -->", repo_id.split("/")[-1])
    return fill_card(template, _dataset_metadata(splits, repo_id).to_yaml(), writers)


def _dataset_metadata(splits: Mapping[str, int], repo_id: str) -> DatasetCardData:
    return DatasetCardData(
        language="en",
        license="other",
        license_name="nlm-terms-and-conditions",
        license_link=NLM_TERMS,
        pretty_name=repo_id.split("/")[-1],
        task_categories=["text-classification"],
        task_ids=["multi-label-classification"],
        size_categories=[_size_category(sum(splits.values()))],
        tags=["mesh", "medline", "pubmed", "biomedical"],
        configs=[
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": f"data/{split}-*.parquet"} for split in splits],
            }
        ],
    )


def _size_category(articles: int) -> str:
    for limit, name in (
        (1_000, "n<1K"),
        (10_000, "1K<n<10K"),
        (100_000, "10K<n<100K"),
        (1_000_000, "100K<n<1M"),
    ):
        if articles < limit:
            return name
    return "1M<n<10M" if articles < 10_000_000 else "10M<n<100M"
