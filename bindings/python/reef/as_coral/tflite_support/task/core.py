# SPDX-License-Identifier: Apache-2.0
"""As tflite_support.task.core."""

from __future__ import annotations

import dataclasses
from typing import Optional


@dataclasses.dataclass
class BaseOptions:
    """file_name or file_content: the model. use_coral: the model is compiled; it runs on an Edge TPU in any case."""
    file_name: Optional[str] = None
    file_content: Optional[bytes] = None
    num_threads: Optional[int] = -1
    use_coral: Optional[bool] = None
