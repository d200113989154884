# SPDX-License-Identifier: Apache-2.0
"""finetune: a plain training loop for what prepare_qat() gives, with a float teacher if there is one."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._library import Error
from ._module import QatModel

Teacher = Callable[[Tensor], Tensor]  # a float module, or any function that gives its outputs
Loss = Callable[[Tensor, Tensor], Tensor]


def distillation_loss(student: Tensor, teacher: Tensor, temperature: float = 2.0) -> Tensor:
    """How far outputs are from a teacher's: of class scores, [batch, classes], the divergence of their softened softmax (Hinton et al., 2015);
    of anything else the mean square, relative to the teacher's power."""
    if student.dim() == 2 and student.shape[1] > 1:
        soft = F.log_softmax(student / temperature, 1)
        return F.kl_div(soft, F.softmax(teacher / temperature, 1), reduction="batchmean") * temperature**2
    return F.mse_loss(student, teacher) / teacher.square().mean().clamp(min=1e-12)


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


def finetune(model: QatModel, batches: Iterable[Any], *, epochs: int = 3, rate: float = 1e-4, teacher: Optional[Teacher] = None,
             loss: Loss = F.cross_entropy, share: float = 0.5, progress: Optional[Callable[[int, float], None]] = None) -> List[float]:
    """Trains the module in place, with Adam and half a cosine, and returns each epoch's mean loss.

    Args:
      model: what prepare_qat() gave. Made with keep_zeros=True, pruned weights stay zero. Batches are moved to its device.
      batches: iterated once for each epoch (a DataLoader or a list): tuples (inputs, labels), or inputs alone, which need a teacher.
      epochs, rate: how often, and how fast at the most.
      teacher: the float model; its outputs are learned from (distillation).
      loss: of outputs and labels.
      share: of the teacher in the sum, where there are labels, too.
      progress: called as progress(epoch, mean loss) after each epoch.
    """
    optimizer = torch.optim.Adam(parameter_groups(model), rate)
    losses: List[float] = []
    count = len(batches) if hasattr(batches, "__len__") else 0  # of an epoch, where it is known beforehand
    for epoch in range(epochs):
        model.train()
        values: List[Tensor] = []
        for step, batch in enumerate(batches):
            done = epoch + (step / count if count else 0.0)
            for group in optimizer.param_groups:
                group["lr"] = rate * group["factor"] * 0.5 * (1 + math.cos(math.pi * min(done / max(epochs, 1), 1.0)))
            inputs, labels = _parts(batch, model.device)
            optimizer.zero_grad(set_to_none=True)
            value = _loss(model(inputs), inputs, labels, teacher, loss, share)
            value.backward()
            optimizer.step()
            values.append(value.detach())
        if not values:
            raise Error("`batches` holds no batch in epoch " + str(epoch + 1) + "; an iterator can be used once only, pass a list")
        losses.append(float(torch.stack(values).mean()))
        if not math.isfinite(losses[-1]):
            raise Error(f"the loss is no number any more in epoch {epoch + 1}; try a smaller rate than {rate}")
        if progress is not None:
            progress(epoch + 1, losses[-1])
    model.eval()
    return losses


def _parts(batch: Any, device: torch.device) -> Tuple[Tensor, Optional[Tensor]]:
    parts = batch if isinstance(batch, (tuple, list)) else (batch,)
    return parts[0].to(device), parts[1].to(device) if len(parts) > 1 else None


def _loss(outputs: Tensor, inputs: Tensor, labels: Optional[Tensor], teacher: Optional[Teacher], loss: Loss, share: float) -> Tensor:
    if teacher is None:
        if labels is None:
            raise Error("batches without labels need a teacher")
        return loss(outputs, labels)
    with torch.no_grad():
        wanted = teacher(inputs)
    distilled = distillation_loss(outputs, wanted)
    return distilled if labels is None else share * distilled + (1 - share) * loss(outputs, labels)
