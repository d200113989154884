# SPDX-License-Identifier: Apache-2.0
"""Trained weights back into the user's module.

The graph has folded weights, in another order. Which layer (and batch norm) of the module each of them came from is found by its
values: weights of trained networks never coincide, and a match is taken only if every element fits.

    W' = W * f,   b' = (b - mean) * f + beta,   f = gamma / sqrt(variance + eps)

With frozen statistics both can be turned around: W = W' / f, beta = b' - (b - mean) * f.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor, nn

from .._library import Error, lib
from ._graph import Model
from ._module import QatModel
from ._scales import BIASED

_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d)
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d)
_LAYERS = (*_CONVOLUTIONS, nn.Linear, *_TRANSPOSED)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


@dataclass(frozen=True)
class Link:
    """A layer of the module, and the constants of the float graph that it became."""
    layer: str
    norm: str      # "": no batch norm was folded into it
    weights: str
    bias: str      # "": none
    planes: int    # of a Linear behind a Flatten: channels of the pictures, which the graph has last; 1: nothing was flattened


def _last(layer: nn.Module) -> int:
    """Which dimension of a convolution's weights is the last one in TFLite's order; the others stay in their order."""
    is_depthwise = isinstance(layer, _CONVOLUTIONS) and layer.groups == layer.in_channels and layer.groups > 1
    return 0 if is_depthwise or isinstance(layer, _TRANSPOSED) else 1


def _as_graph(layer: nn.Module, weight: Tensor, planes: int = 1) -> Tensor:
    """Weights in TFLite's order."""
    if isinstance(layer, nn.Linear):
        return weight.unflatten(1, (planes, -1)).transpose(1, 2).flatten(1)
    return weight.movedim(_last(layer), -1)


def _from_graph(layer: nn.Module, weight: Tensor, planes: int) -> Tensor:
    """The opposite; `weight` may have lost or got dimensions of one."""
    if isinstance(layer, nn.Linear):
        return weight.reshape(layer.weight.shape[0], -1, planes).transpose(1, 2).flatten(1)
    last = _last(layer)
    sizes = [size for d, size in enumerate(layer.weight.shape) if d != last] + [layer.weight.shape[last]]
    return weight.reshape(sizes).movedim(-1, last)


def _factor(norm: nn.Module) -> Tensor:
    gamma = norm.weight if norm.weight is not None else torch.ones_like(norm.running_var)
    return gamma / torch.sqrt(norm.running_var + norm.eps)


def _scaled(layer: nn.Module, factor: Tensor) -> Tensor:
    """Weights times a factor for each output channel, in the module's order."""
    return layer.weight * factor.reshape(_over_outputs(layer))


def _over_outputs(layer: nn.Module) -> List[int]:
    sizes = [1] * layer.weight.dim()
    sizes[1 if isinstance(layer, _TRANSPOSED) else 0] = -1
    return sizes


def _layer_constants(source: Model) -> Iterator[Tuple[str, np.ndarray, str]]:
    """Weights of the float graph's layers, with the name of each one's bias."""
    for op in range(lib.reef_model_op_count(source.handle.value)):
        kind = lib.reef_model_op(source.handle.value, op).decode()
        if kind not in BIASED:
            continue
        inputs = source.operands(lib.reef_model_op_input, op)
        _, weights, bias = BIASED[kind]
        info = source.tensors[inputs[weights]]
        has_bias = bias < len(inputs) and inputs[bias] >= 0
        if info.data is not None:
            yield info.name, info.data, source.tensors[inputs[bias]].name if has_bias else ""


@torch.no_grad()
def find_links(model: nn.Module, source: Model) -> List[Link]:
    """Which layers of the module became which constants; layers that cannot be told are left out."""
    layers = {name: module for name, module in model.named_modules() if isinstance(module, _LAYERS)}
    norms = {name: module for name, module in model.named_modules()
             if isinstance(module, _NORMS) and module.running_var is not None}
    links: List[Link] = []
    for weights, data, bias in _layer_constants(source):
        found = _find(layers, norms, data)
        if found is not None:
            links.append(Link(found[0], found[1], weights, bias, found[2]))
    return links


def _find(layers: Dict[str, nn.Module], norms: Dict[str, nn.Module], data: np.ndarray) -> Optional[Tuple[str, str, int]]:
    """Layer, norm and planes."""
    for name, layer in layers.items():
        if layer.weight.numel() != data.size:
            continue
        channels = layer.weight.shape[1 if isinstance(layer, _TRANSPOSED) else 0]
        candidates: List[Tuple[str, Tensor]] = [("", layer.weight)]
        candidates += [(n, _scaled(layer, _factor(norm))) for n, norm in norms.items() if norm.num_features == channels]
        for norm_name, weight in candidates:
            for planes in _divisors(layer.in_features) if isinstance(layer, nn.Linear) else (1,):
                if _are_equal(_as_graph(layer, weight, planes), data):
                    return name, norm_name, planes
    return None


def _divisors(count: int) -> List[int]:
    return [d for d in range(1, count) if count % d == 0] or [1]


def _are_equal(weight: Tensor, data: np.ndarray) -> bool:
    few = 64  # most candidates differ in the first numbers
    tolerance = 1e-5 * float(np.abs(data).max() or 1.0)
    values, wanted = weight.reshape(-1), data.reshape(-1)
    return all(np.allclose(values[:n].double().numpy(), wanted[:n], rtol=1e-4, atol=tolerance) for n in (few, data.size))


@torch.no_grad()
def write_back(qat: QatModel, model: nn.Module) -> List[str]:
    """Puts the trained real weights into the module that prepare_qat() was given; statistics of batch norms stay.

    Returns the names of layers that could not be told apart in the graph, or whose constants were not trained: they keep their
    weights.
    """
    if not qat.links:
        raise Error("the module was prepared from a file, so there is no PyTorch module to write to")
    values: Dict[str, Tensor] = {origin.name: qat.constants.values[str(tensor)]
                                 for tensor, origin in qat.constants.origins.items() if origin.name}
    modules = dict(model.named_modules())
    written = set()
    for link in qat.links:
        layer, norm = modules[link.layer], modules[link.norm] if link.norm else None
        if link.weights not in values:
            continue
        factor = _factor(norm) if norm is not None else None
        folded = _from_graph(layer, values[link.weights], link.planes)
        offset = values.get(link.bias)
        if norm is None:
            layer.weight.copy_(folded)
            if layer.bias is not None and offset is not None:
                layer.bias.copy_(offset.reshape(-1))
        else:
            assert factor is not None
            layer.weight.copy_(folded / factor.reshape(_over_outputs(layer)))
            if offset is not None and norm.bias is not None:
                bias = layer.bias if layer.bias is not None else torch.zeros_like(norm.running_mean)
                norm.bias.copy_(offset.reshape(-1) - (bias - norm.running_mean) * factor)
        written.add(link.layer)
    return [name for name, module in modules.items() if isinstance(module, _LAYERS) and name not in written]
