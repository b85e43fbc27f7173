"""Tagging within Ray Data, for those who have a cluster and a pipeline of their own."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray.data

from ..errors import InputError
from ..modeling.pipeline_kenmesh import FIELDS, batches
from ..options import RayOptions
from ..reading import read_articles
from ..tagging import TagOptions
from .cluster import count_workers
from .parcel import Parcel
from .places import fetched, find_inputs
from .tag_tables import tag_column

# Articles of a block that is read from a file.
BLOCK = 1024


class RowTagger:
    """Adds the column `tags` to tables of articles; an actor of Ray Data."""

    def __init__(self, parcel: Parcel):
        self.options, self.tagger = parcel.options, parcel.load()

    def __call__(self, table: pa.Table) -> pa.Table:
        known = [name for name in FIELDS if name in table.column_names]
        if not known:
            raise InputError(f"The dataset has none of the columns {', '.join(FIELDS)}; rename yours.")
        if "tags" in table.column_names:
            raise InputError("The dataset has a column tags already; rename or drop it.")
        rows = table.select(known).to_pylist()
        tags = self.tagger(rows, batch_size=self.options.batch_size, **self.options.choice)
        return table.append_column("tags", tag_column(tags))


def tag_dataset(
    data: "ray.data.Dataset | str | Path | Sequence[str | Path]",
    options: TagOptions | None = None,
    *,
    workers: int | None = None,
    gpus_per_worker: float | None = None,
) -> ray.data.Dataset:
    """A dataset of articles with a further column `tags`, worked out as Ray Data streams it.

    Each tag has `ui`, `name`, `score` and `tree_numbers`; `evidence`, if asked for, as JSON text. A node
    without the model's folder gets the model through the object store.

    Args:
        data: A dataset with any of the columns title, abstract, journal and pmid, or files and folders of
            articles in any format, also at s3://, gs://, hf://. Their damaged records are left out; for a
            report of these use `tag_files_on_ray`.
        options: Model and wanted tags.
        workers: Actors with a core each; by default as many as the cluster has cores.
        gpus_per_worker: GPUs of each.
    """
    options = options or TagOptions()
    ray_options = RayOptions(workers=workers, gpus_per_worker=gpus_per_worker)
    ray_options.check()
    parcel = Parcel.of(options)
    if not isinstance(data, ray.data.Dataset):
        data = read_dataset([data] if isinstance(data, str | Path) else data)
    elif not ray.is_initialized():
        raise InputError("The dataset's Ray has been stopped; make the dataset again.")
    return data.map_batches(
        RowTagger,
        fn_constructor_args=(parcel.send(),),
        batch_size=options.window,
        batch_format="pyarrow",
        num_cpus=1,
        num_gpus=gpus_per_worker or 0,
        compute=ray.data.ActorPoolStrategy(size=count_workers(ray_options)),
    )


def read_dataset(paths: Sequence[str | Path]) -> ray.data.Dataset:
    """Articles of files as a dataset; each file is read by one task, which gives it out block by block."""
    files = [{"file": file.path} for file in find_inputs(paths)]
    if not files:
        raise InputError(f"There is no file in {', '.join(map(str, paths))}. Check the path.")
    listed = ray.data.from_items(files, override_num_blocks=len(files))
    return listed.map_batches(_read, batch_size=1, batch_format="pyarrow", num_cpus=1)


def _read(table: pa.Table) -> Iterator[pa.Table]:
    for file in table["file"].to_pylist():
        with fetched(file) as local:
            for window in batches(read_articles(local, every_version=True), BLOCK):
                rows: list[dict[str, Any]] = [article.as_input() | {"file": file} for article in window]
                yield pa.Table.from_pylist(rows, schema=ARTICLES)


ARTICLES = pa.schema(
    [
        ("file", pa.string()),
        ("pmid", pa.string()),
        ("title", pa.string()),
        ("abstract", pa.string()),
        ("journal", pa.list_(pa.string())),
    ]
)
