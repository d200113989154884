# SPDX-License-Identifier: Apache-2.0
"""Compiling models for the Edge TPU, and asking what would become of them."""

from __future__ import annotations

import ctypes
import json
import os
from ctypes import byref
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from . import _library
from ._library import lib

Path = Union[str, "os.PathLike[str]"]
ProgressCallback = Callable[[str, str, float], None]


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
    options = _library.CompileOptions()
    lib.reef_compile_options_init(byref(options))
    for name, value in given.items():
        if value is not None:
            setattr(options, name, value.encode() if isinstance(value, str) else value)
    return options


def _names(tensors: Optional[Union[str, Sequence[str]]]) -> Optional[str]:
    return tensors if tensors is None or isinstance(tensors, str) else ",".join(tensors)


def compile(models: Union[Path, Sequence[Path]], out_dir: Optional[Path] = None, *, num_segments: int = 1,
            min_runtime_version: Optional[int] = None, intermediate_tensors: Optional[Union[str, Sequence[str]]] = None,
            enable_multiple_subgraphs: bool = False, search_delegate: bool = False, level: Optional[int] = None,
            rewrites: bool = True, verify: Optional[bool] = None, link: Optional[str] = None,
            timeout: Optional[float] = None, progress: Optional[ProgressCallback] = None) -> CompileResult:
    """Compiles quantized .tflite models to _edgetpu.tflite files with Edge TPU machine code.

    Several models share the chip's memory, and stay in it side by side. Everything is written, or nothing.

    Args:
      models: one file, or several that will run on one Edge TPU.
      out_dir: folder for the results; the current one if left out.
      num_segments: cut one model into so many, for a pipeline of Edge TPUs.
      min_runtime_version, intermediate_tensors, enable_multiple_subgraphs, search_delegate: as edgetpu_compiler's.
      level: 0 for the choices of Google's compiler, 1 for Reef's own.
      rewrites: change the model where that makes more of it fit.
      verify: run the result on the virtual device against the chip's arithmetic; None: where that takes a few seconds.
      link: host and link that times are predicted for.
      timeout: seconds for each attempt.
      progress: called as progress(stage, file, done), done from 0 to 1. An exception from it is raised at the end.

    Raises reef.Error with the reason when the models cannot be compiled.
    """
    paths = [models] if isinstance(models, (str, os.PathLike)) else list(models)
    thrown: List[BaseException] = []

    def tell(_user: Any, stage: bytes, file: bytes, done: float) -> None:
        try:
            if not thrown:
                progress(stage.decode(), file.decode("utf-8", "replace"), done)
        except BaseException as error:  # must not pass through C
            thrown.append(error)

    options = _options(
        out_dir=None if out_dir is None else os.fspath(out_dir), num_segments=num_segments,
        min_runtime_version=min_runtime_version, intermediate_tensors=_names(intermediate_tensors),
        several_parts=int(enable_multiple_subgraphs), search=int(search_delegate), level=level, rewrites=int(rewrites),
        verify=None if verify is None else int(verify), link=link, timeout_seconds=timeout,
        progress=None if progress is None else _library.Progress(tell))
    names = (ctypes.c_char_p * max(len(paths), 1))(*[os.fsencode(path) for path in paths])
    text = ctypes.c_void_p()
    status = lib.reef_compile(names, len(paths), byref(options), byref(text))
    report = _library.take_text(text)
    if status:
        _library.fail(status)
    if thrown:
        raise thrown[0]
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
