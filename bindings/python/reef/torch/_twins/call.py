# SPDX-License-Identifier: Apache-2.0
"""What a twin sees of its operator."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

import torch
from torch import Tensor

from ..._library import UnsupportedError
from .._arithmetic import Affine
from .._constants import Constants
from .._graph import ChipGraph, OpInfo
from .._scales import Scales


class Call:
    """An operator with its values. Every value has a dimension for the batch in front of those that the graph knows; that of
    constants has one element."""

    def __init__(self, graph: ChipGraph, op: OpInfo, values: Dict[int, Tensor], scales: Scales, constants: Constants):
        self._graph, self.op, self._values, self._scales, self._constants = graph, op, values, scales, constants

    def attribute(self, name: str, otherwise: Any = 0) -> Any:
        return self.op.attributes.get(name, otherwise)

    @property
    def activation(self) -> str:
        name = self.attribute("fused_activation_function", "NONE")
        if name not in ("NONE", "RELU", "RELU6", "RELU_N1_TO_1"):
            raise self.unsupported(f"a fused {name}")
        return name

    def unsupported(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"{self._graph.place(self.op)}: there is no exact twin of {what} in PyTorch yet")

    # ---- Operands ----

    def has(self, i: int) -> bool:
        return i < len(self.op.inputs) and self.op.inputs[i] >= 0

    @property
    def input_count(self) -> int:
        return len(self.op.inputs)

    def is_constant(self, i: int) -> bool:
        return self._graph.tensors[self.op.inputs[i]].data is not None

    def shape(self, i: int) -> Tuple[int, ...]:
        """As the graph has it, for one sample."""
        return self._graph.tensors[self.op.inputs[i]].shape

    def numbers(self, i: int) -> List[int]:
        """A constant of 32-bit numbers: axes, sizes, orders."""
        data = self._graph.tensors[self.op.inputs[i]].data
        if data is None:
            raise self.unsupported(f"a computed operand {i}")
        return [int(n) for n in data.reshape(-1)]

    def affine(self, i: int) -> Affine:
        return self._affine(self.op.inputs[i])

    def value(self, i: int) -> Tensor:
        """Codes minus the zero point."""
        tensor = self.op.inputs[i]
        if tensor in self._values:
            return self._values[tensor]
        if tensor in self._constants:
            return self._constants.value(tensor, self._affine(tensor)).unsqueeze(0)
        raise self.unsupported(f"operand {i}, which is neither computed nor an 8-bit constant,")

    def weights(self, i: int) -> Tuple[Tensor, Tensor]:
        """Whole numbers, and their scales."""
        tensor = self.op.inputs[i]
        if tensor not in self._constants:
            raise self.unsupported("computed weights")
        return self._constants.weights(tensor), self._constants.weight_scales(tensor)

    def bias(self, i: int, input_scale: Tensor, weight_scales: Tensor, channels: int) -> Tensor:
        """Whole numbers in float64; zeros where there is none."""
        if not self.has(i):
            return torch.zeros(channels, dtype=torch.float64, device=input_scale.device)
        tensor = self.op.inputs[i]
        if tensor not in self._constants:
            raise self.unsupported("a bias without scales, or a computed one")
        return self._constants.bias(tensor, input_scale, weight_scales).reshape(-1)

    # ---- Results ----

    @property
    def output_count(self) -> int:
        return len(self.op.outputs)

    def output_shape(self, i: int = 0) -> Tuple[int, ...]:
        return self._graph.tensors[self.op.outputs[i]].shape

    def output_affine(self, i: int = 0) -> Affine:
        return self._affine(self.op.outputs[i])

    def set(self, value: Tensor, i: int = 0) -> None:
        self._values[self.op.outputs[i]] = value

    def function_codes(self, source: Affine, out: Affine) -> Tensor:
        """The chip's table of this operator: output codes by input code."""
        def codes() -> Tensor:
            found = self._graph.function_codes(self.op.index, source.number, source.zero, out.number, out.zero)
            return torch.from_numpy(found).to(device=source.scale.device, dtype=torch.float32)
        return self.kept("codes", codes)

    def kept(self, name: str, make: Callable[[], Tensor]) -> Tensor:
        """What `make` gives for the scales as they are."""
        return self._scales.kept((name, self.op.index), make)

    def _affine(self, tensor: int) -> Affine:
        affine = self._scales.affine(tensor)
        if affine is None:
            info = self._graph.tensors[tensor]
            raise self.unsupported(f"tensor '{info.name}' of type {info.dtype} with {len(info.scales)} scales")
        return affine
