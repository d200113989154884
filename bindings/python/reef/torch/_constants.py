# SPDX-License-Identifier: Apache-2.0
"""Constants of the graph as trainable real numbers: weights, biases, and numbers that are added or multiplied.

A layer's weights are whole numbers from -127 to 127 times a scale, one for each channel or one for all; a bias is a whole number in
units of (input scale * weight scale). Real values are kept in float32 and rounded anew in every forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor, nn

from ._arithmetic import INT32_MAX, Affine, is_float, rounded
from ._graph import ChipGraph, Model, OpInfo, TensorInfo
from ._scales import BIASED, Scales

_SUFFIX = "_quantized"  # what the quantizer puts behind names of weights and biases


@dataclass(frozen=True)
class Origin:
    """Where the real values of a constant come from."""
    name: str         # in the float model; "": from the codes
    is_trained: bool


def _dequantized(info: TensorInfo) -> np.ndarray:
    assert info.data is not None
    scales, zeros = info.scales.astype(np.float64), info.zero_points.astype(np.float64)
    if len(scales) > 1:
        sizes = [1] * len(info.shape)
        sizes[info.axis] = len(scales)
        scales, zeros = scales.reshape(sizes), zeros.reshape(sizes)
    return ((info.data.astype(np.float64) - zeros) * scales).astype(np.float32)


def _steps(info: TensorInfo) -> np.ndarray:
    sizes = [1] * max(len(info.shape), 1)
    if len(info.scales) > 1:
        sizes[info.axis] = len(info.scales)
    return info.scales.reshape(sizes)


_MOST_CUT = 0.1  # of the elements of a constant


def _fits(info: TensorInfo, real: np.ndarray, candidate: np.ndarray) -> bool:
    """The codes are those of the candidate: no element is further away than rounding takes it, but for a few larger ones that the end of the
    range has cut. Most must not be: where each channel has one element, all codes are at the end, which would fit anything larger."""
    low, high = (-127, 127) if info.dtype == np.int8 else (-2**31, 2**31 - 1)
    close = np.abs(candidate - real) <= 0.501 * _steps(info) + 1e-6 * np.abs(real)
    assert info.data is not None
    cut = ~close & (((info.data <= low) & (candidate < real)) | ((info.data >= high) & (candidate > real)))
    return bool(np.all(close | cut)) and cut.sum() <= _MOST_CUT * cut.size


class FloatSource:
    """The constants of the float model that the quantized one was made of."""

    def __init__(self, model: Optional[Model]):
        tensors = [t for t in (model.tensors if model else []) if t.data is not None and t.dtype == np.float32]
        self._by_name: Dict[str, TensorInfo] = {t.name: t for t in tensors}
        self._by_size: Dict[int, List[TensorInfo]] = {}
        for tensor in tensors:
            self._by_size.setdefault(tensor.data.size, []).append(tensor)

    def find(self, info: TensorInfo) -> Optional[Tuple[str, np.ndarray]]:
        """Name and values, in the constant's shape, of what was rounded to it."""
        real = _dequantized(info)
        name = info.name[:-len(_SUFFIX)] if info.name.endswith(_SUFFIX) else info.name
        named = [self._by_name[name]] if name in self._by_name else []
        for tensor in named + self._by_size.get(real.size, []):
            if tensor.data is not None and tensor.data.size == real.size:
                values = tensor.data.reshape(real.shape)
                if _fits(info, real, values):
                    return tensor.name, values
        return None


def _layer_roles(graph: ChipGraph) -> Dict[int, Tuple[str, OpInfo]]:
    """Constants that are weights or biases, each with the first layer that reads it."""
    roles: Dict[int, Tuple[str, OpInfo]] = {}
    for op in graph.ops:
        if op.type not in BIASED:
            continue
        _, weights, bias = BIASED[op.type]
        for role, place in (("weights", weights), ("bias", bias)):
            tensor = op.inputs[place] if place < len(op.inputs) else -1
            if tensor >= 0 and graph.tensors[tensor].data is not None:
                roles.setdefault(tensor, (role, op))
    return roles


class Constants(nn.Module):
    """Real values of all 8-bit and bias constants, by tensor, and what they are rounded to."""

    def __init__(self, graph: ChipGraph, scales: Scales, source: FloatSource, known_names: set, learn_scales: bool,
                 keep_zeros: bool):
        super().__init__()
        self._graph, self._scales = graph, scales
        self._roles = _layer_roles(graph)
        self._learn_scales, self._keep_zeros = learn_scales, keep_zeros
        self.origins: Dict[int, Origin] = {}
        self.values = nn.ParameterDict()
        self.steps = nn.ParameterDict()  # logarithms of what weights' scales are multiplied with
        self._cache: Dict[int, Tensor] = {}
        read = {t for op in graph.ops for t in op.inputs if t >= 0}
        for info in graph.tensors:
            if info.index in read and info.data is not None and len(info.scales) and info.dtype.kind in "iu":
                self._add(info, source, known_names)

    def _add(self, info: TensorInfo, source: FloatSource, known_names: set) -> None:
        found = source.find(info)
        name, values = found if found else ("", _dequantized(info))
        is_trained = bool(found) or info.name in known_names
        self.origins[info.index] = Origin(name, is_trained)
        key = str(info.index)
        self.values[key] = nn.Parameter(torch.from_numpy(values.copy()), requires_grad=is_trained)
        if self.role(info.index) == "weights":
            self.register_buffer(f"scales_{key}", torch.from_numpy(info.scales.copy()))
            if self._keep_zeros and (values == 0).any():
                self.register_buffer(f"kept_{key}", torch.from_numpy((values != 0).astype(np.float32)))
            if self._learn_scales and is_trained:
                self.steps[key] = nn.Parameter(torch.zeros(len(info.scales)))

    def role(self, tensor: int) -> str:
        """'weights', 'bias', or 'value': a number that is added, multiplied, joined ..."""
        return self._roles[tensor][0] if tensor in self._roles else "value"

    def __contains__(self, tensor: int) -> bool:
        return str(tensor) in self.values

    def begin(self) -> None:
        self._cache = {}

    def weight_scales(self, tensor: int) -> Tensor:
        base = getattr(self, f"scales_{tensor}")
        if str(tensor) not in self.steps or is_float():  # where they cancel, any will do
            return base
        return base * torch.exp(self.steps[str(tensor)])

    def _kept(self, tensor: int) -> Tensor:
        """Real values; pruned weights stay zero, whatever the optimizer does."""
        kept = getattr(self, f"kept_{tensor}", None)
        return self.values[str(tensor)] if kept is None else self.values[str(tensor)] * kept

    def _along_scales(self, tensor: int, scales: Tensor) -> Tensor:
        """Scales that broadcast over the constant."""
        info = self._graph.tensors[tensor]
        sizes = [1] * len(info.shape)
        if len(scales) > 1:
            sizes[info.axis] = len(scales)
        return scales.reshape(sizes)

    @torch.no_grad()
    def calibrate(self) -> None:
        """Scales of weights anew, from the largest weight of each, as the quantizer chooses them; those of zeros alone stay. Scales that
        training does not know (uint8 weights with a zero point) stay, too."""
        for tensor, origin in self.origins.items():
            info = self._graph.tensors[tensor]
            if self.role(tensor) != "weights" or not origin.is_trained or info.dtype != np.int8:
                continue
            base, sizes = getattr(self, f"scales_{tensor}"), self._kept(tensor).abs()
            others = [d for d in range(sizes.dim()) if len(base) == 1 or d != info.axis]
            largest = sizes.amax(others).reshape(base.shape) if others else sizes.reshape(base.shape)
            base.copy_(torch.where(largest > 0, largest / 127.0, base))
            if str(tensor) in self.steps:
                self.steps[str(tensor)].zero_()
        self._leave_room_for_biases()

    def _leave_room_for_biases(self) -> None:
        """A bias is counted in steps of input times weights; small weights must not make it more than 30 bits."""
        for op in self._graph.ops:
            if op.type not in BIASED or len(op.inputs) <= BIASED[op.type][2]:
                continue
            data, weights, bias = (op.inputs[i] for i in BIASED[op.type])
            source = self._scales.affine(data)
            if weights not in self or bias not in self or source is None:
                continue
            base = getattr(self, f"scales_{weights}")
            least = self.values[str(bias)].abs().reshape(-1) / (source.scale * 2.0**30)
            base.copy_(torch.maximum(base, least if len(base) > 1 else least.max().reshape(1)))

    def observe(self) -> None:
        """Tells scales of activations the constants that share them."""
        for tensor, origin in self.origins.items():
            if self.role(tensor) == "value":
                self._scales.observe(tensor, self.values[str(tensor)].detach())

    def weights(self, tensor: int) -> Tensor:
        """Whole numbers; the chip's zero point of weights is subtracted already."""
        if tensor not in self._cache:
            scales = self._along_scales(tensor, self.weight_scales(tensor))
            self._cache[tensor] = _whole(self._kept(tensor) / scales, *_code_range(self._graph.tensors[tensor]))
        return self._cache[tensor]

    def bias(self, tensor: int, input_scale: Tensor, weight_scales: Tensor) -> Tensor:
        """Whole numbers in float64, which holds all of 32 bits."""
        unit = input_scale.double() * weight_scales.double()
        return _whole(self.values[str(tensor)].double() / unit, -INT32_MAX, INT32_MAX)

    def value(self, tensor: int, affine: Affine) -> Tensor:
        if tensor not in self._cache:
            self._cache[tensor] = _whole(self.values[str(tensor)] / affine.scale, -affine.zero, 255 - affine.zero)
        return self._cache[tensor]


def _code_range(info: TensorInfo) -> Tuple[float, float]:
    """uint8 weights of old models have a zero point and all 256 codes."""
    if info.dtype == np.int8:
        return (-128.0 if info.data is not None and info.data.min() == -128 else -127.0), 127.0
    zero = float(info.zero_points[0])
    return -zero, 255.0 - zero


def _whole(x: Tensor, low: float, high: float) -> Tensor:
    return x if is_float() else rounded(torch.clamp(x, low, high), low, high)
