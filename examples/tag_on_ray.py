"""Tags articles as one step of a Ray Data pipeline: `python tag_on_ray.py [model] [files or addresses …]`.

Without an address of a cluster in RAY_ADDRESS it starts a Ray on this machine.
"""

import sys

import ray

import kenmesh_hf
from kenmesh_hf.spreading import tag_dataset
from kenmesh_hf.tagging import TagOptions

ARTICLES = [
    {"pmid": "1", "title": "Zinc in childhood diarrhoea", "abstract": "We gave zinc to 200 children."},
    {"pmid": "2", "title": "Amlodipine in the evening", "abstract": "Blood pressure fell."},
]


def main(model: str = str(kenmesh_hf.BUNDLED_CHECKPOINT), *files: str) -> None:
    ray.init(ignore_reinit_error=True)
    articles = list(files) or ray.data.from_items(ARTICLES)
    tagged = tag_dataset(articles, TagOptions(model, choice={"top_k": 5}), workers=2)
    # Rows are tagged as they are asked for; `tagged.write_parquet(…)` would store them.
    for row in tagged.iter_rows():
        print(row["pmid"], row["title"], [tag["name"] for tag in row["tags"]])


if __name__ == "__main__":
    main(*sys.argv[1:])
