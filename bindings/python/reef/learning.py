# SPDX-License-Identifier: Apache-2.0
"""New classes from a handful of pictures: the last layer of a network, trained on its embeddings (docs/learn.md)."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref
from typing import Tuple, Union

import numpy as np

from . import _library
from ._library import check, lib
from .interpreter import _Model

Path = Union[str, "os.PathLike[str]"]
IMPRINTING, SOFTMAX_REGRESSION = 0, 1


class Learner:
    """Collects embeddings with their classes, and trains a last layer on them.

        learner = Learner("classifier.tflite")
        extractor = reef.Interpreter(model_content=learner.extractor())    # or compile it first
        ... learner.add(embedding, class_id) ...
        open("learned.tflite", "wb").write(learner.model())

    Args:
      model: a classifier, whose last layers are taken off, or a feature extractor; a file or its bytes.
        Or the number of elements of an embedding, for weights() alone.
      keep_classes: classes of the model stay, and new ones come behind them.
    """

    def __init__(self, model: Union[Path, bytes, int], keep_classes: bool = False):
        value = ctypes.c_void_p()
        if isinstance(model, int):
            check(lib.reef_learner_create_bare(model, byref(value)))
        else:
            is_content = isinstance(model, (bytes, bytearray))
            loaded = _Model(None if is_content else os.fspath(model), bytes(model) if is_content else None)
            check(lib.reef_learner_create(loaded.handle.value, int(keep_classes), byref(value)))
        self._handle, self._value = _library.Handle(value, lib.reef_learner_free), value

    @property
    def dimension(self) -> int:
        """Elements of an embedding."""
        return lib.reef_learner_dimension(self._value)

    @property
    def num_classes(self) -> int:
        """Classes so far."""
        return lib.reef_learner_class_count(self._value)

    def extractor(self) -> bytes:
        """The network from pictures to embeddings, as a .tflite file."""
        return self._file(lib.reef_learner_extractor)

    def add(self, embedding: np.ndarray, class_id: int) -> None:
        """One picture's embedding, as real numbers. A class, or num_classes for a new one."""
        row = np.ascontiguousarray(embedding, dtype=np.float32).ravel()
        check(lib.reef_learner_add(self._value, row.ctypes.data, row.size, class_id))

    def clear(self) -> None:
        """Forgets what was added."""
        lib.reef_learner_clear(self._value)

    def model(self, method: int = IMPRINTING) -> bytes:
        """Extractor and trained last layer together, as a .tflite file."""
        return self._file(lib.reef_learner_model, method)

    def weights(self) -> Tuple[np.ndarray, np.ndarray]:
        """Of softmax regression: [classes, dimension] and [classes]."""
        weights = np.zeros((self.num_classes, self.dimension), np.float32)
        biases = np.zeros(self.num_classes, np.float32)
        check(lib.reef_learner_weights(self._value, weights.ctypes.data, biases.ctypes.data))
        return weights, biases

    def _file(self, function, *arguments) -> bytes:
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        check(function(self._value, *arguments, byref(data), byref(size)))
        try:
            return ctypes.string_at(data, size.value)
        finally:
            lib.reef_string_free(data)
