# SPDX-License-Identifier: Apache-2.0
"""Converting, quantizing and compiling models, and asking what of them would run on the Edge TPU."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import tempfile
from ctypes import byref
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Union

import numpy as np

from . import _library
from ._library import lib
from .data import Dataset, as_path

Path = Union[str, "os.PathLike[str]"]
ProgressCallback = Callable[[str, str, float], None]
Samples = Union[None, Path, np.ndarray, Sequence[np.ndarray], Dataset]


@dataclass(frozen=True)
class CompileResult:
    """What compile() wrote."""
    files: List[str]        # the _edgetpu.tflite files, in the order of the models or segments
    report: Dict[str, Any]  # everything `reef compile --json` says (docs/json.md)


@dataclass(frozen=True)
class CheckResult:
    """What check() found."""
    text: str               # the report for people that `reef check` prints
    report: Dict[str, Any]  # everything `reef check --json` says (docs/json.md)

    @property
    def all_on_edge_tpu(self) -> bool:
        """No operator stays on the CPU."""
        return self.report["operators"] == self.report["operators_on_edgetpu"]

    def __str__(self) -> str:
        return self.text


def _options(**given: Any) -> _library.CompileOptions:
    return _filled(_library.CompileOptions, lib.reef_compile_options_init, given)


def _filled(kind: Any, init: Any, given: Dict[str, Any]) -> Any:
    """Options with their defaults, but for what is given."""
    options = kind()
    init(byref(options))
    for name, value in given.items():
        if value is not None:
            setattr(options, name, value.encode() if isinstance(value, str) else value)
    return options


class _Teller:
    """A progress callback for C: what the Python function raises is kept, and raised by finish()."""

    def __init__(self, progress: Optional[ProgressCallback]):
        self._progress, self._thrown = progress, None
        self.callback = None if progress is None else _library.Progress(self._tell)

    def _tell(self, _user: Any, stage: bytes, file: bytes, done: float) -> None:
        try:
            if self._thrown is None:
                self._progress(stage.decode(), file.decode("utf-8", "replace"), done)
        except BaseException as error:  # must not pass through C
            self._thrown = error

    def finish(self, status: int) -> None:
        if self._thrown is not None:
            raise self._thrown
        _library.check(status)


def _names(tensors: Optional[Union[str, Sequence[str]]]) -> Optional[str]:
    return tensors if tensors is None or isinstance(tensors, str) else ",".join(tensors)


@contextlib.contextmanager
def _sample_path(data: Samples) -> Iterator[Optional[str]]:
    """The file or folder that holds the samples; arrays and what a Dataset gives are in a temporary file meanwhile."""
    if isinstance(data, Dataset):
        with as_path(data) as path:
            yield path
    elif isinstance(data, np.ndarray) or (isinstance(data, (list, tuple)) and data):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "samples.npy")
            np.save(path, np.asarray(data))
            yield path
    else:
        yield None if data is None else os.fspath(data)


def _convert_options(input_shapes: Optional[Dict[str, Sequence[int]]], input_values: Optional[Dict[str, Sequence[float]]],
                     keep_nchw: Sequence[str], **others: Any) -> _library.ConvertOptions:
    shapes = ";".join(f"{name}:{','.join(str(int(n)) for n in sizes)}" for name, sizes in (input_shapes or {}).items())
    values = ";".join(f"{name}:{','.join(repr(float(n)) for n in numbers)}" for name, numbers in (input_values or {}).items())
    return _filled(_library.ConvertOptions, lib.reef_convert_options_init,
                   {"input_shapes": shapes or None, "keep_nchw": ",".join(keep_nchw) or None, "input_values": values or None,
                    **others})


def _quantize_options(path: Optional[str], keep_float: Sequence[str], threads: Optional[int],
                      **others: Any) -> _library.QuantizeOptions:
    return _filled(_library.QuantizeOptions, lib.reef_quantize_options_init,
                   {"data": path, "keep_float": ",".join(keep_float) or None, "threads": threads or os.cpu_count() or 1,
                    **others})


def compile(models: Union[Path, Sequence[Path]], out_dir: Optional[Path] = None, *, data: Samples = None,
            preprocess: Optional[str] = None, io: str = "int8", calibration: str = "auto", arrays: Optional[str] = None,
            keep_float: Sequence[str] = (), full_integer: bool = False, recover: bool = True, limit: int = 0,
            held_back: Optional[int] = None, threads: Optional[int] = None,
            input_shapes: Optional[Dict[str, Sequence[int]]] = None,
            input_values: Optional[Dict[str, Sequence[float]]] = None, keep_nchw: Sequence[str] = (),
            num_segments: int = 1, min_runtime_version: Optional[int] = None,
            intermediate_tensors: Optional[Union[str, Sequence[str]]] = None, enable_multiple_subgraphs: bool = False,
            search_delegate: bool = False, level: Optional[int] = None, rewrites: bool = True,
            verify: Optional[bool] = None, link: Optional[str] = None, timeout: Optional[float] = None,
            progress: Optional[ProgressCallback] = None) -> CompileResult:
    """Compiles models to _edgetpu.tflite files with Edge TPU machine code.

    Quantized .tflite files are compiled as they are; float ones and .onnx files are quantized first, with `data`:

        reef.compile("model.onnx", data="photos", preprocess="imagenet")

    Several models share the chip's memory, and stay in it side by side. Everything is written, or nothing: the compiled
    files, their logs, and "<stem>_int8.tflite" of every model that was quantized.

    Args:
      models: one file, or several that will run on one Edge TPU.
      out_dir: folder for the results; the current one if left out. For one model also the compiled file itself, a name
        that ends with .tflite.
      data, preprocess, io, calibration, arrays, keep_float, full_integer, recover, limit, held_back, threads: how models
        that are not quantized yet are quantized, as quantize()'s.
      input_shapes, input_values, keep_nchw: what an ONNX file leaves open, as convert()'s.
      num_segments: cut one model into so many, for a pipeline of Edge TPUs.
      min_runtime_version, intermediate_tensors, enable_multiple_subgraphs, search_delegate: as edgetpu_compiler's.
      level: 0 for the choices of Google's compiler, 1 for Reef's own, 2 for faster ones that take more memory.
      rewrites: change the model where that makes more of it fit.
      verify: run the result on the virtual device against the chip's arithmetic; None: where that takes a few seconds.
      link: host and link that times are predicted for.
      timeout: seconds for each attempt.
      progress: called as progress(stage, file, done), done from 0 to 1: within each phase of quantizing, where the file
        is "", then over all of compiling. An exception from it is raised at the end.

    Raises reef.Error with the reason when the models cannot be compiled.
    """
    paths = [models] if isinstance(models, (str, os.PathLike)) else list(models)
    teller = _Teller(progress)
    loading = _convert_options(input_shapes, input_values, keep_nchw)
    names = (ctypes.c_char_p * max(len(paths), 1))(*[os.fsencode(path) for path in paths])
    text = ctypes.c_void_p()
    with _sample_path(data) as path:
        quantizing = _quantize_options(path, keep_float, threads, preprocess=preprocess, io=io, calibration=calibration,
                                       arrays=arrays, full_integer=int(full_integer), recover=int(recover), limit=limit,
                                       held_back=held_back, progress=teller.callback)
        options = _options(
            out_dir=None if out_dir is None else os.fspath(out_dir), num_segments=num_segments,
            min_runtime_version=min_runtime_version, intermediate_tensors=_names(intermediate_tensors),
            several_parts=int(enable_multiple_subgraphs), search=int(search_delegate), level=level,
            rewrites=int(rewrites), verify=None if verify is None else int(verify), link=link, timeout_seconds=timeout,
            progress=teller.callback, convert=ctypes.addressof(loading), quantize=ctypes.addressof(quantizing))
        status = lib.reef_compile(names, len(paths), byref(options), byref(text))
    report = _library.take_text(text)
    teller.finish(status)
    parsed = json.loads(report)
    return CompileResult([file["output"] for file in parsed["files"]], parsed)


def check(model: Path, *, min_runtime_version: Optional[int] = None,
          intermediate_tensors: Optional[Union[str, Sequence[str]]] = None, enable_multiple_subgraphs: bool = False,
          rewrites: bool = True, link: Optional[str] = None) -> CheckResult:
    """Says for every operator of a model whether the Edge TPU runs it, and if not, why and what to do."""
    options = _options(min_runtime_version=min_runtime_version, intermediate_tensors=_names(intermediate_tensors),
                       several_parts=int(enable_multiple_subgraphs), rewrites=int(rewrites), link=link)
    report, text = ctypes.c_void_p(), ctypes.c_void_p()
    _library.check(lib.reef_check(os.fsencode(model), byref(options), byref(report), byref(text)))
    return CheckResult(_library.take_text(text), json.loads(_library.take_text(report)))


def convert(model: Path, output: Path, *, input_shapes: Optional[Dict[str, Sequence[int]]] = None,
            input_values: Optional[Dict[str, Sequence[float]]] = None, keep_nchw: Sequence[str] = (), simplify: bool = True,
            keep_qdq: bool = False, io: str = "int8", pad_nms: bool = False) -> Dict[str, Any]:
    """Makes a .tflite file of an ONNX model, channels-last.

    A model that carries scales (QDQ) becomes integer operators with these.

    Args:
      model, output: the files.
      input_shapes: sizes of inputs that the file leaves open, by name.
      input_values: inputs with a fixed value, by name; they are no inputs of the result.
      keep_nchw: names of inputs and outputs that stay channels-first.
      simplify: make the imported graph small.
      keep_qdq: of a model that carries scales, leave QUANTIZE and DEQUANTIZE as they are.
      io: type of inputs and outputs that have scales: "int8", "uint8" or "float32".
      pad_nms: NonMaxSuppression gives a result of fixed size, unused rows -1, and a count.
    Returns a dictionary: output, inputs, outputs, notes.
    """
    options = _convert_options(input_shapes, input_values, keep_nchw, simplify=int(simplify), keep_qdq=int(keep_qdq), io=io,
                               pad_nms=int(pad_nms))
    text = ctypes.c_void_p()
    _library.check(lib.reef_convert(os.fsencode(model), os.fsencode(output), byref(options), byref(text)))
    return json.loads(_library.take_text(text))


def quantize(model: Path, output: Path, data: Samples = None, *,
             preprocess: Optional[str] = None, mode: str = "int8", io: str = "int8", calibration: str = "auto",
             arrays: Optional[str] = None, keep_float: Sequence[str] = (), full_integer: bool = False, recover: bool = True,
             limit: int = 0, held_back: Optional[int] = None, threads: Optional[int] = None,
             progress: Optional[ProgressCallback] = None) -> Dict[str, Any]:
    """Makes an integer model of a float one (.tflite or .onnx).

    Args:
      model, output: the files.
      data: samples to calibrate with, 100 to 500 typical ones: a folder of pictures, an .npz or .npy file, or an array whose
        first dimension counts samples (uint8: pixels, which are preprocessed; others are taken as they are).
      preprocess: how pictures become numbers, such as "mean=127.5,std=127.5" or "unit"; stored in the result.
      mode: "int8" (for the Edge TPU), "int16x8", "dynamic" (weights only) or "float16".
      io: type of inputs and outputs: "int8", "uint8" or "float32".
      calibration: ranges by "auto" (measured), "minmax", "moving-average", "percentile", "entropy" or "mse".
      arrays, limit, held_back, keep_float, full_integer: as `reef quantize`'s options.
      recover: try what may win accuracy back, and keep what does.
      progress: called as progress(phase, "", done), done from 0 to 1 within the phase.
    Returns what `reef quantize --json` says (docs/json.md).
    """
    teller = _Teller(progress)
    with _sample_path(data) as path:
        options = _quantize_options(path, keep_float, threads, arrays=arrays, preprocess=preprocess,
                                    calibration=calibration, mode=mode, io=io, limit=limit, held_back=held_back,
                                    full_integer=int(full_integer), recover=int(recover), progress=teller.callback)
        text = ctypes.c_void_p()
        status = lib.reef_quantize(os.fsencode(model), os.fsencode(output), byref(options), byref(text))
    report = _library.take_text(text)
    teller.finish(status)
    return json.loads(report)
