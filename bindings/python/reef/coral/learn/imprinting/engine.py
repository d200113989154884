# SPDX-License-Identifier: Apache-2.0
"""pycoral.learn.imprinting.engine: Coral's ImprintingEngine, for any classifier or embedding extractor."""

from __future__ import annotations

import os
from typing import Union

from .... import learn


class ImprintingEngine(learn.ImprintingEngine):
    """PyCoral's: train(embedding, class_id), serialize_extractor_model(), serialize_model(), embedding_dim, num_classes."""

    def __init__(self, model_path: Union[str, "os.PathLike[str]", bytes], keep_classes: bool = False):
        try:
            super().__init__(model_path, keep_classes)
        except OSError as error:
            raise ValueError(f"Failed to open file: {model_path} ({error.strerror})") from error

    def serialize_model(self) -> bytes:
        """RuntimeError where there is no class yet."""
        if self.num_classes == 0:
            raise RuntimeError("Model is not trained.")
        return super().serialize_model()


__all__ = ["ImprintingEngine"]
