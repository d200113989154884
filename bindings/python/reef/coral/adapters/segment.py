# SPDX-License-Identifier: Apache-2.0
"""As pycoral.adapters.segment."""

from __future__ import annotations

import numpy as np

from reef.coral.adapters import common
from reef.interpreter import Interpreter


def get_output(interpreter: Interpreter) -> np.ndarray:
    """The first output: a class for every pixel, or a score for every pixel and class. A copy."""
    return common.output_tensor(interpreter, 0)[0].copy()
