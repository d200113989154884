# SPDX-License-Identifier: Apache-2.0
"""As pycoral.learn.imprinting.engine."""

from __future__ import annotations

import os
from typing import Union

import numpy as np

from reef.learning import IMPRINTING, Learner


class ImprintingEngine:
    """Weight imprinting: a class is the mean direction of its pictures' embeddings."""

    def __init__(self, model_path: Union[str, "os.PathLike[str]"], keep_classes: bool = False):
        self._learner = Learner(model_path, keep_classes)

    @property
    def embedding_dim(self) -> int:
        return self._learner.dimension

    @property
    def num_classes(self) -> int:
        return self._learner.num_classes

    def serialize_extractor_model(self) -> bytes:
        """The network from pictures to embeddings: for make_interpreter()."""
        return self._learner.extractor()

    def train(self, embedding: np.ndarray, class_id: int) -> None:
        """Adds a picture's embedding (classify.get_scores() of the extractor) to a class; num_classes makes a new one."""
        self._learner.add(embedding, class_id)

    def serialize_model(self) -> bytes:
        """The classifier with all that was learned, as a .tflite file."""
        return self._learner.model(IMPRINTING)
