# SPDX-License-Identifier: Apache-2.0
"""Data pipelines: samples read, decoded, varied and put into batches on threads, ahead of whoever uses them (docs/data.md).

    photos = reef.data.Dataset("shards/*.tar").shuffle(seed=7).resize((96, 96)).flip().colour(0.2).batch(32)
    for epoch in range(10):
        for batch in photos.epoch(epoch):
            step(batch.samples, batch.labels)      # uint8 [32, 96, 96, 3], int64 [32]
    print(photos.counters())

Every method gives another Dataset; nothing is read before somebody iterates. The order is a function of seed and epoch, and every
random choice one of seed, epoch and the sample's number: batches have the same bytes for any number of threads, and a sample is
varied alike in whichever shard it is. A Dataset from files can be pickled: it is its recipe.
"""

from __future__ import annotations

import ctypes
import json
import os
import tempfile
from contextlib import contextmanager
from ctypes import byref, c_double, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _library, _tensors
from ._library import Error, check, lib

Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Batch:
    """Some samples, in order.

    samples: [n, height, width, channels] uint8 for pictures, else [n, ...] of the data's type.
    labels: what is right: an array [n, ...] where all are alike, a list of arrays (boxes) where not, None where nothing is known.
    numbers: of the samples in their source. mixed_with, share: with mixup(), row i is `share` of itself and the rest of row
    mixed_with[i]: its loss is share * loss(labels) + (1 - share) * loss(labels[mixed_with]).
    """
    samples: np.ndarray
    labels: Any
    numbers: np.ndarray
    mixed_with: Optional[np.ndarray] = None
    share: float = 1.0

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True)
class StageCounters:
    """What a stage did in a run. Seconds are measured: `busy` adds up over threads, the others are time without anybody at work."""
    name: str
    items: int
    busy: float
    waited_for_input: float
    waited_for_room: float
    waited_for_thread: float


class Dataset:
    """Samples from a folder of pictures, .npy, .npz, TFRecord files or tar shards, and what becomes of them on their way.

    Args:
      path: what `--data` takes: a folder, a file, "shards/*.tar", "s/{000..009}.tar", or a list of shards.
      array: array, feature or ending that holds the samples. truth: the same for what is right. labels: file of class names.
    """

    def __init__(self, path: Union[Path, Sequence[Path]], *, array: str = "", truth: str = "", labels: Optional[Path] = None):
        paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
        text = ",".join(os.fspath(each) for each in paths)
        if not text:
            raise Error("a Dataset needs a folder, a file or shards")
        self._source: Dict[str, Any] = {"path": text, "array": array, "truth": truth,
                                        "labels": "" if labels is None else os.fspath(labels)}
        self._steps: List[Dict[str, Any]] = []
        self._settings: Dict[str, Any] = {}
        self._functions: List[Callable] = []
        self._give: Optional[Callable[[int], Tuple[Any, Any]]] = None
        self._opened: Optional["_Flow"] = None
        self._counters: Dict[str, Any] = {}

    # ---- Sources ----

    @classmethod
    def _from_function(cls, count: int, give: Callable[[int], Tuple[Any, Any]], has_truth: bool) -> "Dataset":
        made = cls("of the program")
        made._source, made._give = {"count": count, "has_truth": has_truth}, give
        return made

    @classmethod
    def from_arrays(cls, samples: Any, labels: Any = None) -> "Dataset":
        """samples[i] with labels[i]; uint8 [n, height, width, channels] are pictures."""
        samples = np.asarray(samples)
        labels = None if labels is None else np.asarray(labels)
        if samples.ndim < 1 or (labels is not None and len(labels) != len(samples)):
            raise Error(f"samples of shape {samples.shape} and labels of shape {np.shape(labels)} do not go together")
        return cls._from_function(len(samples), lambda i: (samples[i], None if labels is None else labels[i]), labels is not None)

    @classmethod
    def from_torch(cls, dataset: Any) -> "Dataset":
        """A map-style dataset of torch.utils.data: dataset[i] is a sample, or a sample and its label. Pictures (of PIL, or tensors with
        channels first) become uint8 with channels last; floats from 0 to 1 are scaled back. It must be safe to call from several
        threads, or use threads(1)."""
        if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
            raise Error("a torch dataset needs __len__ and __getitem__; put an IterableDataset into a list first")
        if len(dataset) == 0:
            raise Error("the torch dataset is empty")
        return cls._from_function(len(dataset), lambda i: _torch_item(dataset[i]), _torch_item(dataset[0])[1] is not None)

    @classmethod
    def from_tf(cls, dataset: Any, most: int = 1_000_000) -> "Dataset":
        """A finite tf.data.Dataset, unbatched, of samples or (sample, label); it is read once, into memory, in its own order."""
        kept = []
        for item in dataset.as_numpy_iterator():
            if len(kept) == most:
                raise Error(f"the tf.data.Dataset gives more than {most} elements; limit it with take()")
            kept.append(item if isinstance(item, tuple) else (item, None))
        if not kept:
            raise Error("the tf.data.Dataset is empty")
        if any(len(item) != 2 for item in kept):
            raise Error("elements of the tf.data.Dataset must be samples or (sample, label)")
        return cls._from_function(len(kept), lambda i: (np.asarray(kept[i][0]), kept[i][1]), kept[0][1] is not None)

    # ---- Order ----

    def shuffle(self, seed: int = 0) -> "Dataset":
        """Anew in each epoch; a function of seed and epoch."""
        return self._with(step="shuffle", seed=seed)

    def shard(self, index: int, count: int) -> "Dataset":
        """Part `index` of `count`; together the parts are the whole. Behind shuffle() with the same seed they never overlap."""
        return self._with(step="shard", index=index, count=count)

    def take(self, count: int) -> "Dataset":
        return self._with(step="take", count=count)

    def skip(self, count: int) -> "Dataset":
        return self._with(step="skip", count=count)

    # ---- Steps of a sample ----

    def decode(self, channels: int = 3) -> "Dataset":
        """Comes by itself, first and with 3 channels, unless it is named."""
        return self._with(step="decode", channels=channels)

    def resize(self, size: Tuple[int, int], fit: str = "stretch", crop: float = 1.0, pad: int = 114) -> "Dataset":
        """To (width, height). fit: stretch; crop, the middle, of which the shorter side is `crop`; letterbox with `pad` around."""
        return self._with(step="resize", width=size[0], height=size[1], fit=fit, crop=crop, pad=pad)

    def flip(self, probability: float = 0.5) -> "Dataset":
        """Left to right. Boxes move along, here and below."""
        return self._with(step="vary", flip=probability)

    def shift(self, share: float = 0.125) -> "Dataset":
        """By up to this share of the sides; the border is repeated."""
        return self._with(step="vary", shift=share)

    def crop(self, least: float = 0.5) -> "Dataset":
        """A part with this share of the area at least, of a form between 3:4 and 4:3. Resize behind it."""
        return self._with(step="vary", crop=least)

    def colour(self, brightness: float = 0.0, contrast: float = 0.0, saturation: float = 0.0) -> "Dataset":
        return self._with(step="vary", brightness=brightness, contrast=contrast, saturation=saturation)

    def map(self, function: Callable, name: Optional[str] = None) -> "Dataset":
        """function(sample) -> sample, NumPy arrays; from several threads at once, one of which holds Python's lock at a time."""
        other = self._with(step="call", id=len(self._functions), name=name or getattr(function, "__name__", "map"))
        other._functions = self._functions + [function]
        return other

    def cache(self, bytes: int = 1 << 32) -> "Dataset":
        """Keeps in memory what the steps above gave, as far as it fits, for later epochs of this Dataset."""
        return self._with(step="cache", bytes=bytes)

    # ---- Batches ----

    def batch(self, size: int, drop_last: bool = False) -> "Dataset":
        return self._with(step="batch", size=size, drop_last=drop_last)

    def mixup(self, alpha: float = 0.2) -> "Dataset":
        """Pictures of a batch mixed in pairs; the share is drawn from Beta(alpha, alpha) for each batch."""
        return self._with(step="mixup", alpha=alpha)

    def prefetch(self, samples: int) -> "Dataset":
        """At most so many samples are on their way or wait to be taken. Default: four batches."""
        return self._set(ahead=samples)

    def threads(self, count: int) -> "Dataset":
        """Default: one for each core."""
        return self._set(threads=count)

    def variation_seed(self, seed: int) -> "Dataset":
        return self._set(seed=seed)

    # ---- Use ----

    def __len__(self) -> int:
        """Samples of an epoch."""
        return lib.reef_flow_size(self._flow().handle.value)

    def order(self, epoch: int = 0) -> np.ndarray:
        """Numbers of the samples in their source, in the order of an epoch."""
        numbers = np.empty(len(self), np.int64)
        check(lib.reef_flow_order(self._flow().handle.value, epoch, numbers.ctypes.data_as(ctypes.POINTER(c_int64))))
        return numbers

    @property
    def names(self) -> List[str]:
        """Of the samples, in the order of epoch 0: files, keys of shards, numbers of records."""
        names, text = [], c_void_p()
        for number in self.order():
            check(lib.reef_flow_name(self._flow().handle.value, int(number), byref(text)))
            names.append(_library.take_text(text))
        return names

    @property
    def description(self) -> str:
        return self._describe()["description"]

    @property
    def class_names(self) -> Dict[int, str]:
        """Where the data tell them: names of folders."""
        return {int(number): name for number, name in self._describe()["class_names"].items()}

    @property
    def path(self) -> Optional[str]:
        """What `--data` takes; None where samples come from the program."""
        return self._source.get("path")

    def __iter__(self) -> Iterator[Batch]:
        return self.epoch(0)

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of an epoch. An error names the sample; batches before it come first."""
        flow = self._flow()
        value = c_void_p()
        check(lib.reef_flow_start(flow.handle.value, number, byref(value)))
        return self._batches(flow, _library.Handle(value, lib.reef_flow_run_free, flow))

    def _batches(self, flow: "_Flow", run: _library.Handle) -> Iterator[Batch]:
        try:
            while True:
                value = c_void_p()
                status = lib.reef_flow_run_next(run.value, byref(value))
                if status:
                    flow.raise_own()
                    _library.fail(status)
                if not value:
                    return
                yield _batch(_library.Handle(value, lib.reef_batch_free))
        finally:
            text = c_void_p()
            check(lib.reef_flow_run_counters(run.value, byref(text)))
            self._counters.update(json.loads(_library.take_text(text)))

    def counters(self) -> List[StageCounters]:
        """Of the run that ended last."""
        return [StageCounters(each["name"], each["items"], each["busy_s"], each["waited_for_input_s"], each["waited_for_room_s"],
                              each["waited_for_thread_s"]) for each in self._counters.get("stages", [])]

    @property
    def idle_with_work(self) -> float:
        """Seconds of the last run during which a thread slept although a stage had work and room."""
        return self._counters.get("idle_with_work_s", 0.0)

    def to_npz(self, path: Path, limit: Optional[int] = None) -> None:
        """Writes epoch 0 as arrays "images" (pictures) or "x", and "labels": whatever takes `--data` takes it."""
        chosen = self if limit is None else self._with(step="take", count=limit)
        batches = list(chosen._with(step="batch", size=1))
        if not batches:
            raise Error("there are no samples to write")
        if len({batch.samples.shape for batch in batches}) > 1:
            raise Error("samples have different sizes: add resize((width, height))")
        samples = np.concatenate([batch.samples for batch in batches])
        arrays = {"images" if samples.dtype == np.uint8 and samples.ndim == 4 else "x": samples}
        if all(isinstance(batch.labels, np.ndarray) for batch in batches) and len({b.labels.shape for b in batches}) == 1:
            arrays["labels"] = np.concatenate([batch.labels for batch in batches])
        elif any(batch.labels is not None for batch in batches):
            raise Error("samples have labels of different sizes (boxes), which an .npz cannot hold")
        np.savez(path, **arrays)

    # ---- Inside ----

    def _copy(self) -> "Dataset":
        other = Dataset.__new__(Dataset)
        other.__dict__.update(self.__dict__)
        other._opened, other._counters = None, {}
        return other

    def _with(self, **step: Any) -> "Dataset":
        other = self._copy()
        other._steps = self._steps + [step]
        return other

    def _set(self, **settings: Any) -> "Dataset":
        other = self._copy()
        other._settings = {**self._settings, **settings}
        return other

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_opened": None, "_counters": {}}

    def _flow(self) -> "_Flow":
        if self._opened is None:
            self._opened = _Flow({"data": self._source, "steps": self._steps, **self._settings}, self._give, self._functions)
        return self._opened

    def _describe(self) -> Dict[str, Any]:
        text = c_void_p()
        check(lib.reef_flow_describe(self._flow().handle.value, byref(text)))
        return json.loads(_library.take_text(text))


class _Flow:
    """The library's pipeline, and the functions that it calls back."""

    def __init__(self, recipe: Dict[str, Any], give: Optional[Callable], functions: Sequence[Callable]):
        self._give, self._functions = give, list(functions)
        self._thrown: List[BaseException] = []
        self._called = _library.FlowCall(self._call)
        value = c_void_p()
        call = self._called if give is not None or functions else _library.FlowCall()
        check(lib.reef_flow_create(json.dumps(recipe).encode(), call, None, byref(value)))
        self.handle = _library.Handle(value, lib.reef_flow_free)

    def raise_own(self) -> None:
        if self._thrown:
            thrown, self._thrown = self._thrown[0], []
            raise thrown

    def _call(self, _user, step: int, number: int, sample) -> int:
        try:
            if step < 0:
                value, label = self._give(number)
                _set(sample, value)
                if label is not None:
                    _set_label(sample, label)
            else:
                _set(sample, self._functions[step](_get(sample)))
            return 0
        except BaseException as error:  # nothing may be thrown through the library
            self._thrown.append(error)
            lib.reef_sample_fail(sample, f"{type(error).__name__}: {error}".encode())
            return 1


def _get(sample) -> np.ndarray:
    tensor = _library.Tensor()
    check(lib.reef_sample_get(sample, byref(tensor)))
    return np.array(_tensors.memory_of(tensor, None))


def _set(sample, value: Any) -> None:
    array = np.ascontiguousarray(value)
    check(lib.reef_sample_set(sample, byref(_tensors.to_tensor("", array))))


def _set_label(sample, label: Any) -> None:
    values = np.array(label, dtype=np.float64, order="C")
    shape = np.array(values.shape, dtype=np.int64)
    check(lib.reef_sample_set_truth(sample, values.ctypes.data_as(ctypes.POINTER(c_double)),
                                    shape.ctypes.data_as(ctypes.POINTER(c_int64)), values.ndim))


def _torch_item(item: Any) -> Tuple[Any, Any]:
    value, label = item if isinstance(item, (tuple, list)) and len(item) == 2 else (item, None)
    is_tensor = hasattr(value, "detach")
    array = value.detach().cpu().numpy() if is_tensor else np.asarray(value)
    if is_tensor and array.ndim == 3 and array.shape[0] in (1, 3, 4):
        array = array.transpose(1, 2, 0)
        if array.dtype.kind == "f" and array.size and 0 <= array.min() and array.max() <= 1:
            array = np.floor(array * 255 + 0.5).astype(np.uint8)
    if hasattr(label, "detach"):
        label = label.detach().cpu().numpy()
    return array, label


def _batch(handle: _library.Handle) -> Batch:
    count, tensor = lib.reef_batch_count(handle.value), _library.Tensor()
    check(lib.reef_batch_samples(handle.value, byref(tensor)))
    samples = np.asarray(_tensors.memory_of(tensor, handle))
    numbers = np.array(lib.reef_batch_numbers(handle.value)[:count], np.int64)
    truths: List[Optional[np.ndarray]] = []
    for row in range(count):
        check(lib.reef_batch_truth(handle.value, row, byref(tensor)))
        truths.append(np.array(_tensors.memory_of(tensor, handle)) if tensor.data or tensor.rank else None)
    share = c_double()
    mixed = lib.reef_batch_mixed_with(handle.value, byref(share))
    return Batch(samples, _joined(truths), numbers, np.array(mixed[:count], np.int64) if mixed else None, share.value)


def _joined(truths: List[Optional[np.ndarray]]) -> Any:
    if any(truth is None for truth in truths):
        return None if all(truth is None for truth in truths) else truths
    if len({truth.shape for truth in truths}) > 1:
        return truths
    together = np.stack(truths)
    whole = together.astype(np.int64)
    return whole if together.ndim == 1 and (whole == together).all() else together


def vary(pixels: np.ndarray, numbers: Sequence[int], *, seed: int = 0, epoch: int = 0, boxes: Optional[Sequence[np.ndarray]] = None,
         **how: float) -> Tuple[np.ndarray, Optional[List[np.ndarray]]]:
    """Varies pictures in memory, uint8 [n, height, width, channels], as a Dataset does: crop, shift, flip, brightness, contrast,
    saturation, each a function of seed, epoch and the picture's number alone. `boxes`: of each picture [k, 5], centre, size and class
    in fractions; they move along. Returns new pictures and boxes."""
    varied = np.array(pixels, dtype=np.uint8, order="C")
    if varied.ndim != 4 or len(numbers) != len(varied):
        raise Error(f"pictures are uint8 [n, height, width, channels] with a number each, not {np.shape(pixels)} and {len(numbers)}")
    recipe = json.dumps(how).encode()
    moved: Optional[List[np.ndarray]] = None if boxes is None else []
    for i, picture in enumerate(varied):
        own = None if boxes is None else np.array(boxes[i], dtype=np.float64).reshape(-1, 5)
        count = c_size_t(0 if own is None else len(own))
        at = None if own is None else own.ctypes.data_as(ctypes.POINTER(c_double))
        check(lib.reef_vary(picture.ctypes.data, *picture.shape, recipe, seed, epoch, int(numbers[i]), at, byref(count)))
        if moved is not None:
            moved.append(own[:count.value])
    return varied, moved


@contextmanager
def as_path(data: Any) -> Iterator[Any]:
    """`data` as what the library's functions take: a Dataset that only names files is their path, another one becomes a temporary
    .npz; everything else is left as it is."""
    if not isinstance(data, Dataset):
        yield data
    elif data.path is not None and not data._steps and not any(data._source[key] for key in ("array", "truth", "labels")):
        yield data.path
    else:
        with tempfile.TemporaryDirectory(prefix="reef_data_") as folder:
            path = os.path.join(folder, "samples.npz")
            data.to_npz(path)
            yield path
