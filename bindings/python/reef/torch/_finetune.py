# SPDX-License-Identifier: Apache-2.0
"""finetune and recover: plain training loops for what prepare_qat() gives, with a float teacher if there is one."""

from __future__ import annotations

import math
from typing import Any, Callable, Iterable, Iterator, List, Optional, Union

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._library import Error
from ._module import QatModel
from ._training import Held, Plan, StepLoss, drained, parts_of, steps

Teacher = Callable[[Tensor], Tensor]  # a float module, or any function that gives its outputs
Loss = Callable[[Tensor, Tensor], Tensor]
Progress = Callable[[int, float], None]
_CALIBRATION = 256  # samples
_CHECKED = 1024  # samples that tell whether training makes a model worse, unless the caller gives some
_RENEWED = 50  # steps that scales are held for


def distillation_loss(student: Tensor, teacher: Tensor, temperature: float = 2.0) -> Tensor:
    """How far outputs are from a teacher's: of class scores, [batch, classes], the divergence of their softened softmax (Hinton et al., 2015);
    of anything else the mean square, relative to the teacher's power."""
    if student.dim() == 2 and student.shape[1] > 1:
        soft = F.log_softmax(student / temperature, 1)
        return F.kl_div(soft, F.softmax(teacher / temperature, 1), reduction="batchmean") * temperature**2
    return F.mse_loss(student, teacher) / teacher.square().mean().clamp(min=1e-12)


def finetune(model: Union[QatModel, nn.Module], batches: Iterable[Any], *, epochs: int = 3, rate: float = 1e-4,
             teacher: Optional[Teacher] = None, loss: Loss = F.cross_entropy, share: float = 0.5, float_epochs: int = 0,
             float_rate: float = 1e-3, average: float = 0.99, check: Optional[Iterable[Any]] = None, seconds: float = math.inf,
             progress: Optional[Progress] = None) -> List[float]:
    """Trains the module in place in the chip's arithmetic, with Adam, warm-up and half a cosine, and returns each epoch's mean loss.

    What stays is a moving average of the weights, of the epoch whose loss without augmentation of `check` is the smallest, and never weights
    that are worse at it than those from before. On a GPU a step is recorded as one graph, as in recover(); learned scales then reach it, and
    their changes each other, every 50 steps. What eval(), codes() and convert() compute always has the scales as they are.

    A pruned network, which has lost much, recovers in ordinary float arithmetic first (recover(), many times faster) if `float_epochs` says
    how long; its epochs are reported and returned before the others.

    Args:
      model: what prepare_qat() gave, or a module around it. Made with keep_zeros=True, pruned weights stay zero. Batches are moved to its
        device.
      batches: iterated once for each epoch (a DataLoader or a list): tuples (inputs, labels), or inputs alone, which need a teacher.
      epochs, rate: how often, and how fast at the most.
      teacher: the float model; its outputs are learned from (distillation).
      loss: of outputs and labels.
      share: of the teacher in the sum, where there are labels, too.
      float_epochs, float_rate: of recover().
      average: how much of the average every step keeps; 0 keeps the last weights.
      check: batches, best ones that nothing is learned from, to judge the weights by at the beginning and up to ten times. Without, the first
        1024 samples of `batches`, if that is more than an iterator.
      seconds: training in the chip's arithmetic ends after these at the latest.
      progress: called as progress(epoch, mean loss) after each epoch.
    """
    if float_epochs < 0:
        raise Error(f"float_epochs must be 0 or more, not {float_epochs}")
    told = (lambda epoch, value: progress(float_epochs + epoch, value)) if progress is not None else None
    first = recover(model, batches, epochs=float_epochs, rate=float_rate, teacher=teacher, loss=loss, share=share,
                    progress=progress) if float_epochs else []
    return first + drained(lambda losses: finetune_steps(losses, model, batches, epochs, rate, _step_loss(model, teacher, loss, share), average,
                                                        check, seconds, told))


def finetune_steps(losses: List[float], model: nn.Module, batches: Iterable[Any], epochs: int, rate: float, value: StepLoss,
                   average: float = 0.99, check: Optional[Iterable[Any]] = None, seconds: float = math.inf,
                   progress: Optional[Progress] = None) -> Iterator[None]:
    """finetune()'s part in the chip's arithmetic, which stops after every step, so that several can take turns on a GPU."""
    qat = _qat_of(model)
    is_moving = qat.scales.mode == "moving"  # every step asks the device for its ranges
    plan = Plan(epochs, rate, warm_up=0.05, average=average, seconds=seconds, fast=qat.fast_sums, is_recorded=not is_moving, renewed=_RENEWED)
    judge = _judge(value, _judged(batches, check, qat.device))
    yield from steps(losses, model, qat.device, batches, value, plan, progress, HeldScales(qat), judge)


class HeldScales(Held):
    """Scales of a module's activations stay for some steps, so that nothing asks the device for them."""

    def __init__(self, qat: QatModel):
        self._scales = qat.scales

    def renew(self) -> None:
        self._scales.hold(is_learning=True)

    def release(self) -> None:
        self._scales.release()


def _judged(batches: Iterable[Any], check: Optional[Iterable[Any]], device: torch.device) -> List[Any]:
    """Batches to judge weights by."""
    if check is not None:
        return [parts_of(batch, device) for batch in check]
    if not hasattr(batches, "__len__"):
        return []
    chosen, count = [], 0
    for batch in batches:
        chosen.append(parts_of(batch, device))
        count += len(chosen[-1][0])
        if count >= _CHECKED:
            break
    return chosen


def _judge(value: StepLoss, judged: List[Any]) -> Optional[Callable[[], float]]:
    """The mean loss over some batches, in evaluation."""
    @torch.no_grad()
    def judge() -> float:
        return float(sum(value(inputs, labels) * len(inputs) for inputs, labels in judged)) / sum(len(inputs) for inputs, _ in judged)
    return judge if judged else None


def recover(model: Union[QatModel, nn.Module], batches: Iterable[Any], *, epochs: int = 30, rate: float = 1e-3,
            teacher: Optional[Teacher] = None, loss: Loss = F.cross_entropy, share: float = 0.5, average: float = 0.998,
            seconds: float = math.inf, calibration: Optional[Tensor] = None, progress: Optional[Progress] = None) -> List[float]:
    """Trains the real weights in ordinary float arithmetic, then chooses scales for them anew: for networks that have lost more than
    rounding, by pruning above all. finetune() then trains in the chip's arithmetic, which takes many times as long for each epoch.

    Adam with warm-up and half a cosine; gradients are clipped, and what stays is a moving average of the weights. On a GPU a step is recorded
    as one graph where it can be: what the teacher and the loss compute must not need the host then; if it does, steps run as they are.

    Args:
      average: how much of the average every step keeps; 0 keeps the last weights.
      seconds: training ends after these at the latest, its schedule at its end, too.
      calibration: 100 to 500 typical inputs for the new scales; without, the first batches' are taken.
      Others are those of finetune().
    Returns each epoch's mean loss.
    """
    return drained(lambda losses: recover_steps(losses, model, batches, epochs, rate, _step_loss(model, teacher, loss, share), average, seconds,
                                                calibration, progress))


def recover_steps(losses: List[float], model: nn.Module, batches: Iterable[Any], epochs: int, rate: float, value: StepLoss,
                  average: float = 0.998, seconds: float = math.inf, calibration: Optional[Tensor] = None,
                  progress: Optional[Progress] = None) -> Iterator[None]:
    """recover(), which stops after every step."""
    qat = _qat_of(model)
    plan = Plan(epochs, rate, warm_up=0.05, average=average, clip=1.0, seconds=seconds, fast=True, is_recorded=True)
    typical = list(_inputs(batches, qat.device)) if calibration is None else list(calibration.to(qat.device).split(64))
    before = qat.observed(typical)
    qat.arithmetic = "float"
    try:
        yield from steps(losses, model, qat.device, batches, value, plan, progress)
    finally:
        qat.arithmetic = "chip"
    qat.calibrate(typical, before)


def _qat_of(model: nn.Module) -> QatModel:
    found = [part for part in model.modules() if isinstance(part, QatModel)]
    if len(found) != 1:
        raise Error(f"`model` must be what prepare_qat() gave, or a module around one; this one holds {len(found)}")
    return found[0]


def _inputs(batches: Iterable[Any], device: torch.device) -> Iterator[Tensor]:
    """Inputs of the first batches."""
    count = 0
    for batch in batches:
        inputs = (batch[0] if isinstance(batch, (tuple, list)) else batch)[:_CALIBRATION - count].to(device)
        yield inputs
        count += len(inputs)
        if count >= _CALIBRATION:
            return


def _step_loss(model: nn.Module, teacher: Optional[Teacher], loss: Loss, share: float) -> StepLoss:
    def value(inputs: Tensor, labels: Optional[Tensor]) -> Tensor:
        outputs = model(inputs)
        if teacher is None:
            if labels is None:
                raise Error("batches without labels need a teacher")
            return loss(outputs, labels)
        with torch.no_grad():
            wanted = teacher(inputs)
        distilled = distillation_loss(outputs, wanted)
        return distilled if labels is None else share * distilled + (1 - share) * loss(outputs, labels)
    return value
