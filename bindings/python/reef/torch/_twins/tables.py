# SPDX-License-Identifier: Apache-2.0
"""Functions that the chip computes by table. An 8-bit tensor has 256 values, so the library gives 256 codes; SOFTMAX and
L2_NORMALIZATION are put together from such tables."""

from __future__ import annotations

from functools import lru_cache
from typing import Callable, Dict, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .. import _graph
from .._arithmetic import chip_round, clamp_limits, finished, reciprocal_root, rounded
from .call import Call

_SILU, _NUMERATOR = "reef_silu_operand", "reef_numerator"  # set by the rewrite `one-pass`, never in files
_MARK = "reef_by_table"  # set by the rewrite `by-table`, never in files
_EXP_ONE, _ROOT_ONE = 65535.0, 46340.0  # units of SOFTMAX's tables
_ROOT_SPLIT, _COARSE, _FINE = 4096.0, 65535.0, 64.0 * 65535.0  # L2_NORMALIZATION


# Derivatives come from these; the codes from the library. A rewrite marks those that the chip computes by a table (_MARK).
_FUNCTIONS: Dict[str, Callable[[Tensor], Tensor]] = {
    "LOGISTIC": torch.sigmoid, "TANH": torch.tanh, "RSQRT": lambda x: torch.rsqrt(x.clamp(min=1e-9)), "HARD_SWISH": F.hardswish,
    "ELU": F.elu, "EXP": torch.exp, "LOG": lambda x: torch.log(x.clamp(min=1e-9)), "SQRT": lambda x: torch.sqrt(x.clamp(min=1e-9)),
    "ABS": torch.abs, "RELU_0_TO_1": lambda x: x.clamp(0.0, 1.0)}
_JOINED = "ReefFunction"  # several operators that the compiler computes by one table; only in models whose scales stay
# Operators that the chip computes by a table whatever their scales; DIV and MUL only in the forms of is_table_function. No trait says
# this: for all others it depends on the scales, and the rewrite leaves _MARK.
_UNMARKED = frozenset(("LOGISTIC", "TANH", "RSQRT", "GELU", "DIV", "MUL", _JOINED))


def is_table_function(call: Call) -> bool:
    """A MUL that is a SiLU, a DIV of a number by a tensor."""
    return call.attribute(_SILU, -1) >= 0 or call.attribute(_NUMERATOR, 0) != 0


def _real_function(call: Call) -> Callable[[Tensor], Tensor]:
    if call.op.type == "MUL":
        return F.silu
    if call.op.type == "DIV":
        numerator = float(call.attribute(_NUMERATOR))
        return lambda x: numerator / torch.where(x == 0, torch.full_like(x, 1e-6), x)
    if call.op.type == "GELU":
        form = "tanh" if call.attribute("approximate", False) else "none"
        return lambda x: F.gelu(x, approximate=form)
    if call.op.type == _JOINED:  # only in modules that are not trained
        return torch.zeros_like
    if call.op.type == "LEAKY_RELU":
        return lambda x: F.leaky_relu(x, float(call.attribute("alpha")))
    return _FUNCTIONS[call.op.type]


def by_table(call: Call) -> None:
    operand = 1 if call.attribute(_SILU, -1) == 1 or call.op.type == "DIV" else 0
    if call.op.type == "DIV" and not is_table_function(call):
        raise call.unsupported("a quotient of two tensors")
    if call.op.type not in _UNMARKED and not call.attribute(_MARK, False):
        raise call.unsupported("this operator where the chip has no table for its scales")
    source, out, u = call.affine(operand), call.output_affine(), call.value(operand)

    def exact() -> Tensor:
        return call.function_codes(source, out)[(u + source.zero).long()] - out.zero

    call.set(finished(exact, _real_function(call)(u * source.scale), out))


@lru_cache(maxsize=None)
def _root_table(one: float, device: torch.device) -> Tuple[Tensor, Tensor]:
    coefficients, breaks = _graph.inverse_root(one)
    return torch.from_numpy(coefficients).to(device), torch.from_numpy(breaks).to(device)


def _root(one: float, x: Tensor) -> Tensor:
    coefficients, breaks = _root_table(one, x.device)
    return chip_round(reciprocal_root(coefficients, breaks, x), 65535)


def softmax(call: Call) -> None:
    source, out, u = call.affine(0), call.output_affine(), call.value(0)
    beta = float(call.attribute("beta", 1.0))

    def exact() -> Tensor:
        scale = float(np.float32(source.number) * np.float32(beta))
        table = call.kept("exponentials", lambda: torch.from_numpy(_graph.exponentials(scale)).to(device=u.device, dtype=torch.float64))
        numerators = table[(u.amax(-1, keepdim=True) - u).long()]
        one = torch.ones((), device=u.device) / _EXP_ONE
        root = _root(_ROOT_ONE, numerators.sum(-1, keepdim=True).to(torch.float32) * one).double()
        inverse = torch.round(((root * root).to(torch.float32) * one).clamp(0.0, 32768.0)).double()
        unit = torch.ones((), device=u.device) / _ROOT_ONE
        multiplier = 256.0 * (unit * unit)
        products = (numerators * inverse).clamp(max=2.0**31 - 1).to(torch.float32)
        return torch.round((products * multiplier).clamp(0.0, 255.0))

    call.set(finished(exact, torch.softmax(u * (source.scale * beta), -1), out))


def l2_normalization(call: Call) -> None:
    """Times one over the root of the sum of squares, which is rounded to 16 bits, in one of two units."""
    out, u = call.output_affine(), call.value(0)

    def exact() -> Tensor:
        squares = (u * u).double().sum(-1, keepdim=True)
        is_small = squares < _ROOT_SPLIT
        total = squares.to(torch.float32)
        root = torch.where(is_small, _root(_COARSE, total), _root(_FINE, total)).double()
        ones = torch.where(is_small, _COARSE, _FINE).to(torch.float32)
        multiplier = (1.0 / out.scale) * (1.0 / ones)
        low, high = clamp_limits(out, "NONE")
        products = (u.double() * root).to(torch.float32)
        return rounded(torch.clamp(products * multiplier, low, high), -out.zero, 255 - out.zero)

    call.set(finished(exact, F.normalize(u, dim=-1, eps=1e-6), out))


TWINS: Dict[str, Callable[[Call], None]] = {
    **{name: by_table for name in (*_FUNCTIONS, _JOINED, "GELU", "DIV", "LEAKY_RELU")},
    "SOFTMAX": softmax, "L2_NORMALIZATION": l2_normalization}
