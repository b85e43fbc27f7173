"""PECOS XR-Linear with its defaults, for an interpreter of its own: PECOS 1.2.8 does not work with NumPy 2.

Reads `train_inputs.npz`, `train_labels.npz`, `validation.npz` and `test.npz` in a folder, all sparse
matrices. Writes the best labels with their scores to `ranked_validation.npz` and `ranked_test.npz`, and the
processor time of learning to `seconds.json`. It imports NumPy, SciPy and PECOS only.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
from scipy.sparse import csr_matrix, load_npz, save_npz

BEAM = 20


def main(folder: Path, most: int) -> None:
    """Learns and ranks; every label must have an article."""
    inputs = load_npz(folder / "train_inputs.npz").astype(np.float32)
    labels = load_npz(folder / "train_labels.npz").astype(np.float32)
    started = time.process_time()
    features = LabelEmbeddingFactory.create(labels, inputs, method="pifa", threads=1)
    model = XLinearModel.train(inputs, labels, C=Indexer.gen(features, threads=1), threads=1)
    (folder / "seconds.json").write_text(json.dumps(time.process_time() - started), encoding="utf-8")
    for split in ("validation", "test"):
        held_out = load_npz(folder / f"{split}.npz").astype(np.float32)
        ranked = model.predict(held_out, only_topk=min(most, labels.shape[1]), beam_size=BEAM, threads=1)
        save_npz(folder / f"ranked_{split}.npz", csr_matrix(ranked))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
