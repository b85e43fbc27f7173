"""The tagger in scikit-learn code, its tags as a sparse matrix: `python sklearn_style.py [model]`."""

import sys
from collections.abc import Sequence
from typing import Any

from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import kenmesh_hf


class MeshClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that has learned already; `predict` gives an article × descriptor matrix of 0 and 1.

    Args:
        model: Folder or Hub name; the bundled checkpoint if not given.
        threshold: Least score of a tag; the model's own thresholds if not given.
    """

    def __init__(self, model: str | None = None, threshold: float | None = None):
        self.model = model
        self.threshold = threshold

    def fit(self, X: Any = None, y: Any = None) -> "MeshClassifier":
        """Loads the model; the articles are not looked at."""
        self.tagger_ = kenmesh_hf.load(self.model, threshold=self.threshold)
        self.classes_ = self.tagger_.processor.vocabulary.uis
        return self

    def predict(self, X: Sequence[str | dict[str, str]]) -> csr_matrix:
        """Tags of articles, `(articles, descriptors)`."""
        label_of = self.tagger_.processor.vocabulary.label_of
        places = [
            (row, label_of(tag["ui"])) for row, tags in enumerate(self.tagger_(list(X))) for tag in tags
        ]
        rows, columns = zip(*places, strict=True) if places else ((), ())
        return csr_matrix(
            ([1] * len(rows), (rows, columns)), shape=(len(X), len(self.classes_)), dtype="int8"
        )


if __name__ == "__main__":
    reports = [
        "  Insulin glargine in type 2 diabetes\nFasting glucose fell in 120 adults. ",
        "Asthma in schools",
    ]
    clean = FunctionTransformer(lambda texts: [text.strip() for text in texts])
    steps = make_pipeline(clean, MeshClassifier(*sys.argv[1:2])).fit(reports)
    for text, row in zip(reports, steps.predict(reports), strict=True):
        print(text.split("\n")[0].strip(), [steps[-1].classes_[label] for label in row.indices])
