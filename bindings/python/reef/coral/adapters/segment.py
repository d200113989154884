# SPDX-License-Identifier: Apache-2.0
"""As pycoral.adapters.segment."""

from __future__ import annotations

import numpy as np

from reef.coral.adapters import common
from reef.interpreter import Interpreter


def get_output(interpreter: Interpreter) -> np.ndarray:
    """The first output: a class for every pixel, or a score for every pixel and class. A copy; class numbers as uint8."""
    result = common.output_tensor(interpreter, 0)[0]
    is_class_map = np.issubdtype(result.dtype, np.integer) and result.dtype.itemsize > 1
    return result.astype(np.uint8) if is_class_map else result.copy()
