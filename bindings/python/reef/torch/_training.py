# SPDX-License-Identifier: Apache-2.0
"""The loop behind finetune() and recover(): the schedule of the rate, averages of the weights, and, on a GPU, a step as one recorded graph."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

import torch
from torch import Tensor, nn

from .._library import Error
from ._arithmetic import sums_in_float32

StepLoss = Callable[[Tensor, Optional[Tensor]], Tensor]  # of inputs and labels
_EAGER_STEPS = 3  # before one is recorded: libraries choose their algorithms and the optimizer makes its state
_AVERAGE_BEGINS = 9.0  # after t steps, an average of weights reaches back t / 9 steps at most, so the first ones are forgotten
_CHECKS = 10  # at most, of what training has reached


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
    renewed: int = 0           # steps after which what they hold on to is read anew, and the graph recorded anew; 0: never

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
        self._share.fill_(max(1 - self.plan.average, _AVERAGE_BEGINS / (10 + self.taken)))
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
    def exchange_means(self) -> None:
        """The averages become the weights, and the other way round. Memory stays where it is: a recorded step knows it."""
        for mean, parameter in zip(self.means, self.parameters):
            latest = parameter.detach().clone()
            parameter.copy_(mean)
            mean.copy_(latest)


class Held:
    """What steps hold on to between two renewals, the scales of activations above all."""

    def renew(self) -> None:
        """Takes it from the device as it is now."""

    def release(self) -> None:
        """Every pass asks the device again."""


class _Eager:
    """Steps one by one."""

    def __init__(self, step: _Step):
        self.step = step

    def __call__(self, inputs: Tensor, labels: Optional[Tensor]) -> None:
        self.step(inputs, labels)

    def interrupt(self) -> None:
        """Weights are about to be looked at or changed from outside."""


class _Recorded:
    """A step as a CUDA graph for batches of one shape. Networks of small layers take more time to launch than to compute; a graph is launched
    once. Batches of another shape, and steps that cannot be recorded, run as they are."""

    def __init__(self, step: _Step, held: Held):
        self.step, self._graph, self._batch, self._held = step, None, (), held
        self._stream = torch.cuda.Stream()
        self._eager_left, self._is_held, self._since = _EAGER_STEPS, False, 0  # steps since the last renewal
        self._is_possible = True

    def interrupt(self) -> None:
        if self.step.plan.renewed:
            self._held.release()
            self._is_held = False

    def _begin(self) -> bool:
        """Renews what is held if it is time, and says whether the step must be recorded anew."""
        if self.step.plan.renewed and (not self._is_held or self._since >= self.step.plan.renewed):
            self._held.renew()
            self._is_held, self._since = True, 0
            self._eager_left = max(self._eager_left, 1)  # one pass brings tables to the device
        self._since += 1
        self._eager_left -= 1
        return self._eager_left == -1

    def __call__(self, inputs: Tensor, labels: Optional[Tensor]) -> None:
        is_new = self._begin()
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            batch = tuple(part for part in (inputs, labels) if part is not None)
            if is_new and self._is_possible:
                self._record(batch)
            if self._graph is not None and self._eager_left < 0 and _shapes(batch) == _shapes(self._batch):
                for kept, part in zip(self._batch, batch):
                    kept.copy_(part)
                self._graph.replay()
            else:
                self.step(inputs, labels)
            for part in batch:
                part.record_stream(self._stream)
        torch.cuda.current_stream().wait_stream(self._stream)

    def _record(self, batch: Tuple[Tensor, ...]) -> None:
        self._batch = tuple(part.clone() for part in batch)
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        pool = None if self._graph is None else self._graph.pool()  # the graph of before is not used any more
        try:
            with torch.cuda.graph(graph, pool=pool, stream=self._stream):
                self.step(self._batch[0], self._batch[1] if len(self._batch) > 1 else None)
        except Exception as error:
            torch.cuda.synchronize()
            self._graph, self._is_possible = None, False
            warnings.warn("training goes on step by step, which takes longer, because a step cannot be recorded as a CUDA graph: "
                          + (str(error).strip().splitlines() or [type(error).__name__])[0], stacklevel=2)
            return
        self._graph = graph


def _shapes(batch: Tuple[Tensor, ...]) -> List[Tuple[Any, ...]]:
    return [(part.shape, part.dtype) for part in batch]


class _Best:
    """The weights that a check, whose result is better the smaller it is, has found the best ones."""

    def __init__(self, model: nn.Module, check: Optional[Callable[[], float]]):
        self._model, self._check = model, check
        self._least, self._state = math.inf, {}
        self.look()

    def look(self) -> None:
        if self._check is None:
            return
        self._model.eval()
        result = self._check()
        if result < self._least:
            self._least = result
            self._state = {name: value.detach().clone() for name, value in self._model.state_dict().items()}

    def keep(self) -> None:
        if self._state:
            self._model.load_state_dict(self._state)


def drained(take: Callable[[List[float]], Iterator[None]]) -> List[float]:
    """The losses that a training which stops after every step has left in the end."""
    losses: List[float] = []
    for _ in take(losses):
        pass
    return losses


def steps(losses: List[float], model: nn.Module, device: torch.device, batches: Iterable[Any], loss: StepLoss, plan: Plan,
          progress: Optional[Callable[[int, float], None]] = None, held: Optional[Held] = None,
          check: Optional[Callable[[], float]] = None) -> Iterator[None]:
    """Trains the module in place, stops after every step, and appends each epoch's mean loss to `losses`.

    `check` gives a number for the module in evaluation; the weights with the smallest one stay, be they those from the beginning.
    """
    step = _Step(model, device, loss, plan)
    best, checks = _Best(model, check), 0
    take = _Recorded(step, held or Held()) if plan.is_recorded and device.type == "cuda" else _Eager(step)
    count = len(batches) if hasattr(batches, "__len__") else 0  # of an epoch, where it is known beforehand
    began, limit = time.monotonic(), max(plan.seconds, 1e-3)
    for epoch in range(plan.epochs):
        model.train()
        step.total.zero_()
        taken = 0
        for batch in batches:
            done = (epoch + (taken / count if count else 0.0)) / plan.epochs
            passed = (time.monotonic() - began) / limit
            if passed >= 1 and taken + epoch > 0:
                break
            step.set_rate(plan.rate_at(max(done, passed)))
            with sums_in_float32(plan.fast):
                take(*parts_of(batch, device))
            taken += 1
            yield
        if not taken:
            if losses:  # the time ended between two epochs
                break
            raise Error(f"`batches` holds no batch in epoch {epoch + 1}; an iterator can be used once only, pass a list")
        losses.append(float(step.total) / taken)
        if not math.isfinite(losses[-1]):
            raise Error(f"the loss is no number any more in epoch {epoch + 1}; try a smaller rate than {plan.rate}")
        done = max((epoch + 1) / plan.epochs, (time.monotonic() - began) / limit)
        if done < 1 and int(done * _CHECKS) > checks and check is not None:
            checks = int(done * _CHECKS)
            take.interrupt()
            step.exchange_means()
            best.look()
            step.exchange_means()
        if progress is not None:
            progress(epoch + 1, losses[-1])
        if done >= 1:
            break
    take.interrupt()
    step.exchange_means()
    best.look()
    best.keep()
    model.eval()


def parts_of(batch: Any, device: torch.device) -> Tuple[Tensor, Optional[Tensor]]:
    parts = batch if isinstance(batch, (tuple, list)) else (batch,)
    return parts[0].to(device), parts[1].to(device) if len(parts) > 1 else None
