# SPDX-License-Identifier: Apache-2.0
"""New classes from a handful of pictures: only the last layer is learned (docs/learn.md).

    result = reef.learn.imprint("model.tflite", "pictures", "mine.tflite")    # pictures/ has a folder for each class
    print(result.accuracy, result.class_names)

imprint() and softmax() go from files to files, as the command `reef learn` does. ImprintingEngine and train_softmax()
work on embeddings that you computed yourself.
"""

from __future__ import annotations

import ctypes
import json
import os
from ctypes import byref, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import numpy as np

from . import _library
from ._library import lib
from .data import as_path

Path = Union[str, "os.PathLike[str]"]
ProgressCallback = Callable[[int, int], None]


@dataclass(frozen=True)
class LearnResult:
    """What was learned and written."""
    model: str              # file
    labels: str             # file with a class name a line
    report: Dict[str, Any]  # everything `reef learn --json` says (docs/json.md)

    @property
    def class_names(self) -> List[str]:
        return [each["name"] for each in self.report["classes"]]

    @property
    def accuracy(self) -> Optional[float]:
        """Share of right answers on pictures that were not learned from; None if there were none."""
        return self.report["test"]["accuracy"] if self.report["test"] else None

    @property
    def notes(self) -> List[str]:
        return self.report["notes"]


def _learn(method: str, progress: Optional[ProgressCallback], **request: Any) -> LearnResult:
    with as_path(request.get("data")) as path:
        request["data"] = path
        return _learn_from(method, progress, request)


def _learn_from(method: str, progress: Optional[ProgressCallback], request: Dict[str, Any]) -> LearnResult:
    request = {name: os.fspath(value) if isinstance(value, os.PathLike) else value
               for name, value in request.items() if value is not None}
    thrown: List[BaseException] = []

    def tell(_user, done, total):
        try:
            if progress is not None and not thrown:
                progress(done, total)
        except BaseException as error:  # raised below: nothing may be thrown through the library
            thrown.append(error)

    text = c_void_p()
    _library.check(lib.reef_learn(json.dumps({"method": method, **request}).encode(), _library.LearnProgress(tell), None,
                                  byref(text)))
    report = json.loads(_library.take_text(text))
    if thrown:
        raise thrown[0]
    return LearnResult(report["output"], report["labels"], report)


def imprint(model: Path, data: Path, output: Path, *, keep_classes: bool = False, resume: bool = False,
            test: Optional[Path] = None, hold_back: Optional[float] = None, compile: bool = False,
            device: Optional[str] = None, plot: Optional[Path] = None, progress: Optional[ProgressCallback] = None,
            **options: Any) -> LearnResult:
    """Weight imprinting: a class's weights are the mean direction of its embeddings.

    Args:
      model: a classifier, an embedding extractor or a learned model; compiled for the Edge TPU or not.
      data: folder with a sub-folder of pictures for each class, an .npz file, shards, or a reef.data.Dataset.
      output: the learned model; class names go to ..._labels.txt beside it.
      keep_classes: the model's classes stay. resume: and those of the same name are trained further.
      test, hold_back: what to measure with: data of its own, or this share of `data`.
      compile: compile the extractor for the Edge TPU first. device: "cpu" or "virtual".
      mirror (in options): "on", "off" or "auto": mirrored pictures are learned from as well, where they show the same.
      plot: an HTML page with accuracy against the number of pictures.
      progress: called as progress(embedded, all). An exception from it is raised at the end.
      options: others of `reef learn imprint`, with _ for -.
    """
    return _learn("imprint", progress, model=model, data=data, output=output, keep_classes=keep_classes, resume=resume,
                  test=test, hold_back=hold_back, compile=compile, device=device, plot=plot, **options)


def softmax(model: Path, data: Path, output: Path, *, l2: Optional[float] = None, solver: Optional[str] = None,
            balanced: bool = False, test: Optional[Path] = None, hold_back: Optional[float] = None,
            compile: bool = False, device: Optional[str] = None, plot: Optional[Path] = None,
            progress: Optional[ProgressCallback] = None, **options: Any) -> LearnResult:
    """Softmax regression on all pictures of all classes; better than imprinting where there are many.

    Args: as imprint(), and
      l2: strength of regularization; None: tried out by cross-validation.
      solver: "lbfgs" or "sgd". balanced: classes count alike, however many pictures they have.
    """
    return _learn("softmax", progress, model=model, data=data, output=output, l2=l2, solver=solver, balanced=balanced,
                  test=test, hold_back=hold_back, compile=compile, device=device, plot=plot, **options)


def _floats(values: Any) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.float32)


def _pointer(array: np.ndarray, kind=ctypes.c_float):
    return array.ctypes.data_as(ctypes.POINTER(kind))


def _content(model: Union[Path, bytes]) -> bytes:
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    with open(model, "rb") as file:
        return file.read()


class ImprintingEngine:
    """Imprinting one embedding at a time. `model`: a file, or its content."""

    def __init__(self, model: Union[Path, bytes], keep_classes: bool = False):
        content, engine = _content(model), c_void_p()
        _library.check(lib.reef_imprinting_create(content, len(content), int(keep_classes), byref(engine)))
        self._handle = _library.Handle(engine, lib.reef_imprinting_free)

    @property
    def embedding_dim(self) -> int:
        """Numbers in an embedding."""
        return lib.reef_imprinting_dimension(self._handle.value)

    @property
    def num_classes(self) -> int:
        return lib.reef_imprinting_class_count(self._handle.value)

    @property
    def class_names(self) -> List[str]:
        return [lib.reef_imprinting_class_name(self._handle.value, i).decode() for i in range(self.num_classes)]

    def set_class_name(self, class_id: int, name: str) -> None:
        _library.check(lib.reef_imprinting_set_class_name(self._handle.value, class_id, name.encode()))

    def train(self, embedding: Any, class_id: int) -> None:
        """Adds one embedding to a class that was learned by imprinting, or, with class_id num_classes, to a new one."""
        row = _floats(embedding).ravel()
        _library.check(lib.reef_imprinting_train(self._handle.value, _pointer(row), row.size, class_id))

    def _model(self, function) -> bytes:
        content, size = c_void_p(), c_size_t()
        _library.check(function(self._handle.value, byref(content), byref(size)))
        return _library.take_bytes(content, size)

    def serialize_extractor_model(self) -> bytes:
        """The part of the model that computes embeddings."""
        return self._model(lib.reef_imprinting_extractor)

    def serialize_model(self) -> bytes:
        """The whole model with what was learned so far."""
        return self._model(lib.reef_imprinting_model)


def train_softmax(embeddings: Any, labels: Any, num_classes: int, l2: Optional[float] = None) -> Tuple[np.ndarray, np.ndarray]:
    """Weights [classes, numbers] and biases [classes] of softmax regression."""
    rows, numbers = _floats(embeddings), np.ascontiguousarray(labels, dtype=np.int32)
    if rows.ndim != 2 or numbers.shape != rows.shape[:1]:
        raise _library.Error(f"embeddings of shape {rows.shape} and labels of shape {numbers.shape} do not go together")
    weights, biases = np.empty((num_classes, rows.shape[1]), np.float32), np.empty(num_classes, np.float32)
    _library.check(lib.reef_softmax_train(_pointer(rows), _pointer(numbers, ctypes.c_int32), rows.shape[0], rows.shape[1],
                                          num_classes, -1.0 if l2 is None else l2, _pointer(weights), _pointer(biases)))
    return weights, biases


def append_softmax(extractor: Union[Path, bytes], weights: Any, biases: Any, embeddings: Any) -> bytes:
    """The extractor with FULLY_CONNECTED and SOFTMAX behind it. The scores' 8-bit range is that of `embeddings`."""
    content, layer, offsets, rows = _content(extractor), _floats(weights), _floats(biases), _floats(embeddings)
    if layer.ndim != 2 or rows.ndim != 2 or rows.shape[1] != layer.shape[1] or offsets.shape != layer.shape[:1]:
        raise _library.Error(f"weights of shape {layer.shape}, biases of shape {offsets.shape} and embeddings of shape "
                             f"{rows.shape} do not go together")
    result, size = c_void_p(), c_size_t()
    _library.check(lib.reef_softmax_model(content, len(content), _pointer(layer), _pointer(offsets), layer.shape[0],
                                          layer.shape[1], _pointer(rows), rows.shape[0], byref(result), byref(size)))
    return _library.take_bytes(result, size)
