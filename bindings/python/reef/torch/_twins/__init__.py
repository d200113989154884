# SPDX-License-Identifier: Apache-2.0
"""One function for each operator of the chip: its arithmetic on PyTorch tensors (src/execute/reference is the definition)."""

from __future__ import annotations

from typing import Callable, Dict

from . import elementwise, layers, movement, reductions, tables
from .call import Call

Twin = Callable[[Call], None]

TWINS: Dict[str, Twin] = {**layers.TWINS, **elementwise.TWINS, **tables.TWINS, **movement.TWINS, **reductions.TWINS}

# Codes are copied: what runs on the CPU gives the same ones.
MOVEMENT = frozenset(movement.TWINS) - {"RESIZE_BILINEAR", "CONCATENATION"}

__all__ = ["Call", "MOVEMENT", "TWINS", "Twin"]
