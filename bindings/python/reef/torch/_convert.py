# SPDX-License-Identifier: Apache-2.0
"""convert: the trained module as an int8 .tflite file."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import List, Union

import numpy as np
import torch

from .. import compiler
from .._library import Error
from ..interpreter import Interpreter
from ._graph import ChipGraph, Model
from ._module import QatModel
from ._prepare import from_quantized

Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class ConvertResult:
    """What convert() wrote."""
    path: str
    verified: int      # random inputs whose codes on the virtual device were the module's
    notes: List[str]


def convert(model: QatModel, output: Path, *, verify: int = 4) -> ConvertResult:
    """Writes the int8 model with exactly the scales and weights of the module; `reef compile` takes it.

    Args:
      model: what prepare_qat() gave, trained or not.
      output: the .tflite file; it appears whole or not at all.
      verify: compile the result and compare so many random inputs on the virtual Edge TPU with the module, code by code; 0: do
        not.
    Raises reef.Error, and writes nothing, if a code differs.
    """
    folder = os.path.dirname(os.path.abspath(os.fspath(output)))
    if not os.path.isdir(folder):
        raise Error(f"there is no folder {folder}")
    notes: List[str] = []
    with tempfile.TemporaryDirectory(prefix="reef_qat_") as work:
        written = os.path.join(work, "model_int8.tflite")
        model.graph.save(written, model.edits())
        twin = model
        if not _same_operators(model.graph, ChipGraph(Model.load(written), is_final=True)):
            # Functions by table are chosen for the scales that the model has in the end.
            twin = from_quantized(written).to(model.device)
            notes.append("with the trained scales the compiler chooses other operators than in training for some functions; codes "
                         "may differ by a step from the module's. reef.torch.from_quantized() gives the exact module")
        if verify > 0:
            _compare(twin, written, work, verify)
        model.graph.save(output, model.edits())
    return ConvertResult(os.fspath(output), verify, notes)


def _same_operators(a: ChipGraph, b: ChipGraph) -> bool:
    return [(op.type, op.attributes) for op in a.ops] == [(op.type, op.attributes) for op in b.ops]


def random_codes(model: QatModel, count: int, seed: int = 0) -> List[np.ndarray]:
    """Random inputs as 8-bit codes, first dimension counting them."""
    generator = np.random.default_rng(seed)
    result = []
    for tensor in model.graph.inputs:
        info = model.graph.tensors[tensor]
        limits = np.iinfo(info.dtype)
        result.append(generator.integers(limits.min, limits.max + 1, (count, *info.shape[1:]), dtype=info.dtype))
    return result


def device_codes(compiled: Path, inputs: List[np.ndarray]) -> List[np.ndarray]:
    """Outputs of a compiled model on a virtual Edge TPU, one run for each sample."""
    interpreter = Interpreter(os.fspath(compiled))
    interpreter.allocate_tensors()
    entries, results = interpreter.get_input_details(), interpreter.get_output_details()
    outputs: List[List[np.ndarray]] = [[] for _ in results]
    for sample in range(len(inputs[0])):
        for entry, values in zip(entries, inputs):
            interpreter.set_tensor(entry["index"], values[sample].reshape(entry["shape"]))
        interpreter.invoke()
        for kept, entry in zip(outputs, results):
            kept.append(interpreter.get_tensor(entry["index"]).copy())
    return [np.stack(kept) for kept in outputs]


def _compare(model: QatModel, path: str, folder: str, count: int) -> None:
    compiled = compiler.compile(path, folder, verify=False).files[0]
    inputs = random_codes(model, count)
    was_training = model.training
    model.eval()
    here = model.codes(*[torch.from_numpy(values).to(model.device) for values in inputs])
    model.train(was_training)
    for mine, device in zip(here, device_codes(compiled, inputs)):
        differing = int((mine.reshape(-1) != device.reshape(-1)).sum())
        if differing:
            raise Error(f"{differing} of {mine.size} output codes differ from the virtual Edge TPU's, so nothing was written; this "
                        "is a defect of Reef: please report the model")
