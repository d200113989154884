# SPDX-License-Identifier: Apache-2.0
"""prepare_qat: from a float model to one that trains in the chip's arithmetic."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
import warnings
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from torch import Tensor, nn

from .. import compiler
from .._library import Error, UnsupportedError
from ._graph import Model
from ._module import Layout, QatModel
from ._twins import MOVEMENT
from ._write_back import find_links

Path = Union[str, "os.PathLike[str]"]
Samples = Union[np.ndarray, Tensor, Iterable[Any]]

WEIGHT_RANGES = ("learned", "fixed")


def prepare_qat(model: Union[nn.Module, Path], example_input: Union[None, Tensor, Tuple[Tensor, ...]] = None,
                calibration: Optional[Samples] = None, *, ranges: str = "learned", weight_ranges: str = "learned",
                momentum: float = 0.99, calibration_method: str = "minmax", recover: bool = False,
                keep_zeros: bool = False) -> QatModel:
    """Makes a module whose forward pass gives the Edge TPU's codes, bit for bit, and that can be trained.

        qat = reef.torch.prepare_qat(model, torch.zeros(1, 3, 224, 224), calibration=samples)
        ... train qat as any module ...
        reef.torch.convert(qat, "model_int8.tflite")

    Reef itself decides how the model is quantized, as `reef quantize` does: which tensors share a scale, which activations are
    fused, which functions are tables. Batch norms are folded with the statistics that they have; the folded weights are trained.

    Args:
      model: a PyTorch module, or a float model file (.onnx, .tflite).
      example_input: what the module takes, one sample in a batch; for files it may be left out.
      calibration: 100 to 500 typical samples in one array or tensor, first dimension counting them, or an iterable of batches
        (a DataLoader; of a batch that is a tuple the first element is taken).
      ranges: how scales of activations follow training: "learned", "moving" or "fixed".
      weight_ranges: scales of weights, "learned" or "fixed".
      momentum: of moving ranges.
      calibration_method: first ranges, by one of reef.quantize()'s methods.
      recover: try `reef quantize`'s ways to win accuracy back first. Some change weights in ways that cannot be mapped back to
        the module's own.
      keep_zeros: weights of layers that are exactly 0 now (pruned ones) stay 0.
    Raises reef.Error, naming the operators, where the chip does not run the model whole or an operator has no exact twin.
    """
    if weight_ranges not in WEIGHT_RANGES:
        raise Error(f"there is no way '{weight_ranges}' to follow weights; there are {', '.join(WEIGHT_RANGES)}")
    if calibration is None:
        raise Error("quantization needs samples: pass 100 to 500 typical inputs as `calibration`")
    examples = _examples(example_input)
    with tempfile.TemporaryDirectory(prefix="reef_qat_") as folder:
        path = _model_file(model, examples, folder)
        floats = os.path.join(folder, "float.tflite")
        compiler.convert(path, floats)
        source = Model.load(floats)
        layout = Layout([_order(tuple(e.shape), source.tensors[t].shape) for e, t in zip(examples, source.inputs)])
        samples = _samples(calibration, source, layout)
        integers = os.path.join(folder, "int8.tflite")
        report = compiler.quantize(floats, integers, samples, calibration=calibration_method, recover=recover,
                                   held_back=None if recover else 0)
        quantized = Model.load(integers)
        if isinstance(model, nn.Module):
            layout.outputs = _output_orders(model, examples, quantized)
        qat = QatModel(quantized, source, ranges, weight_ranges, layout, momentum, keep_zeros)
        _require_code(compiler.compile(integers, folder, verify=False))
        if isinstance(model, nn.Module):
            qat.links = find_links(model, source)
    qat.notes += [str(note) for note in report.get("notes", [])]
    return qat


def _require_code(compiled: compiler.CompileResult) -> None:
    """Raises where the compiler has no code for an operator that the chip's rules allow: better before training than behind it."""
    left = []
    for op in compiled.report["files"][0]["check"]["ops"]:
        if op["on"] == "cpu" and op["type"] not in MOVEMENT:
            why = [finding["particulars"] or finding["says"] for finding in op["findings"]]
            left.append(f"op {op['index']} {op['type']} '{op['outputs'][0]['name']}'" + (f": {why[0]}" if why else ""))
    if left:
        raise UnsupportedError("operators that the Edge TPU leaves to the CPU have another arithmetic, which training does not repeat: "
                               + "; ".join(left))


def _examples(given: Union[None, Tensor, Tuple[Tensor, ...]]) -> Tuple[Tensor, ...]:
    if given is None:
        return ()
    examples = given if isinstance(given, (tuple, list)) else (given,)
    for example in examples:
        if example.dim() == 0 or example.shape[0] != 1:
            raise Error(f"example_input must be a batch of one sample, not of shape {list(example.shape)}")
    return tuple(examples)


def _model_file(model: Union[nn.Module, Path], examples: Tuple[Tensor, ...], folder: str) -> str:
    """The model as a file that Reef reads."""
    if not isinstance(model, nn.Module):
        return os.fspath(model)
    if not examples:
        raise Error("a PyTorch module needs example_input, so that it can be traced")
    path = os.path.join(folder, "model.onnx")
    was_training = model.training
    model.eval()
    try:
        _export(model, examples, path)
    finally:
        model.train(was_training)
    return path


def _export(model: nn.Module, examples: Tuple[Tensor, ...], path: str) -> None:
    """By PyTorch's exporter that traces the module, whose graphs name layers as the module does, which write_back() needs. What that one
    does not know (adaptive pools of sizes that do not divide, for example) by the newer one."""
    with warnings.catch_warnings(), _quiet():
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(model, examples, path, dynamo=False)
            return
        except Exception as error:
            first = error
        try:
            torch.onnx.export(model, examples, path, dynamo=True, external_data=False)
        except Exception as error:  # the first exporter's words are about the user's module, the second one's about itself
            hint = " (PyTorch's newer exporter may know more: pip install onnxscript)" if isinstance(error, ImportError) else ""
            raise Error(f"PyTorch cannot export the module to ONNX: {str(first).strip().splitlines()[0]}{hint}") from first


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """PyTorch's exporters print the whole graph where they fail, from C++ to the process's standard output, and tell of their progress where
    they do not."""
    before = logging.root.manager.disable
    sys.stdout.flush()
    kept = os.dup(1)
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        os.dup2(nowhere.fileno(), 1)
        logging.disable(logging.ERROR)
        try:
            yield
        finally:
            logging.disable(before)
            os.dup2(kept, 1)
            os.close(kept)


def _order(given: Sequence[int], wanted: Sequence[int]) -> Optional[Tuple[int, ...]]:
    """How to permute a tensor of the caller, channels-first, so that it lies as the graph's."""
    rank = len(given)
    if rank != len(wanted) or rank < 3:
        return None
    last = (0, *range(2, rank), 1)
    moved = [given[d] for d in last]
    # Sizes that fit both ways are pictures as PyTorch has them, which Reef makes channels-last.
    return last if moved[1:] == list(wanted)[1:] and (rank == 4 or list(given)[1:] != list(wanted)[1:]) else None


def _output_orders(model: nn.Module, examples: Tuple[Tensor, ...], quantized: Model) -> List[Optional[Tuple[int, ...]]]:
    was_training = model.training
    model.eval()
    with torch.no_grad():
        outputs = model(*examples)
    model.train(was_training)
    outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    if len(outputs) != len(quantized.outputs):  # an output was split: parts lie as the graph has them
        return []
    orders: List[Optional[Tuple[int, ...]]] = []
    for output, tensor in zip(outputs, quantized.outputs):
        rank = output.dim()
        has = quantized.tensors[tensor].shape
        first = (0, rank - 1, *range(1, rank - 1))  # channels-last to channels-first
        fits = rank >= 3 and len(has) == rank and [has[d] for d in first][1:] == list(output.shape)[1:]
        orders.append(first if fits and (rank == 4 or list(has)[1:] != list(output.shape)[1:]) else None)
    return orders


def _samples(calibration: Samples, source: Model, layout: Layout) -> np.ndarray:
    """Samples as the graph takes them, in one array."""
    if len(source.inputs) != 1:
        raise Error(f"models of {len(source.inputs)} inputs cannot be prepared yet; one input is supported")
    if isinstance(calibration, (np.ndarray, Tensor)):
        batches: List[Any] = [calibration]
    else:
        batches = [batch[0] if isinstance(batch, (tuple, list)) else batch for batch in calibration]
    if not batches:
        raise Error("`calibration` holds no samples")
    arrays = [b.detach().cpu().numpy() if isinstance(b, Tensor) else np.asarray(b) for b in batches]
    samples = np.concatenate(arrays).astype(np.float32)
    wanted = source.tensors[source.inputs[0]].shape
    order = layout.inputs[0] if layout.inputs else _order(samples.shape, wanted)
    if not layout.inputs:
        layout.inputs.append(order)
    samples = samples.transpose(order) if order else samples
    if samples.shape[1:] != tuple(wanted[1:]):
        raise Error(f"samples of shape {list(samples.shape[1:])} do not fit an input of {list(wanted[1:])}")
    return np.ascontiguousarray(samples)


def from_quantized(path: Path, *, ranges: str = "fixed", weight_ranges: str = "fixed") -> QatModel:
    """The same module for a model that is quantized already (.tflite): its codes in PyTorch, to check them or, with scales that are not
    fixed, to train it further."""
    is_final = ranges == weight_ranges == "fixed"
    return QatModel(Model.load(path), None, ranges, weight_ranges, Layout(), 0.99, is_final=is_final)
