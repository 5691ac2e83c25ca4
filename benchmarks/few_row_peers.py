"""What people use today on few rows: regressions on TF-IDF or sentence vectors, model2vec, SetFit.

``few_rows.py peers`` runs these; each returns its accuracy on the test rows.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from harness import mean_encoder

Row = tuple[str, ...]
"""The text, or both of a pair, and the label."""


def tf_idf(_: Path | None, train: list[Row], test: list[Row]) -> float:
    """Return the accuracy of a regression on TF-IDF features, tuned by cross-validation."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    search = GridSearchCV(
        make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(max_iter=2000)),
        {"tfidfvectorizer__ngram_range": [(1, 1), (1, 2)], "logisticregression__C": [0.3, 1, 3, 10, 30]},
        cv=5,
    )
    search.fit([" ".join(row[:-1]) for row in train], _labels(train))
    return _accuracy(search.predict([" ".join(row[:-1]) for row in test]), test)


def vectors(model: Path, train: list[Row], test: list[Row]) -> float:
    """Return the accuracy of a regression on a sentence encoder's vectors, tuned likewise."""
    encoder = mean_encoder(model)
    return regression(lambda texts: encoder.encode(texts, normalize_embeddings=True), train, test)


def pieces(model: Path, train: list[Row], test: list[Row]) -> float:
    """Return the accuracy of a regression on the mean of a model's word-piece vectors, tuned likewise."""
    from pipeline_lib.models.students.word_vectors import model_vectors

    def encode(texts: list[str]) -> np.ndarray:
        return model_vectors(model, texts)

    return regression(encode, train, test)


def model2vec(model: Path, train: list[Row], test: list[Row]) -> float:
    """Return the accuracy of a regression on the vectors of a static model made of an encoder."""
    return regression(_static(model).encode, train, test)


@cache
def _static(model: Path) -> Any:
    from model2vec.distill import distill

    return distill(model_name=str(model))


def setfit(model: Path, train: list[Row], test: list[Row]) -> float:
    """Return the accuracy of an encoder tuned on pairs of the rows (Tunstall et al. 2022)."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments
    from sklearn.linear_model import LogisticRegression

    texts, labels = [" ".join(row[:-1]) for row in train], _labels(train)
    tuned = SetFitModel(mean_encoder(model), LogisticRegression(max_iter=2000))
    arguments = TrainingArguments(batch_size=16, num_epochs=1, num_iterations=SETFIT_PAIRS)
    data = Dataset.from_dict({"text": texts, "label": labels})
    Trainer(model=tuned, args=arguments, train_dataset=data).train()
    return _accuracy(tuned.predict([" ".join(row[:-1]) for row in test]), test)


PEERS = {"tf-idf": tf_idf, "pieces": pieces, "vectors": vectors, "model2vec": model2vec, "setfit": setfit}
SETFIT_PAIRS = 20
"""Pairs per row and kind, SetFit's own setting for few rows."""


def regression(encode: Callable[[list[str]], np.ndarray], train: list[Row], test: list[Row]) -> float:
    """Return the accuracy of a regression on vectors, tuned by cross-validation."""
    from sklearn.linear_model import LogisticRegressionCV

    features = [_features(encode, rows) for rows in (train, test)]
    regression = LogisticRegressionCV(Cs=[0.1, 0.3, 1, 3, 10, 30, 100], cv=5, max_iter=2000)
    regression.fit(features[0], _labels(train))
    return _accuracy(regression.predict(features[1]), test)


def _features(encode: Callable[[list[str]], np.ndarray], rows: list[Row]) -> np.ndarray:
    sides = [encode([row[side] for row in rows]) for side in range(len(rows[0]) - 1)]
    if len(sides) == 1:
        return sides[0]
    return np.hstack([*sides, sides[0] * sides[1], np.abs(sides[0] - sides[1])])


def _labels(rows: list[Row]) -> list[str]:
    return [row[-1] for row in rows]


def _accuracy(answers: np.ndarray, test: list[Row]) -> float:
    return float(np.mean(np.array([str(answer) for answer in answers]) == np.array(_labels(test))))
