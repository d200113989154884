# SPDX-License-Identifier: Apache-2.0
"""pycoral.learn.backprop.softmax_regression: the last layer by stochastic gradient descent, with PyCoral's interface.

Steps are Coral's: each takes `batch_size` rows drawn with replacement, and moves weights and biases against the gradient
of cross entropy plus reg/2 times the squared weights. (reef.learn.train_softmax finds the same minimum faster.)
"""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Union

import numpy as np

from ....learn import append_softmax


class SoftmaxRegression:
    """Softmax regression (logits = data * weights + biases)."""

    def __init__(self, feature_dim: Optional[int] = None, num_classes: Optional[int] = None, weight_scale: float = 0.01,
                 reg: float = 0.0, seed: Optional[int] = None):
        self._random = np.random.default_rng(seed)
        self.params = {
            "mat_w": (weight_scale * self._random.standard_normal((feature_dim, num_classes))).astype(np.float32),
            "vec_b": np.zeros(num_classes, np.float32),
        }
        self._reg = reg
        self._num_classes = num_classes
        self._seen: Optional[np.ndarray] = None  # rows it was trained with

    def _logits(self, mat_x: Any) -> np.ndarray:
        return np.asarray(mat_x, np.float32) @ self.params["mat_w"] + self.params["vec_b"]

    def run_inference(self, mat_x: Any) -> np.ndarray:
        """The class of each row."""
        return self._logits(mat_x).argmax(axis=1)

    def get_accuracy(self, mat_x: Any, labels: Any) -> float:
        """Share of rows whose class is the label."""
        return float((self.run_inference(mat_x) == np.asarray(labels)).mean())

    def train_with_sgd(self, data: Dict[str, Any], num_iter: int, learning_rate: float, batch_size: int = 100,
                       print_every: int = 100) -> None:
        """Trains with `data_train` and `labels_train`; `data_val` and `labels_val`, if there, are reported on."""
        rows, labels = np.asarray(data["data_train"], np.float32), np.asarray(data["labels_train"])
        self._seen = rows
        for i in range(num_iter):
            chosen = self._random.integers(0, len(rows), batch_size)
            x, truth = rows[chosen], np.eye(self._num_classes, dtype=np.float32)[labels[chosen]]
            logits = self._logits(x)
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            if print_every > 0 and i % print_every == 0:
                self._report(i, shares, truth, data)
            pull = (shares - truth) / batch_size
            self.params["mat_w"] -= learning_rate * (x.T @ pull + self._reg * self.params["mat_w"])
            self.params["vec_b"] -= learning_rate * pull.sum(axis=0)

    def _report(self, step: int, shares: np.ndarray, truth: np.ndarray, data: Dict[str, Any]) -> None:
        loss = -np.log((shares * truth).sum(axis=1) + 1e-12).mean() + self._reg / 2 * (self.params["mat_w"] ** 2).sum()
        text = f"step {step}: loss {loss:.4f}, train {self.get_accuracy(data['data_train'], data['labels_train']):.3f}"
        if "data_val" in data:
            text += f", validation {self.get_accuracy(data['data_val'], data['labels_val']):.3f}"
        print(text)

    def serialize_model(self, in_model_path: Union[str, "os.PathLike[str]"]) -> bytes:
        """The extractor at `in_model_path`, compiled or not, with this layer and SOFTMAX behind it."""
        rows = self._seen
        if rows is None:  # not trained: nothing is known of embeddings, so their range is taken for 0 to 1
            rows = np.ones((1, len(self.params["mat_w"])), np.float32)
        return append_softmax(in_model_path, self.params["mat_w"].T, self.params["vec_b"], rows)
