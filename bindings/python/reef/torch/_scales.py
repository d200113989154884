# SPDX-License-Identifier: Apache-2.0
"""Scales of activations: which tensors share one, and how it follows training.

Tensors that an operator copies from one to another (RESHAPE, CONCATENATION, MAX_POOL_2D ...) have one scale for all of them
in the quantized model, and keep it: they form a group. A group's scale is

  "learned"  its value times exp(a parameter that starts at 0), trained with everything else; the zero point stays;
  "moving"   taken from a moving average of the smallest and largest value before the range cuts them;
  "fixed"    as calibrated.

Scales that an operator fixes (LOGISTIC, SOFTMAX, TANH, L2_NORMALIZATION), the model's inputs, and scales inside of what a rewrite
made (the ramps that stand for a HARD_SWISH saturate at their tensors' limits) are always as calibrated.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from .._library import Error
from ._arithmetic import Affine, with_gradient_factor
from ._graph import ChipGraph, OpInfo

Ranges = Dict[int, Tuple[float, float]]  # smallest and largest value by row
_LEAST_ROOM, _MOST_ROOM = 0.1, 10.0  # of a range, relative to what was seen in it

MODES = ("learned", "moving", "fixed")

# Operators that hand codes on: all their 8-bit tensors share a scale wherever they do in the quantized model.
SAME_SCALE = frozenset("""AVERAGE_POOL_2D CONCATENATION DEPTH_TO_SPACE EXPAND_DIMS MAXIMUM MAX_POOL_2D MINIMUM PACK PAD REDUCE_MAX
REDUCE_MIN RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SLICE SPACE_TO_DEPTH SPLIT SPLIT_V SQUEEZE STRIDED_SLICE TILE TRANSPOSE
UNPACK""".split())
# These can bring an operand to the output's scale; the others cannot.
_MAY_DIFFER = frozenset(("AVERAGE_POOL_2D", "CONCATENATION"))
_FIXED_OUTPUT = frozenset(("LOGISTIC", "SOFTMAX", "TANH", "L2_NORMALIZATION"))
# Where the bias and the activations are among the inputs of layers.
BIASED = {"CONV_2D": (0, 1, 2), "DEPTHWISE_CONV_2D": (0, 1, 2), "FULLY_CONNECTED": (0, 1, 2), "TRANSPOSE_CONV": (2, 1, 3)}


class _Sets:
    """Union-find over tensor numbers."""

    def __init__(self, count: int):
        self._parent = list(range(count))

    def find(self, i: int) -> int:
        while self._parent[i] != i:
            self._parent[i] = self._parent[self._parent[i]]
            i = self._parent[i]
        return i

    def join(self, a: int, b: int) -> None:
        self._parent[self.find(b)] = self.find(a)


def _quantization(graph: ChipGraph, tensor: int) -> tuple:
    info = graph.tensors[tensor]
    return info.scales.tobytes(), info.zero_points.tobytes(), info.dtype.str


def _tie(graph: ChipGraph, op: OpInfo, sets: _Sets) -> None:
    quantized = [t for t in (*op.inputs, *op.outputs) if t >= 0 and graph.tensors[t].is_8_bit]
    for tensor in quantized:
        if _quantization(graph, tensor) == _quantization(graph, op.outputs[0]):
            sets.join(op.outputs[0], tensor)
        elif op.type not in _MAY_DIFFER:
            raise Error(f"{graph.place(op)} has operands of different scales: there is no exact twin of it in PyTorch")


def tensor_groups(graph: ChipGraph) -> Dict[int, int]:
    """The group, named by one of its tensors, of every 8-bit tensor with one scale."""
    sets = _Sets(len(graph.tensors))
    bias_input: Dict[int, int] = {}
    for op in graph.ops:
        if op.type in SAME_SCALE:
            _tie(graph, op, sets)
        if op.type in BIASED and len(op.inputs) > BIASED[op.type][2]:
            data, _, bias = (op.inputs[i] for i in BIASED[op.type])
            # Layers that share their bias, which is in units of the input's scale, share that, too.
            if bias >= 0:
                sets.join(bias_input.setdefault(bias, data), data)
    return {t.index: sets.find(t.index) for t in graph.tensors if t.is_8_bit and len(t.scales) == 1}


class Scales(nn.Module):
    """The scale and zero point of every activation, and of constants that share a group with one."""

    def __init__(self, graph: ChipGraph, known_names: Set[str], mode: str, momentum: float = 0.99):
        super().__init__()
        if mode not in MODES:
            raise Error(f"there is no way '{mode}' to follow ranges; there are {', '.join(MODES)}")
        self.mode, self.momentum = mode, momentum
        self.group_of = tensor_groups(graph)
        names = sorted(set(self.group_of.values()))
        self._row = {group: row for row, group in enumerate(names)}
        infos = [graph.tensors[group] for group in names]
        self.register_buffer("base", torch.tensor(np.array([i.scales[0] for i in infos], dtype=np.float32)))
        self.register_buffer("zeros", torch.tensor([int(i.zero_points[0]) + i.offset for i in infos], dtype=torch.int64))
        self.register_buffer("lows", torch.full((len(names),), math.nan))
        self.register_buffer("highs", torch.full((len(names),), math.nan))
        self.log_steps = nn.Parameter(torch.zeros(len(names)), requires_grad=mode == "learned")
        fixed = self._fixed(graph, known_names)
        self._is_prescribed = [group in fixed for group in names]
        self._is_fixed = [mode == "fixed" or is_prescribed for is_prescribed in self._is_prescribed]
        elements = [0] * len(names)
        for tensor, group in self.group_of.items():
            elements[self._row[group]] = max(elements[self._row[group]], math.prod(graph.tensors[tensor].shape))
        # LSQ's factor for gradients of scales; nothing reaches those that are fixed.
        factors = [0.0 if is_fixed else 1.0 / math.sqrt(255.0 * max(size, 1)) for is_fixed, size in zip(self._is_fixed, elements)]
        self.register_buffer("_factors", torch.tensor(factors), persistent=False)
        self.register_buffer("_learns", (self._factors > 0).float(), persistent=False)
        self._now: Dict[int, Affine] = {}
        self._is_held = False
        self._held: Optional[Tensor] = None  # scales that stay as they are although they are trained
        self._made: Dict[Tuple[Any, ...], Tensor] = {}  # kept()

    def _fixed(self, graph: ChipGraph, known_names: Set[str]) -> Set[int]:
        """Groups that keep their calibrated scale."""
        fixed = {self.group_of[t] for t in graph.inputs if t in self.group_of}
        fixed |= {self.group_of[t] for op in graph.ops if op.type in _FIXED_OUTPUT for t in op.outputs}
        produced = {t for op in graph.ops for t in op.outputs}
        known = {group for tensor, group in self.group_of.items()
                 if tensor in produced and graph.tensors[tensor].name in known_names}
        return fixed | (set(self.group_of.values()) - known)

    def begin(self) -> None:
        """The scales of one forward pass."""
        if self._is_held and next(iter(self._now.values())).scale.device != self.base.device:
            self.hold(is_learning=self._held is not None)  # the module has moved
        if self._held is not None:
            self._connect()
        if not self._is_held:
            self._set_now([self.mode == "moving" and self.training and not is_fixed for is_fixed in self._is_fixed])

    def _exponents(self) -> Tensor:
        return with_gradient_factor(self.log_steps, self._factors) * self._learns

    def _connect(self) -> None:
        """Held scales, to the last bit, with gradients for the parameters behind them."""
        assert self._held is not None
        exponents = self._exponents()
        single = (self._held * torch.exp(exponents - exponents.detach())).unbind()
        self._now = {group: dataclasses.replace(affine, scale=single[self._row[group]]) for group, affine in self._now.items()}

    def _set_now(self, is_observed: Sequence[bool]) -> None:
        scales = self.base.clone()  # which end() changes in place
        if self.mode == "learned":
            scales = scales * torch.exp(self._exponents())
        numbers, zeros, single = scales.tolist(), self.zeros.tolist(), scales.unbind()
        self._now = {group: Affine(single[row], zeros[row], numbers[row], self._is_prescribed[row],
                                   self._observer(row) if is_observed[row] else None) for group, row in self._row.items()}

    def end(self) -> None:
        """Takes moving averages over; the next forward pass has the new scales."""
        if self._is_held:
            return
        if self.mode == "moving" and self.training:
            self._follow()
        self._now = {}

    @torch.no_grad()
    def hold(self, is_observing: bool = False, is_learning: bool = False) -> None:
        """Scales stay as they are until hold() or release(): no forward pass asks the device for them. With `is_observing`, values that no
        operator prescribes the range of are watched until then; with `is_learning`, the parameters behind the scales get their gradients."""
        self._pending.clear()
        self._made.clear()
        self._set_now([is_observing and not is_prescribed for is_prescribed in self._is_prescribed])
        self._held = torch.stack([affine.scale for affine in self._by_row()]) if is_learning and self.mode == "learned" else None
        self._is_held = True

    def _by_row(self) -> List[Affine]:
        return [self._now[group] for group in self._row]

    def kept(self, key: Tuple[Any, ...], make: Callable[[], Tensor]) -> Tensor:
        """What `make` gives, once for all passes that scales are held for: a recorded pass cannot bring tables to the device."""
        if not self._is_held:
            return make()
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def release(self) -> Ranges:
        """Gives the smallest and largest values that were watched."""
        ranges = {row: (float(low), float(high)) for row, (low, high) in self._pending.items()}
        self._pending.clear()
        self._made.clear()
        self._is_held, self._held, self._now = False, None, {}
        return ranges

    @torch.no_grad()
    def fit(self, ranges: Ranges, before: Ranges) -> None:
        """New scales for new ranges. The quantizer may have left room around the old ones, or cut them: so much room is left again."""
        for row, now in ranges.items():
            ends = (-self.zeros[row] * self.base[row], (255 - self.zeros[row]) * self.base[row])
            was = before.get(row, now)
            low, high = (new * min(max(float(end) / old, _LEAST_ROOM), _MOST_ROOM) if old else new
                         for new, old, end in zip(now, was, ends if row in before else now))
            self._set_range(row, low, high)

    def observe(self, tensor: int, real: Tensor) -> None:
        """For constants that share a scale with activations."""
        affine = self._now.get(self.group_of.get(tensor, -1))
        if affine is not None and affine.observe is not None:
            affine.observe(real)

    def _set_range(self, row: int, low: float, high: float) -> None:
        if not 0 < high - low < math.inf:
            return
        scale = float(np.float32((high - low) / 255))
        self.base[row] = scale
        self.zeros[row] = int(min(max(round(-low / scale), 0), 255))
        self.log_steps[row] = 0.0
        self.lows[row], self.highs[row] = low, high

    def affine(self, tensor: int) -> Optional[Affine]:
        group = self.group_of.get(tensor)
        return None if group is None else self._now[group]

    def _observer(self, row: int):
        def observe(real: Tensor) -> None:
            low, high = real.amin().clamp(max=0.0), real.amax().clamp(min=0.0)
            pending = self._pending.setdefault(row, [low, high])
            pending[0], pending[1] = torch.minimum(pending[0], low), torch.maximum(pending[1], high)
        return observe

    @property
    def _pending(self) -> Dict[int, List[Tensor]]:
        return self.__dict__.setdefault("_pending_ranges", {})

    @torch.no_grad()
    def _follow(self) -> None:
        if not self._pending:
            return
        rows = sorted(self._pending)
        # Processes that share a batch share its range: the smallest and the largest value of all of them.
        ends = torch.stack([torch.stack([-self._pending[row][0] for row in rows]), torch.stack([self._pending[row][1] for row in rows])])
        self._pending.clear()
        if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            dist.all_reduce(ends, op=dist.ReduceOp.MAX)
        for row, low, high in zip(rows, (-ends[0]).tolist(), ends[1].tolist()):
            if math.isnan(float(self.lows[row])):  # begins at what was calibrated
                self.lows[row] = -self.zeros[row] * self.base[row]
                self.highs[row] = (255 - self.zeros[row]) * self.base[row]
            self.lows[row] += (1 - self.momentum) * (low - self.lows[row])
            self.highs[row] += (1 - self.momentum) * (high - self.highs[row])
            self._set_range(row, float(self.lows[row]), float(self.highs[row]))
