# SPDX-License-Identifier: Apache-2.0
"""From pictures to a compiled model, whatever the model is for: trained in float, trained on in the chip's arithmetic, converted,
compiled, tried on the virtual chip, reported. A Task says what is particular: the network, its loss, its score."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional

import numpy as np
import torch
from torch import Tensor, nn

from .. import compiler
from .._library import Error
from ..torch import QatModel, convert, device_codes, prepare_qat
from ._backbones import BACKBONES, settle_statistics, shipped_weights
from ._loop import PRECISIONS, Phase, Settings, Tell, device, is_restarted, load_checkpoint, processes, save_whole, world
from ._pictures import PREPROCESS, normalized
from ._report import curve_svg, write_json, write_whole

_SETTLING = 512  # pictures that statistics of batch norms are taken from
SHIPPED = "shipped"
HEADS = ("yolo", "ssd")
CHIP_PHASE = "training in the chip's arithmetic"
_SCALE_TIE = 1e-4  # as in src/data/values.cpp


@dataclass
class TrainRequest:
    """What `reef train` is asked for."""
    data: str
    output: str                       # folder for all results
    backbone: str = "mobilenet"
    size: int = 96
    width: float = 0.5
    epochs: int = 30
    qat_epochs: int = 5
    batch: int = 32
    rate: float = 2e-3
    held_back: float = 0.2
    patience: int = 10
    seed: int = 0
    mirror: bool = True
    resume: bool = False
    checkpoint: Optional[str] = None  # weights to begin with; "shipped": those of the package
    head: str = "yolo"                # of detectors
    precision: str = "auto"           # of the float network; "auto": mixed on a GPU
    device_pictures: int = 50         # run on the virtual chip in the end

    def check(self) -> None:
        """Raises reef.Error for what cannot be, before anything is read or written."""
        if not 16 <= self.size <= 512 or self.size % 16:
            raise Error(f"--size {self.size}: pictures are squares of 16 to 512 pixels a side, a multiple of 16")
        if self.backbone not in BACKBONES:
            raise Error(f"there is no backbone '{self.backbone}'; there are {', '.join(BACKBONES)}")
        if self.precision not in PRECISIONS:
            raise Error(f"there is no precision '{self.precision}'; there are {', '.join(PRECISIONS)}")
        if self.head not in HEADS:
            raise Error(f"there is no head '{self.head}'; there are {', '.join(HEADS)}")
        if self.checkpoint is not None and self.checkpoint != SHIPPED and not os.path.isfile(self.checkpoint):
            raise Error(f"there is no file {self.checkpoint}; --checkpoint names finished_float.pt of another run, or '{SHIPPED}'")
        if self.checkpoint == SHIPPED:
            shipped_weights(self.backbone, self.width)
        if not 0 < self.held_back < 1:
            raise Error(f"--held-back {self.held_back}: a share between 0 and 1")
        if self.epochs < 1 or self.qat_epochs < 0 or self.batch < 2:
            raise Error("--epochs is 1 at least, --qat-epochs 0, --batch 2")
        if not 0 < self.rate <= 1 or not 0.1 <= self.width <= 4:
            raise Error("--rate lies between 0 and 1, --width between 0.1 and 4")
        if os.path.exists(self.output) and not os.path.isdir(self.output):
            raise Error(f"{self.output} is a file; -o names a folder for the results")
        unfinished = os.path.join(self.output, "checkpoint.pt")
        if os.path.exists(unfinished) and not self.resume and not is_restarted():
            raise Error(f"{unfinished} is left from a run that did not end: --resume goes on with it; remove it to begin anew")


AfterEpoch = Callable[[Phase], None]


class Task:
    """Pictures in memory, and what one step and one test of them are."""

    metric = "accuracy"
    class_names: List[str]
    pixels: Tensor        # uint8 [count, 3, size, size], to learn from
    test_pixels: Tensor

    def network(self) -> nn.Module:
        raise NotImplementedError

    def loss(self, model: nn.Module, own: Tensor, generator: torch.Generator, batch: Tensor) -> Tensor:
        """The mean loss of this process's pictures `own`, which are some of `batch`."""
        raise NotImplementedError

    def figure(self, outputs: Tensor, first: int) -> float:
        """The score of the outputs of the first test pictures, so many."""
        raise NotImplementedError

    @staticmethod
    def inputs(model: nn.Module, pixels: Tensor) -> Tensor:
        """Pixels as the model takes them, where it is."""
        first = next(model.parameters())
        return normalized(pixels).to(first.device, first.dtype)

    @torch.no_grad()
    def score(self, model: nn.Module) -> float:
        outputs = torch.cat([model(self.inputs(model, part)).float().cpu() for part in self.test_pixels.split(64)])
        return self.figure(outputs, len(self.test_pixels))


class Session:
    """One run of `reef train`."""

    def __init__(self, request: TrainRequest, task: Task, tell: Tell, after_epoch: Optional[AfterEpoch] = None):
        self.request, self.task, self.tell, self.after_epoch = request, task, tell, after_epoch
        self.resumes = request.resume or is_restarted()

    def place(self, name: str) -> str:
        return os.path.join(self.request.output, name)

    def run(self) -> Dict[str, Any]:
        with processes():
            model = self._begin()
            os.makedirs(self.request.output, exist_ok=True)
            trained = self._train(model)
            return self._quantize(model, trained)

    @property
    def _precision(self) -> str:
        if self.request.precision != "auto":
            return self.request.precision
        return "mixed" if torch.cuda.is_available() else "full"

    def _begin(self) -> nn.Module:
        torch.manual_seed(self.request.seed)
        model = self.task.network()
        if self.request.checkpoint is not None:
            self._take_over(model, self.request.checkpoint)
        model = model.to(device())
        return model.double() if self._precision == "double" else model

    def _take_over(self, model: nn.Module, checkpoint: str) -> None:
        """Weights of another network, wherever name and size are the same."""
        path = shipped_weights(self.request.backbone, self.request.width) if checkpoint == SHIPPED else checkpoint
        state, own = load_checkpoint(path).get("model", {}), model.state_dict()
        fitting = {name: value for name, value in state.items() if name in own and own[name].shape == value.shape}
        if not any(name.startswith("backbone.") for name in fitting):
            raise Error(f"{path} has no weights of a {self.request.backbone} of width {self.request.width}")
        model.load_state_dict({**own, **fitting})
        self.tell(f"begins with {len(fitting)} of {len(own)} tensors of {path}")

    def _phase(self, name: str, model: nn.Module, settings: Settings) -> Phase:
        phase = Phase(name, model, len(self.task.pixels), settings, self.task.loss, self.task.score,
                      self.place("checkpoint.pt"), self.tell)
        phase.after_epoch = self.after_epoch
        return phase

    def _train(self, model: nn.Module) -> Phase:
        request, state = self.request, self.place("float.pt")
        phase = self._phase("training", model, Settings(request.epochs, request.batch, request.rate, request.seed, request.patience,
                                                        precision=self._precision))
        phase.before_score = self._settle
        if self.resumes and os.path.exists(state):
            kept = load_checkpoint(state)
            model.load_state_dict(kept["model"])
            phase.history.losses, phase.history.scores = kept["losses"], kept["scores"]
            model.eval()
            return phase
        if self.resumes and phase.resume():
            self.tell(f"training: goes on after epoch {phase.epoch}")
        phase.run()
        if world()[0] == 0:
            save_whole(state, {"model": model.state_dict(), "losses": phase.history.losses, "scores": phase.history.scores})
        return phase

    def _settle(self, model: nn.Module) -> None:
        """Batch norms, over pictures as they are, not varied."""
        settle_statistics(model, (self.task.inputs(model, part) for part in self.task.pixels[:_SETTLING].split(self.request.batch)))

    def _quantize(self, model: nn.Module, trained: Phase) -> Dict[str, Any]:
        request, task = self.request, self.task
        self.tell("quantizing ...")
        example = torch.zeros(1, 3, request.size, request.size)
        score_float = task.score(model.eval())
        qat = prepare_qat(model.float().cpu(), example, normalized(task.pixels[:200])).to(device())
        before = task.score(qat.eval())
        tuning = self._phase(CHIP_PHASE, qat, Settings(request.qat_epochs, request.batch, request.rate * 0.1, request.seed + 1))
        tuning.best = before
        tuning.best_state = {name: value.detach().clone() for name, value in qat.state_dict().items()}
        if self.resumes and tuning.resume():
            self.tell(f"{CHIP_PHASE}: goes on after epoch {tuning.epoch}")
        tuning.run()
        report: Dict[str, Any] = {
            "metric": task.metric, "classes": task.class_names, "pictures": len(task.pixels),
            "test_pictures": len(task.test_pixels), "score_float": score_float, "score_post_training": before,
            "score": task.score(qat.eval()), "losses": trained.history.losses, "scores": trained.history.scores,
            "qat_losses": tuning.history.losses, "qat_scores": tuning.history.scores, "preprocess": PREPROCESS,
            "size": request.size}
        return self._write(qat, report) if world()[0] == 0 else report

    def _write(self, qat: QatModel, report: Dict[str, Any]) -> Dict[str, Any]:
        path = self.place("model_int8.tflite")
        convert(qat, path)
        self.tell("compiling ...")
        compiled = compiler.compile(path, self.request.output).files[0]
        report.update(self._try_on_device(qat, compiled), model=path, compiled=compiled)
        write_whole(self.place("labels.txt"), "".join(name + "\n" for name in self.task.class_names))
        write_whole(self.place("training.svg"), curve_svg("Training", [
            ("loss", report["losses"]), (self.task.metric, report["scores"]),
            ("loss, chip's arithmetic", report["qat_losses"]), (f"{self.task.metric}, chip's arithmetic", report["qat_scores"])]))
        write_json(self.place("report.json"), report)
        if os.path.exists(self.place("checkpoint.pt")):
            os.unlink(self.place("checkpoint.pt"))
        os.replace(self.place("float.pt"), self.place("finished_float.pt"))
        return report

    @torch.no_grad()
    def _try_on_device(self, qat: QatModel, compiled: str) -> Dict[str, Any]:
        """Test pictures on the virtual chip: their score, and codes that are not the module's."""
        count = min(self.request.device_pictures, len(self.task.test_pixels))
        pictures = normalized(self.task.test_pixels[:count])
        info = qat.graph.tensors[qat.graph.inputs[0]]
        limits = np.iinfo(info.dtype)
        real = pictures.permute(0, 2, 3, 1).double().numpy()
        codes = np.floor(real / float(info.scales[0]) + 0.5 + _SCALE_TIE) + int(info.zero_points[0])
        there = device_codes(compiled, [codes.clip(limits.min, limits.max).astype(info.dtype)])
        here = qat.codes(pictures.to(qat.device))
        differing = sum(int((a.reshape(-1) != b.reshape(-1)).sum()) for a, b in zip(here, there))
        out = qat.graph.tensors[qat.graph.outputs[0]]
        scale, zero = qat.quantization_of(out.index)
        outputs = (torch.from_numpy(there[0].astype(np.float32)) - zero) * scale
        outputs = outputs.reshape(count, *out.shape[1:])
        return {"device_pictures": count, "device_score": self.task.figure(outputs, count), "device_codes_differing": differing}
