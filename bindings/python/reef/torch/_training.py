# SPDX-License-Identifier: Apache-2.0
"""The loop behind finetune() and recover(): the schedule of the rate, averages of the weights, and, on a GPU, a step as one recorded graph."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import torch
from torch import Tensor, nn

from .._library import Error
from ._arithmetic import sums_in_float32

StepLoss = Callable[[Tensor, Optional[Tensor]], Tensor]  # of inputs and labels
_EAGER_STEPS = 3  # before one is recorded: libraries choose their algorithms and the optimizer makes its state


@dataclass(frozen=True)
class Plan:
    """How to train."""
    epochs: int
    rate: float                # the largest
    warm_up: float = 0.0       # share of the training in which the rate rises; it falls by half a cosine afterwards
    average: float = 0.0       # how much of the weights' moving average each step keeps; the averages stay in the end. 0: no averages
    clip: float = math.inf     # largest norm of all gradients together
    seconds: float = math.inf  # training ends after these at the latest; the schedule follows whichever of both is further
    fast: bool = False         # float32 by a GPU's matrix units
    is_recorded: bool = False  # the step asks the device for nothing, so a GPU can repeat it as a graph

    def rate_at(self, done: float) -> float:
        """`done`: share of the training."""
        if done < self.warm_up:
            return self.rate * max(done / self.warm_up, 0.01)
        return self.rate * 0.5 * (1 + math.cos(math.pi * min((done - self.warm_up) / (1 - self.warm_up), 1.0)))


def parameter_groups(model: nn.Module, weight_decay: float = 0.0) -> List[Dict[str, Any]]:
    """Parameters for an optimizer: only what has several dimensions decays, and scales, whose logarithms are trained, learn ten times
    slower than weights. "factor" of a group is what its rate is multiplied with."""
    decayed, plain, scales = [], [], []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            is_scale = name.endswith("log_steps") or ".steps." in name
            (scales if is_scale else decayed if parameter.dim() > 1 else plain).append(parameter)
    groups = [{"params": decayed, "weight_decay": weight_decay, "factor": 1.0},
              {"params": plain, "weight_decay": 0.0, "factor": 1.0}, {"params": scales, "weight_decay": 0.0, "factor": 0.1}]
    return [group for group in groups if group["params"]]


class _Step:
    """One step of training, without a word from the device to the host."""

    def __init__(self, model: nn.Module, device: torch.device, loss: StepLoss, plan: Plan):
        self.loss, self.plan, self.taken = loss, plan, 0
        is_cuda = device.type == "cuda"
        groups = parameter_groups(model)
        for group in groups:
            # Recorded steps read the rate from the device.
            group["lr"] = torch.zeros((), device=device) if is_cuda else 0.0
        self.optimizer = torch.optim.Adam(groups, capturable=is_cuda)
        self.parameters = [parameter for group in groups for parameter in group["params"]]
        self.means = [parameter.detach().clone() for parameter in self.parameters] if plan.average > 0 else []
        self.total, self._share = torch.zeros((), device=device), torch.ones((), device=device)

    def set_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if torch.is_tensor(group["lr"]):
                group["lr"].fill_(rate * group["factor"])
            else:
                group["lr"] = rate * group["factor"]
        # The first weights count for less than a moving average would let them.
        self._share.fill_(max(1 - self.plan.average, 1 / (1 + self.taken)))
        self.taken += 1

    def __call__(self, inputs: Tensor, labels: Optional[Tensor]) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        value = self.loss(inputs, labels)
        value.backward()
        if self.plan.clip < math.inf:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.plan.clip)
        self.optimizer.step()
        with torch.no_grad():
            self.total += value.detach()
            for mean, parameter in zip(self.means, self.parameters):
                mean.lerp_(parameter, self._share)

    @torch.no_grad()
    def keep_means(self) -> None:
        for mean, parameter in zip(self.means, self.parameters):
            parameter.copy_(mean)


class _Recorded:
    """A step as a CUDA graph for batches of one shape. Networks of small layers take more time to launch than to compute; a graph is launched
    once. Batches of another shape, and steps that cannot be recorded, run as they are."""

    def __init__(self, step: _Step):
        self.step, self._graph, self._batch = step, None, ()
        self._stream, self._left = torch.cuda.Stream(), _EAGER_STEPS

    def __call__(self, inputs: Tensor, labels: Optional[Tensor]) -> None:
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            batch = tuple(part for part in (inputs, labels) if part is not None)
            if self._left == 0:
                self._record(batch)
            if self._graph is not None and _shapes(batch) == _shapes(self._batch):
                for kept, part in zip(self._batch, batch):
                    kept.copy_(part)
                self._graph.replay()
            else:
                self.step(inputs, labels)
            for part in batch:
                part.record_stream(self._stream)
        torch.cuda.current_stream().wait_stream(self._stream)
        self._left -= 1

    def _record(self, batch: Tuple[Tensor, ...]) -> None:
        self._batch = tuple(part.clone() for part in batch)
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        try:
            with torch.cuda.graph(graph, stream=self._stream):
                self.step(self._batch[0], self._batch[1] if len(self._batch) > 1 else None)
        except Exception as error:
            torch.cuda.synchronize()
            warnings.warn("training goes on step by step, which takes longer, because a step cannot be recorded as a CUDA graph: "
                          + (str(error).strip().splitlines() or [type(error).__name__])[0], stacklevel=2)
            return
        self._graph = graph


def _shapes(batch: Tuple[Tensor, ...]) -> List[Tuple[Any, ...]]:
    return [(part.shape, part.dtype) for part in batch]


def train(model: nn.Module, device: torch.device, batches: Iterable[Any], loss: StepLoss, plan: Plan,
          progress: Optional[Callable[[int, float], None]] = None) -> List[float]:
    """Trains the module in place and returns each epoch's mean loss."""
    step = _Step(model, device, loss, plan)
    take = _Recorded(step) if plan.is_recorded and device.type == "cuda" else step
    losses: List[float] = []
    count = len(batches) if hasattr(batches, "__len__") else 0  # of an epoch, where it is known beforehand
    began = time.monotonic()
    with sums_in_float32(plan.fast):
        for epoch in range(plan.epochs):
            model.train()
            step.total.zero_()
            taken = 0
            for batch in batches:
                done = (epoch + (taken / count if count else 0.0)) / plan.epochs
                passed = (time.monotonic() - began) / plan.seconds
                if passed >= 1 and taken + epoch > 0:
                    break
                step.set_rate(plan.rate_at(max(done, passed)))
                take(*_parts(batch, device))
                taken += 1
            if not taken:
                if losses:  # the time ended between two epochs
                    break
                raise Error(f"`batches` holds no batch in epoch {epoch + 1}; an iterator can be used once only, pass a list")
            losses.append(float(step.total) / taken)
            if not math.isfinite(losses[-1]):
                raise Error(f"the loss is no number any more in epoch {epoch + 1}; try a smaller rate than {plan.rate}")
            if progress is not None:
                progress(epoch + 1, losses[-1])
            if time.monotonic() - began >= plan.seconds:
                break
    step.keep_means()
    model.eval()
    return losses


def _parts(batch: Any, device: torch.device) -> Tuple[Tensor, Optional[Tensor]]:
    parts = batch if isinstance(batch, (tuple, list)) else (batch,)
    return parts[0].to(device), parts[1].to(device) if len(parts) > 1 else None
