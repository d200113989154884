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

_LAYERS = (nn.Conv2d, nn.Linear, nn.ConvTranspose2d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


@dataclass(frozen=True)
class Link:
    """A layer of the module, and the constants of the float graph that it became."""
    layer: str
    norm: str      # "": no batch norm was folded into it
    weights: str
    bias: str      # "": none


def _as_graph(layer: nn.Module, weight: Tensor) -> Tensor:
    """Weights in TFLite's order."""
    if isinstance(layer, nn.Conv2d):
        is_depthwise = layer.groups == layer.in_channels and layer.groups > 1
        return weight.permute(1, 2, 3, 0) if is_depthwise else weight.permute(0, 2, 3, 1)
    return weight.permute(1, 2, 3, 0) if isinstance(layer, nn.ConvTranspose2d) else weight


def _from_graph(layer: nn.Module, weight: Tensor) -> Tensor:
    if isinstance(layer, nn.Conv2d):
        is_depthwise = layer.groups == layer.in_channels and layer.groups > 1
        return weight.permute(3, 0, 1, 2) if is_depthwise else weight.permute(0, 3, 1, 2)
    return weight.permute(3, 0, 1, 2) if isinstance(layer, nn.ConvTranspose2d) else weight


def _factor(norm: nn.Module) -> Tensor:
    gamma = norm.weight if norm.weight is not None else torch.ones_like(norm.running_var)
    return gamma / torch.sqrt(norm.running_var + norm.eps)


def _scaled(layer: nn.Module, factor: Tensor) -> Tensor:
    """Weights times a factor for each output channel, in the module's order."""
    axis = 1 if isinstance(layer, nn.ConvTranspose2d) else 0
    sizes = [1] * layer.weight.dim()
    sizes[axis] = -1
    return layer.weight * factor.reshape(sizes)


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
            links.append(Link(found[0], found[1], weights, bias))
    return links


def _find(layers: Dict[str, nn.Module], norms: Dict[str, nn.Module], data: np.ndarray) -> Optional[Tuple[str, str]]:
    for name, layer in layers.items():
        if layer.weight.numel() != data.size:
            continue
        channels = layer.weight.shape[1 if isinstance(layer, nn.ConvTranspose2d) else 0]
        candidates: List[Tuple[str, Tensor]] = [("", layer.weight)]
        candidates += [(n, _scaled(layer, _factor(norm))) for n, norm in norms.items() if norm.num_features == channels]
        for norm_name, weight in candidates:
            values = _as_graph(layer, weight).reshape(-1).double().numpy()
            if np.allclose(values, data.reshape(-1), rtol=1e-4, atol=1e-5 * float(np.abs(data).max() or 1.0)):
                return name, norm_name
    return None


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
        folded = _from_graph(layer, values[link.weights].reshape(_as_graph(layer, layer.weight).shape))
        offset = values.get(link.bias)
        if norm is None:
            layer.weight.copy_(folded)
            if layer.bias is not None and offset is not None:
                layer.bias.copy_(offset.reshape(-1))
        else:
            axis = 1 if isinstance(layer, nn.ConvTranspose2d) else 0
            sizes = [1] * folded.dim()
            sizes[axis] = -1
            assert factor is not None
            layer.weight.copy_(folded / factor.reshape(sizes))
            if offset is not None and norm.bias is not None:
                bias = layer.bias if layer.bias is not None else torch.zeros_like(norm.running_mean)
                norm.bias.copy_(offset.reshape(-1) - (bias - norm.running_mean) * factor)
        written.add(link.layer)
    return [name for name, module in modules.items() if isinstance(module, _LAYERS) and name not in written]
