# SPDX-License-Identifier: Apache-2.0
"""As pycoral.learn.imprinting.engine: reef.coral's engine, but for models with an L2Norm layer alone, as PyCoral's.

Programs rely on that error to tell models apart; reef.coral's own engine takes any classifier.
"""

from __future__ import annotations

import os
from typing import Union

from reef.coral.learn.imprinting import engine
from reef.interpreter import Interpreter


class ImprintingEngine(engine.ImprintingEngine):
    """ValueError for a model without an L2Norm layer."""

    def __init__(self, model_path: Union[str, "os.PathLike[str]"], keep_classes: bool = False):
        super().__init__(model_path, keep_classes)
        operators = [op["op_name"] for op in Interpreter(model_path=model_path)._get_ops_details()]
        if "L2_NORMALIZATION" not in operators:
            raise ValueError("Unsupported model architecture. Input model must have an L2Norm layer.")


__all__ = ["ImprintingEngine"]
