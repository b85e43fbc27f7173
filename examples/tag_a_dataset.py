"""Adds a column of MeSH descriptors to a dataset: `python tag_a_dataset.py [model] [articles.jsonl]`."""

import sys

from datasets import Dataset, load_dataset

import kenmesh_hf

model, *files = sys.argv[1:] or [None]
tagger = kenmesh_hf.load(model)
if files:
    data = load_dataset("json", data_files=files, split="train")
else:
    data = Dataset.from_dict(
        {
            "title": ["Sleep and memory in older adults", "A knock-out of Tp53 in mice"],
            "abstract": ["Memory was better after nine hours of sleep.", "Mice without p53 had lymphomas."],
        }
    )


def add_mesh(batch: dict[str, list]) -> dict[str, list]:
    """Descriptors of each article of a batch."""
    columns = [name for name in ("title", "abstract", "journal", "pmid") if name in batch]
    articles = [
        dict(zip(columns, values, strict=True)) for values in zip(*map(batch.get, columns), strict=True)
    ]
    return {"descriptors": [[tag["ui"] for tag in tags] for tags in tagger(articles)]}


# Named, the result need not be hashed together with the whole model to be found in the cache again.
tagged = data.map(add_mesh, batched=True, batch_size=256, new_fingerprint=f"{data._fingerprint}-mesh")
for row in tagged:
    print(row["title"], row["descriptors"])
