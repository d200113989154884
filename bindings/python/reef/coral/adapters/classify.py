# SPDX-License-Identifier: Apache-2.0
"""As pycoral.adapters.classify: the classes that a model scores highest."""

from __future__ import annotations

from typing import List, NamedTuple

import numpy as np

from reef.interpreter import Interpreter


class Class(NamedTuple):
    """A class and its score."""
    id: int
    score: float


def num_classes(interpreter: Interpreter) -> int:
    return int(np.prod(interpreter.get_output_details()[0]["shape"]))


def get_scores(interpreter: Interpreter) -> np.ndarray:
    """The first output as real numbers."""
    details = interpreter.get_output_details()[0]
    values = interpreter.get_tensor(details["index"]).flatten()
    if not np.issubdtype(details["dtype"], np.integer):
        return values
    scale, zero_point = details["quantization"]
    return scale * (values.astype(np.int64) - zero_point)


def get_classes_from_scores(scores: np.ndarray, top_k: float = float("inf"),
                            score_threshold: float = -float("inf")) -> List[Class]:
    """At most top_k classes of score_threshold and more, best first; equal scores in the order of their numbers."""
    scores = np.asarray(scores)
    best = np.argsort(-scores, kind="stable")[:int(min(top_k, len(scores)))]
    return [Class(int(i), float(scores[i])) for i in best if scores[i] >= score_threshold]


def get_classes(interpreter: Interpreter, top_k: float = float("inf"),
                score_threshold: float = -float("inf")) -> List[Class]:
    return get_classes_from_scores(get_scores(interpreter), top_k, score_threshold)
