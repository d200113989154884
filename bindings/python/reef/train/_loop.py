# SPDX-License-Identifier: Apache-2.0
"""The training loop: schedule, early stopping, checkpoints, several processes.

What a step computes depends on the seed, the epoch and the global batch alone, not on how many processes share it: each draws the
same numbers for the whole batch and takes its rows. A run that was killed goes on from its last checkpoint and ends with the same
numbers as one that was not.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .._library import Error
from ..torch import parameter_groups

# (model, picture numbers of this process, generator for the whole batch, numbers of the whole batch) -> mean loss.
StepLoss = Callable[[nn.Module, Tensor, torch.Generator, Tensor], Tensor]
Score = Callable[[nn.Module], float]  # larger is better
Tell = Callable[[str], None]

# "full" is float32, "mixed" computes most of the float network in bfloat16, which GPUs do faster, "double" is float64.
PRECISIONS = ("auto", "full", "mixed", "double")


@dataclass
class Settings:
    """What a phase of training is asked to do."""
    epochs: int
    batch: int
    rate: float
    seed: int = 0
    patience: int = 0        # epochs without a better score after which it ends; 0: never
    weight_decay: float = 1e-4
    warm_up: float = 0.1     # share of all steps
    precision: str = "full"  # of PRECISIONS


@dataclass
class History:
    """One row for each epoch."""
    losses: List[float] = field(default_factory=list)
    scores: List[float] = field(default_factory=list)


def world() -> Tuple[int, int]:
    """This process's number, and how many there are."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def _restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def is_restarted() -> bool:
    """torchrun has started this process again, because one of them ended (--max-restarts)."""
    return _restarts() > 0


def device() -> torch.device:
    """The GPU of this process, or the CPU."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())


@contextlib.contextmanager
def processes() -> Iterator[Tuple[int, int]]:
    """Joins the other processes of `torchrun`; alone where there are none. Ray's workers have joined already."""
    if int(os.environ.get("WORLD_SIZE", "1")) <= 1 or dist.is_initialized():
        yield world()
        return
    # torchrun's processes meet at a store that lives as long as torchrun does. There, the addresses of processes that ended are still to
    # be found, and who reads one before its successor has written its own waits for nobody: every start has keys of its own.
    store, rank, count = next(dist.rendezvous("env://"))
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo", store=dist.PrefixStore(f"start {_restarts()}", store), rank=rank,
                            world_size=count)
    try:
        yield world()
    finally:
        dist.destroy_process_group()


def save_whole(path: str, content: Dict[str, Any]) -> None:
    """A checkpoint appears whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), prefix=".checkpoint_")
    try:
        with os.fdopen(handle, "wb") as file:
            torch.save(content, file)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def load_checkpoint(path: str) -> Dict[str, Any]:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise Error(f"{path} is no checkpoint of this program ({type(error).__name__})") from error


class Phase:
    """One stretch of training: the float network, or the quantized one."""

    def __init__(self, name: str, model: nn.Module, count: int, settings: Settings, loss: StepLoss, score: Score,
                 checkpoint: Optional[str], tell: Tell):
        self.name, self.model, self.count, self.settings = name, model, count, settings
        self.loss, self.score, self.checkpoint, self.tell = loss, score, checkpoint, tell
        self.history, self.epoch, self.best, self.best_state = History(), 0, -math.inf, None
        # Adam divides gradients by their size. Those that are nothing but rounding would become whole steps, which differ with the
        # number of processes; a larger epsilon than the usual 1e-8 leaves them small.
        self.optimizer = torch.optim.AdamW(parameter_groups(model, settings.weight_decay), lr=settings.rate, eps=1e-6)
        self.before_score: Optional[Callable[[nn.Module], None]] = None
        self.after_epoch: Optional[Callable[["Phase"], None]] = None
        if min(settings.batch, count) < world()[1]:
            raise Error(f"{world()[1]} processes cannot share batches of {min(settings.batch, count)} pictures; each needs one at least")
        self.seconds = 0.0
        self._wrapped: Optional[nn.Module] = None

    @property
    def steps(self) -> int:
        return max(self.count // self.settings.batch, 1)

    def _rate(self, step: int) -> float:
        """Warm-up, then half a cosine."""
        total = self.steps * self.settings.epochs
        warm = max(int(total * self.settings.warm_up), 1)
        if step < warm:
            return (step + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(total - warm, 1)))

    def _key(self) -> Dict[str, Any]:
        return {"phase": self.name, "count": self.count, **asdict(self.settings)}

    def resume(self) -> bool:
        """Goes on from the checkpoint, if there is one of this phase."""
        if self.checkpoint is None or not os.path.exists(self.checkpoint):
            return False
        kept = load_checkpoint(self.checkpoint)
        if kept["key"]["phase"] != self.name:
            return False
        differing = [name for name, value in self._key().items() if kept["key"].get(name) != value]
        if differing:
            raise Error(f"the checkpoint {self.checkpoint} was made with another {', '.join(differing)}; use the same, or begin without "
                        "--resume")
        self.model.load_state_dict(kept["model"])
        self.optimizer.load_state_dict(kept["optimizer"])
        self.history = History(**kept["history"])
        self.epoch, self.best, self.best_state, self.seconds = kept["epoch"], kept["best"], kept["best_state"], kept["seconds"]
        return True

    def _save(self) -> None:
        if self.checkpoint is None or world()[0] != 0:
            return
        save_whole(self.checkpoint, {"key": self._key(), "model": self.model.state_dict(), "epoch": self.epoch,
                                     "optimizer": self.optimizer.state_dict(), "history": asdict(self.history),
                                     "best": self.best, "best_state": self.best_state, "seconds": self.seconds})

    def run(self) -> History:
        """Trains to the end, and leaves the model with the best weights."""
        while self.epoch < self.settings.epochs and not self._is_exhausted():
            began = time.monotonic()
            self.history.losses.append(self._epoch())
            if self.before_score is not None:
                self.before_score(self.model)
            self.model.eval()
            score = self.score(self.model)
            self.history.scores.append(score)
            self.epoch += 1
            if score > self.best or self.best_state is None:
                self.best = score
                self.best_state = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
            self.seconds += time.monotonic() - began
            self._save()
            left = self.seconds / self.epoch * (self.settings.epochs - self.epoch)
            self.tell(f"{self.name}: epoch {self.epoch} of {self.settings.epochs}, loss {self.history.losses[-1]:.4f}, score {score:.4f}, "
                      f"{duration(left)} left (estimated)")
            if self.after_epoch is not None:
                self.after_epoch(self)
        if self.best_state is not None:
            self.model.load_state_dict(self.best_state)
        self.model.eval()
        return self.history

    def _is_exhausted(self) -> bool:
        """The score has not become better for as long as the user waits."""
        if self.settings.patience <= 0 or len(self.history.scores) <= self.settings.patience:
            return False
        recent = max(self.history.scores[-self.settings.patience:])
        return recent <= max(self.history.scores[:-self.settings.patience])

    def _epoch(self) -> float:
        self.model.train()
        generator = torch.Generator().manual_seed(self.settings.seed * 100003 + self.epoch)
        order = torch.randperm(self.count, generator=generator)
        rank, size = world()
        batch, total = min(self.settings.batch, self.count), 0.0
        for step in range(self.steps):
            chosen = order[step * batch:(step + 1) * batch]
            for group in self.optimizer.param_groups:
                group["lr"] = self.settings.rate * group["factor"] * self._rate(self.epoch * self.steps + step)
            self.optimizer.zero_grad(set_to_none=True)
            own = chosen[rank::size]
            with self._cast():
                loss = self.loss(self._shared, own, generator, chosen)
            # The processes' gradients are averaged. Where one has fewer pictures than another, its mean counts for less.
            loss = loss * (len(own) * size / len(chosen))
            loss.backward()
            torch.nn.utils.clip_grad_norm_([p for p in self.model.parameters() if p.grad is not None], 5.0)
            self.optimizer.step()
            total += self._mean(loss.detach(), size)
        if not math.isfinite(total):
            raise Error(f"the loss is no number any more in epoch {self.epoch + 1}; try a smaller --rate than {self.settings.rate}")
        return total / self.steps

    def _cast(self) -> contextlib.AbstractContextManager:
        place = next(self.model.parameters()).device.type
        return torch.autocast(place, torch.bfloat16, enabled=self.settings.precision == "mixed")

    @property
    def _shared(self) -> nn.Module:
        """The model with gradients averaged over all processes. Buffers are the same everywhere already (GlobalBatchNorm)."""
        if world()[1] == 1:
            return self.model
        if self._wrapped is None:
            # PyTorch 2.13 renamed the option.
            wrap = nn.parallel.DistributedDataParallel
            name = "forward_sync_buffers" if "forward_sync_buffers" in inspect.signature(wrap.__init__).parameters else "broadcast_buffers"
            self._wrapped = wrap(self.model, **{name: False})
        return self._wrapped

    @staticmethod
    def _mean(loss: Tensor, size: int) -> float:
        if size > 1:
            dist.all_reduce(loss)
        return float(loss) / size


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def print_on_first(text: str) -> None:
    if world()[0] == 0:
        print(text, file=sys.stderr, flush=True)
