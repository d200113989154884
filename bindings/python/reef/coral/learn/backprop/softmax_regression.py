# SPDX-License-Identifier: Apache-2.0
"""As pycoral.learn.backprop.softmax_regression. The optimizer is Reef's (L-BFGS with a part of the data held back), so that
iterations, learning rate and batch size are taken without effect."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Union

import numpy as np

from reef.learning import SOFTMAX_REGRESSION, Learner


class SoftmaxRegression:
    """A linear last layer trained on embeddings."""

    def __init__(self, feature_dim: int, num_classes: int, weight_scale: float = 0.01, reg: float = 0.0):
        self.feature_dim, self.num_classes = feature_dim, num_classes
        self._rows: Optional[np.ndarray] = None
        self._labels: Optional[np.ndarray] = None
        self._weights, self._biases = np.zeros((num_classes, feature_dim), np.float32), np.zeros(num_classes, np.float32)

    def train_with_sgd(self, data: Dict[str, np.ndarray], num_iter: int = 0, learning_rate: float = 0.0,
                       batch_size: int = 100, print_every: int = 100, model: Any = None) -> None:
        """data: 'data_train' [n, feature_dim] and 'labels_train' [n]; 'data_val' and 'labels_val' are for printing only."""
        rows = np.asarray(data["data_train"], np.float32)
        labels = np.asarray(data["labels_train"]).astype(np.int64)
        if rows.ndim != 2 or rows.shape[1] != self.feature_dim:
            raise ValueError(f"embeddings of {self.feature_dim} elements are expected, not {rows.shape}")
        if sorted(set(labels.tolist())) != list(range(self.num_classes)):
            raise ValueError(f"every class from 0 to {self.num_classes - 1} needs an example")
        self._rows, self._labels = rows, labels
        learner = Learner(self.feature_dim)
        self._fill(learner)
        self._weights, self._biases = learner.weights()
        if print_every > 0 and "data_val" in data:
            print(f"train accuracy {self.get_accuracy(rows, labels):.4f}, validation accuracy "
                  f"{self.get_accuracy(data['data_val'], data['labels_val']):.4f}")

    def get_scores(self, mat_x: np.ndarray) -> np.ndarray:
        return np.asarray(mat_x, np.float32) @ self._weights.T + self._biases

    def get_accuracy(self, mat_x: np.ndarray, labels: np.ndarray) -> float:
        return float(np.mean(self.get_scores(mat_x).argmax(1) == np.asarray(labels)))

    def serialize_model(self, in_model_path: Union[str, "os.PathLike[str]"]) -> bytes:
        """The extractor of this file with the trained layer behind it, as a .tflite file."""
        if self._rows is None:
            raise ValueError("train first")
        learner = Learner(in_model_path)
        self._fill(learner)
        return learner.model(SOFTMAX_REGRESSION)

    def _fill(self, learner: Learner) -> None:
        for i in np.argsort(self._labels, kind="stable"):
            learner.add(self._rows[i], int(self._labels[i]))
