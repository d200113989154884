# SPDX-License-Identifier: Apache-2.0
"""The chip's arithmetic on PyTorch tensors, differentiable.

A value is carried as `u`, its code minus its zero point: whole numbers in a float32 tensor. The chip's own formula

    exact sum -> float32 -> * multiplier -> clamp -> round half to even -> saturate

is differentiable but for the rounding, which passes gradients straight through. Multipliers are made of scales by the same
float32 operations, in the same order, as in src/numeric/chip_requantize.cpp, so that gradients reach the scales as well; what
comes out is the gradient of LSQ (Esser et al., 2020): inside the range u - x/s, where a value saturates the limit.

Where the chip's formula has no useful derivative (tables, weights of ADD), `substitute` gives the exact codes forward and the
derivative of the real function backward.

Within `float_arithmetic()` the same functions compute the real network: nothing is rounded, and only what an operator itself limits is
cut. Values are still divided by their scales, which cancel.
"""

from __future__ import annotations

import contextlib
import math
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Callable, Iterator, Optional, Tuple

import torch
from torch import Tensor

EXACT_FLOAT32 = float(1 << 24)  # sums of whole numbers below this are exact in float32, in any order
INT32_MAX, INT32_MIN = float((1 << 31) - 1), -float(1 << 31)


@dataclass(frozen=True)
class Affine:
    """How a tensor stores real numbers on the chip: real = scale * (code - zero), codes 0 to 255."""
    scale: Tensor  # float32, no dimensions
    zero: int
    number: float  # the scale's value on the host: asking a GPU for it would wait for all that it has to do
    is_prescribed: bool = False  # the range is part of what the operator computes, so float arithmetic keeps to it, too
    observe: Optional[Callable[[Tensor], None]] = None  # told real values before they are cut to the range

    def same_as(self, other: "Affine") -> bool:
        return self.zero == other.zero and self.number == other.number


class _Substitute(torch.autograd.Function):
    """The first tensor forward; gradients go to the second."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, surrogate: Tensor) -> Tensor:  # type: ignore[override]
        return value.clone() if value is surrogate else value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[None, Tensor]:  # type: ignore[override]
        return None, grad


class _Round(torch.autograd.Function):
    """Half to even, within limits; gradients pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, low: float, high: float) -> Tensor:  # type: ignore[override]
        return torch.round(x).clamp_(low, high)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, None, None]:  # type: ignore[override]
        return grad, None, None


class _Clamp(torch.autograd.Function):
    """torch.clamp between two tensors without dimensions, whose own backward pass takes longer than a convolution's: a gradient goes to the
    value where it lies inside, else to the limit."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, low: Tensor, high: Tensor) -> Tensor:  # type: ignore[override]
        cut = torch.minimum(torch.maximum(x, low), high)
        ctx.save_for_backward(cut == x, x < low)
        return cut

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, Optional[Tensor], Optional[Tensor]]:  # type: ignore[override]
        inside, below = ctx.saved_tensors
        passed = grad * inside
        if not (ctx.needs_input_grad[1] or ctx.needs_input_grad[2]):
            return passed, None, None
        stopped = grad - passed
        at_low = (stopped * below).sum()
        return passed, at_low, stopped.sum() - at_low


class _GradientFactor(torch.autograd.Function):
    """The same numbers; the gradient of each is multiplied by its factor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: Tensor) -> Tensor:  # type: ignore[override]
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, None]:  # type: ignore[override]
        return grad * ctx.factor, None


class _ExactSum(torch.autograd.Function):
    """A sum of products in float64, rounded to whole numbers, so that no algorithm's error is left; gradients in float32."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Tensor], *operands: Tensor) -> Tensor:  # type: ignore[override]
        ctx.function = function
        ctx.save_for_backward(*operands)
        wide = function(*[operand.double() for operand in operands]).round_()
        return wide.clamp_(INT32_MIN, INT32_MAX).to(torch.float32)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:  # type: ignore[override]
        wanted = ctx.needs_input_grad[1:]
        with torch.enable_grad():
            operands = [t.detach().requires_grad_(w) for t, w in zip(ctx.saved_tensors, wanted)]
            result = ctx.function(*operands)
        grads = iter(torch.autograd.grad(result, [t for t in operands if t.requires_grad], grad))
        return (None, *[next(grads) if w else None for w in wanted])


def substitute(value: Tensor, surrogate: Tensor) -> Tensor:
    """`value` forward, the derivative of `surrogate` backward. The two have one shape."""
    return _Substitute.apply(value, surrogate)


def rounded(x: Tensor, low: float, high: float) -> Tensor:
    return x if is_float() else _Round.apply(x, low, high)


def clamped(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return _Clamp.apply(x, low, high)


def with_gradient_factor(x: Tensor, factor: Tensor) -> Tensor:
    return _GradientFactor.apply(x, factor)


_float: ContextVar[bool] = ContextVar("reef_float_arithmetic", default=False)


def is_float() -> bool:
    return _float.get()


@contextlib.contextmanager
def float_arithmetic(wanted: bool) -> Iterator[None]:
    """Real numbers instead of codes within this block."""
    token = _float.set(wanted)
    try:
        yield
    finally:
        _float.reset(token)


_fast_sums: ContextVar[bool] = ContextVar("reef_fast_sums", default=False)


@contextlib.contextmanager
def sums_in_float32(wanted: bool) -> Iterator[None]:
    """Sums in float32 on a GPU, too, within this block: a sum beyond 2^24 may then be off by its last bit, and a code by one."""
    token = _fast_sums.set(wanted)
    allowed = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    if wanted:  # TF32 keeps 11 bits of the factors; codes and weights have 9 at most, and products are summed in float32
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        _fast_sums.reset(token)
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = allowed


def exact_sum(function: Callable[..., Tensor], bound: float, *operands: Tensor) -> Tensor:
    """A sum of products of whole numbers as the chip has it: exact, saturated to 32 bits, then float32.

    `bound`: no partial sum can be larger. Float32 is used where that makes it exact, on a CPU with full precision.
    """
    if is_float():
        return function(*operands)
    is_exact = (bound < EXACT_FLOAT32 and not operands[0].is_cuda
                and torch.get_float32_matmul_precision() == "highest")
    if operands[0].is_cuda and _fast_sums.get():
        return _whole_sums(function(*operands))
    return function(*operands) if is_exact else _ExactSum.apply(function, *operands)


def _whole_sums(total: Tensor) -> Tensor:
    """Whole numbers again, whatever algorithm has summed; gradients pass."""
    return _Round.apply(total, INT32_MIN, INT32_MAX)


def clamp_limits(out: Affine, activation: str) -> Tuple[Tensor, Tensor]:
    """Limits of a scaled sum before rounding (chip_clamp)."""
    inverse = 1.0 / out.scale
    high, low = (255.0 - out.zero) * out.scale, float(-out.zero) * out.scale
    if activation in ("RELU", "RELU6"):
        low = torch.clamp(low, min=0.0)
    if activation == "RELU6":
        high = torch.clamp(high, max=6.0)
    if activation == "RELU_N1_TO_1":
        low, high = torch.clamp(low, min=-1.0), torch.clamp(high, max=1.0)
    return low * inverse, high * inverse


def _observe(out: Affine, scaled: Tensor, activation: str) -> None:
    if out.observe is None:
        return
    out.observe((scaled.detach() * out.scale.detach()).clamp(*_LIMITS[activation]))


def requantized(total: Tensor, multiplier: Tensor, out: Affine, activation: str = "NONE") -> Tensor:
    """A sum at the scale of the output: the chip's last steps."""
    return fitted(total * multiplier, out, activation)


def fitted(scaled: Tensor, out: Affine, activation: str = "NONE") -> Tensor:
    """Numbers in steps of the output's scale, cut and rounded to its codes."""
    _observe(out, scaled, activation)
    if is_float():
        return _limited(scaled, out, activation)
    low, high = clamp_limits(out, activation)
    return rounded(clamped(scaled, low, high), -out.zero, 255 - out.zero)


def finished(exact: Callable[[], Tensor], surrogate: Tensor, out: Affine, activation: str = "NONE") -> Tensor:
    """What `exact` gives (u, without gradient); derivative of `surrogate`, real numbers, where they lie inside the range."""
    scaled = surrogate * (1.0 / out.scale)
    if is_float():
        return fitted(scaled, out, activation)
    _observe(out, scaled, activation)
    with torch.no_grad():
        value = exact()
    low, high = clamp_limits(out, activation)
    return substitute(value, clamped(scaled, low, high))


_LIMITS = {"NONE": (-math.inf, math.inf), "RELU": (0.0, math.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}


def _limited(scaled: Tensor, out: Affine, activation: str) -> Tensor:
    """Float arithmetic's end of an operator: the activation, and the range where it is prescribed."""
    low, high = (limit / out.number for limit in _LIMITS[activation])
    if out.is_prescribed:
        low, high = max(low, -float(out.zero)), min(high, 255.0 - out.zero)
    if low == 0.0 and high == math.inf:
        return torch.relu(scaled)
    if low == -math.inf and high == math.inf:
        return scaled
    return torch.clamp(scaled, low, high)


def rescaled(u: Tensor, source: Affine, out: Affine, activation: str = "NONE") -> Tensor:
    """Codes at another scale; the same ones where nothing changes."""
    if activation == "NONE" and source.same_as(out):
        # Learned scales that happen to be equal still have their own gradients.
        return u if source.scale is out.scale else u * (source.scale / out.scale)
    return requantized(u, (1.0 / out.scale) * source.scale, out, activation)


@lru_cache(maxsize=4096)
def add_weights(a_scale: float, b_scale: float) -> Tuple[int, int, int]:
    """Whole weights p_a : p_b closest to the scales' ratio, and the larger one (chip_add)."""
    larger, smaller = max(a_scale, b_scale), min(a_scale, b_scale)
    ratio = Fraction(smaller / larger).limit_denominator(32767)
    if a_scale >= b_scale:
        return ratio.denominator, ratio.numerator, ratio.denominator
    return ratio.numerator, ratio.denominator, ratio.denominator


def add_unit(a: Affine, b: Affine, denominator: int) -> Tensor:
    """The real number that a weighted sum of two tensors counts in."""
    return torch.maximum(a.scale, b.scale).detach() / float(denominator)


def power_of_two(exponent: Tensor) -> Tensor:
    """2^k for whole k within float32's normal numbers, exactly: PyTorch's pow and ldexp may be off in the last bit."""
    return ((exponent.to(torch.int32) + 127) << 23).view(torch.float32)


def table_at(coefficients: Tensor, breaks: Tensor, x: Tensor) -> Tensor:
    """Eight polynomials by Horner's rule, every step rounded to float32 (ChipTable::at)."""
    chosen = coefficients[torch.bucketize(x, breaks, right=True)]
    y = chosen[..., 4]
    for power in (3, 2, 1, 0):
        y = y * x
        y = y + chosen[..., power]
    return y


def reciprocal_root(coefficients: Tensor, breaks: Tensor, x: Tensor) -> Tensor:
    """chip_reciprocal_root: x = m * 4^k, the table serves m in [1, 4)."""
    exponent = torch.frexp(x).exponent.to(torch.int32) - 1
    half = torch.div(exponent, 2, rounding_mode="floor")
    result = table_at(coefficients, breaks, x * power_of_two(-2 * half)) * power_of_two(-half)
    return torch.where(x > 0, result, torch.full_like(result, 65535.0))


@lru_cache(maxsize=4096)
def numbers_on(device: torch.device, values: Tuple[int, ...]) -> Tensor:
    """Whole numbers on the device, copied there once: a step that copies cannot be recorded as a graph."""
    return torch.tensor(values, device=device)


def chip_round(x: Tensor, limit: int) -> Tensor:
    return torch.round(x).clamp(0, limit)
