# SPDX-License-Identifier: Apache-2.0
"""The graph as a PyTorch module: float tensors in and out, the chip's codes inside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Optional, Sequence, Set, Tuple

import numpy as np
import torch
from torch import Tensor, nn

from .._library import Error, UnsupportedError
from ._arithmetic import Affine, float_arithmetic, sums_in_float32
from ._constants import Constants, FloatSource
from ._graph import ChipGraph, Edit, Model
from ._scales import BIASED, Ranges, Scales
from ._twins import MOVEMENT, TWINS, Call

ARITHMETICS = ("chip", "float")

_TIE = 1e-4  # pixels scaled to [-1, 1] lie halfway between codes; `reef eval` rounds them up, too (src/data/values.cpp)


@dataclass
class Layout:
    """How the caller's tensors lie beside the graph's, which are channels-last: permutations, None where they are alike."""
    inputs: List[Optional[Tuple[int, ...]]] = field(default_factory=list)
    outputs: List[Optional[Tuple[int, ...]]] = field(default_factory=list)


class QatModel(nn.Module):
    """A network whose forward pass gives the Edge TPU's codes to the last bit, and whose backward pass trains it.

    Made by prepare_qat(). Takes what the float model takes (or 8-bit codes) and gives float tensors; codes() gives the codes.
    """

    def __init__(self, quantized: Model, source: Optional[Model], ranges: str, weight_ranges: str, layout: Layout,
                 momentum: float, keep_zeros: bool = False, is_final: bool = False):
        super().__init__()
        self._graph = ChipGraph(quantized, is_final)
        _require_twins(self._graph)
        names: Set[str] = {tensor.name for tensor in quantized.tensors}
        self.scales = Scales(self._graph, names, ranges, momentum)
        self.constants = Constants(self._graph, self.scales, FloatSource(source), names, weight_ranges == "learned",
                                   keep_zeros)
        self.layout = layout
        self.notes: List[str] = list(self._graph.rewrites)
        # In training on a GPU, sums in float32 by its matrix units, several times faster; eval() and codes() stay exact.
        self.fast_sums = False
        self._arithmetic = "chip"
        self.links: List[Any] = []  # _write_back.Link: where constants came from in the user's module

    @property
    def graph(self) -> ChipGraph:
        return self._graph

    @property
    def device(self) -> torch.device:
        return self.scales.base.device

    @property
    def arithmetic(self) -> str:
        """"chip": the forward pass gives the chip's codes. "float": it gives what the real weights give, nothing is rounded; scales stay as
        they are, and calibrate() makes them fit again. codes() are the chip's always."""
        return self._arithmetic

    @arithmetic.setter
    def arithmetic(self, wanted: str) -> None:
        if wanted not in ARITHMETICS:
            raise Error(f"there is no arithmetic '{wanted}'; there are {', '.join(ARITHMETICS)}")
        if wanted == self._arithmetic:
            return
        if wanted == "float":
            self.scales.hold()
        else:
            self.scales.release()
        self._arithmetic = wanted

    @torch.no_grad()
    def observed(self, batches: Iterable[Tensor]) -> Ranges:
        """Smallest and largest values of activations over these inputs in float arithmetic, for calibrate()."""
        before, was_training = self.arithmetic, self.training
        self.arithmetic = "chip"
        self.eval()
        self.scales.hold(is_observing=True)
        self._arithmetic = "float"
        self.constants.observe()
        for inputs in batches:
            self(inputs)
        self._arithmetic = "chip"
        ranges = self.scales.release()
        self.train(was_training)
        self.arithmetic = before
        return ranges

    @torch.no_grad()
    def calibrate(self, batches: Iterable[Tensor], before: Optional[Ranges] = None) -> None:
        """Scales for the real weights as they are now: of activations by the smallest and largest value over these inputs, which typical 100 to
        500 suffice for, as `reef quantize --calibration minmax` chooses them; of weights by the largest one.

        `before`: what observed() gave for the weights that the present scales were chosen for. Ranges that were wider or narrower than what
        was seen then are so again.
        """
        ranges, arithmetic = self.observed(batches), self.arithmetic
        self.arithmetic = "chip"
        self.scales.fit(ranges, before or {})
        self.scales.hold()
        self.constants.calibrate()
        self.scales.release()
        self.arithmetic = arithmetic

    def forward(self, *inputs: Tensor) -> Any:
        values, affines = self._run(inputs)
        outputs = [self._real(values[t], affines[t], i) for i, t in enumerate(self._graph.outputs)]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @torch.no_grad()
    def codes(self, *inputs: Tensor) -> List[np.ndarray]:
        """The outputs as the compiled model gives them: TFLite's codes, channels-last."""
        before = self.arithmetic
        self.arithmetic = "chip"
        values, affines = self._run(inputs)
        self.arithmetic = before
        result = []
        for t in self._graph.outputs:
            info = self._graph.tensors[t]
            code = values[t] + float(affines[t].zero - info.offset)
            result.append(_without_ones(code, info.shape).cpu().numpy().astype(info.dtype))
        return result

    def _run(self, inputs: Sequence[Tensor]) -> Tuple[Dict[int, Tensor], Dict[int, Affine]]:
        if len(inputs) != len(self._graph.inputs):
            raise Error(f"the model takes {len(self._graph.inputs)} inputs, not {len(inputs)}")
        self.scales.begin()
        self.constants.begin()
        values = {t: self._coded(inputs[i], i, t) for i, t in enumerate(self._graph.inputs)}
        last = _last_uses(self._graph)
        with sums_in_float32(self.fast_sums and self.training), float_arithmetic(self.arithmetic == "float"):
            for op in self._graph.ops:
                TWINS[op.type](Call(self._graph, op, values, self.scales, self.constants))
                for tensor in last[op.index]:
                    values.pop(tensor, None)
        affines = {t: self._affine(t) for t in self._graph.outputs}
        self.scales.end()
        return values, affines

    def _affine(self, tensor: int) -> Affine:
        affine = self.scales.affine(tensor)
        assert affine is not None
        return affine

    def _coded(self, given: Tensor, i: int, tensor: int) -> Tensor:
        info, affine = self._graph.tensors[tensor], self._affine(tensor)
        order = self.layout.inputs[i] if i < len(self.layout.inputs) else None
        if given.dtype in (torch.int8, torch.uint8):  # codes, channels-last, in the tensor's own type
            u = given.to(torch.float32) + float(info.offset - affine.zero)
        elif self.arithmetic == "float":
            u = (given.permute(order) if order else given) * (1.0 / affine.scale)
        else:
            x = given.permute(order) if order else given
            codes = torch.floor(x.double() / affine.scale.double() + 0.5 + _TIE) + affine.zero
            u = (codes.clamp(0, 255) - affine.zero).to(torch.float32)
        if tuple(u.shape[1:]) != tuple(info.shape[1:]) or info.shape[0] != 1:
            raise Error(f"input '{info.name}' is {list(info.shape)} for one sample; {list(given.shape)} does not fit")
        return u.unsqueeze(1)

    def _real(self, u: Tensor, affine: Affine, i: int) -> Tensor:
        real = _without_ones(u * affine.scale, self._graph.tensors[self._graph.outputs[i]].shape)
        order = self.layout.outputs[i] if i < len(self.layout.outputs) else None
        return real.permute(order) if order else real

    @torch.no_grad()
    def edits(self) -> List[Edit]:
        """Constants and scales as they are now, for the .tflite file."""
        if self.arithmetic == "float":
            raise Error("the module is in float arithmetic, whose weights have no codes; calibrate() it and set arithmetic = 'chip' first")
        self.scales.begin()
        self.constants.begin()
        result = [self._edit_activation(t) for t in self.scales.group_of if t not in self.constants]
        for tensor in self.constants.origins:
            role = self.constants.role(tensor)
            edit = {"weights": self._edit_weights, "value": self._edit_value}.get(role)
            if edit is not None:
                result.append(edit(tensor))
        result += self._edit_biases()
        return result

    @torch.no_grad()
    def quantization_of(self, tensor: int) -> Tuple[float, int]:
        """Scale and zero point of a computed tensor as convert() writes them."""
        self.scales.begin()
        edit = self._edit_activation(tensor)
        assert edit.scales is not None and edit.zero_points is not None
        return float(edit.scales[0]), int(edit.zero_points[0])

    def _edit_activation(self, tensor: int) -> Edit:
        affine, info = self._affine(tensor), self._graph.tensors[tensor]
        return Edit(tensor, scales=_array(affine.scale), zero_points=np.array([affine.zero - info.offset]))

    def _edit_value(self, tensor: int) -> Edit:
        affine, info = self._affine(tensor), self._graph.tensors[tensor]
        codes = self.constants.value(tensor, affine) + float(affine.zero - info.offset)
        return Edit(tensor, codes.cpu().numpy().astype(info.dtype), _array(affine.scale),
                    np.array([affine.zero - info.offset]))

    def _edit_weights(self, tensor: int) -> Edit:
        info, scales = self._graph.tensors[tensor], self.constants.weight_scales(tensor)
        codes = self.constants.weights(tensor).cpu().numpy()
        if info.dtype == np.uint8:
            codes = codes + float(info.zero_points[0])
        return Edit(tensor, codes.astype(info.dtype), _array(scales), info.zero_points)

    def _edit_biases(self) -> List[Edit]:
        edits: Dict[int, Edit] = {}
        for op in self._graph.ops:
            if op.type not in BIASED or len(op.inputs) <= BIASED[op.type][2]:
                continue
            data, weights, bias = (op.inputs[i] for i in BIASED[op.type])
            if bias not in self.constants:
                continue
            source, scales = self._affine(data), self.constants.weight_scales(weights)
            info = self._graph.tensors[bias]
            codes = self.constants.bias(bias, source.scale, scales).reshape(info.shape).cpu().numpy().astype(info.dtype)
            units = (source.scale.double() * scales.double()).cpu().numpy().astype(np.float32).reshape(-1)
            edits[bias] = Edit(bias, codes, np.broadcast_to(units, info.scales.shape), info.zero_points)
        return list(edits.values())


def _array(scale: Tensor) -> np.ndarray:
    return scale.detach().cpu().numpy().astype(np.float32).reshape(-1)


def _without_ones(value: Tensor, shape: Tuple[int, ...]) -> Tensor:
    """The graph's own batch of one gives way to the caller's."""
    return value.squeeze(1) if shape and shape[0] == 1 else value


def _last_uses(graph: ChipGraph) -> List[List[int]]:
    """By operator: tensors that nobody reads afterwards."""
    last: Dict[int, int] = {}
    for op in graph.ops:
        for tensor in (*op.inputs, *op.outputs):
            last[tensor] = op.index
    result: List[List[int]] = [[] for _ in graph.ops]
    for tensor, op_index in last.items():
        if tensor not in graph.outputs:
            result[op_index].append(tensor)
    return result


def _require_twins(graph: ChipGraph) -> None:
    """Fails with every operator that has no exact twin, and every one that the chip leaves to the CPU."""
    missing = [graph.place(op) for op in graph.ops if op.type not in TWINS]
    if missing:
        raise UnsupportedError("no exact twin in PyTorch yet: " + "; ".join(missing))
    left = [f"{graph.place(op)}: {op.on_cpu}" for op in graph.ops if op.on_cpu and op.type not in MOVEMENT]
    if left:
        raise UnsupportedError("operators that the Edge TPU leaves to the CPU have another arithmetic, which training does not "
                               "repeat: " + "; ".join(left))
