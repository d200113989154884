# SPDX-License-Identifier: Apache-2.0
"""An interpreter with tflite_runtime's interface: change the import, keep the program.

    from reef import Interpreter, load_delegate      # instead of: from tflite_runtime.interpreter import ...

Models compiled for the Edge TPU run on one, real or virtual, with or without a delegate; a delegate only chooses which.
"""

from __future__ import annotations

import ctypes
import enum
import os
import weakref
from ctypes import byref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _library, _tensors
from ._library import Error, check, lib


class Delegate:
    """What load_delegate returns: the choice of an Edge TPU and its clock."""

    def __init__(self, library: str = "", options: Optional[Dict[str, Any]] = None):
        self.library = library
        given = options or {}
        self.device = str(given.get("device", ""))
        self.clock = str(given.get("Performance", ""))
        if not self.device.startswith("virtual"):  # which exists always
            found = ctypes.c_size_t()
            check(lib.reef_device_find(self.device.encode(), byref(found)))


def load_delegate(library: str = "libedgetpu.so.1", options: Optional[Dict[str, Any]] = None) -> Delegate:
    """Takes the place of tflite_runtime's function of this name. The library is not loaded: Reef is built in.

    options: "device": ":0" | "usb" | "usb:1" | "pci" | "pci:0" | a path | "virtual"; "Performance": the clock of a real
    device, "Max" | "High" | "Medium" | "Low". Others of libedgetpu mean nothing here.
    Raises ValueError where there is no such device.
    """
    return Delegate(library, options)


class OpResolverType(enum.Enum):
    """Which kernels tflite_runtime would use. Reef's equal TFLite's reference kernels whichever is named."""
    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


class OpProfile(NamedTuple):
    """An operator's time, measured over all invocations."""
    op: str
    output: str
    calls: int
    total_ms: float


class _Model:
    """A loaded model and what is known of it before anything runs."""

    def __init__(self, path: Optional[str], content: Optional[bytes]):
        value = ctypes.c_void_p()
        if path is not None:
            try:
                check(lib.reef_model_load(os.fsencode(path), byref(value)))
            except _library.NotFoundError as error:
                raise _library.NotFoundError(f"Could not open '{path}'. ({error})") from None
        else:
            data = bytes(content)
            check(lib.reef_model_read(data, len(data), byref(value)))
        self.handle = _library.Handle(value, lib.reef_model_free)
        model = value
        self.inputs = [lib.reef_model_input(model, i) for i in range(lib.reef_model_input_count(model))]
        self.outputs = [lib.reef_model_output(model, i) for i in range(lib.reef_model_output_count(model))]

    def tensor(self, index: int) -> _library.Tensor:
        tensor = _library.Tensor()
        check(lib.reef_model_tensor(self.handle.value, index, byref(tensor)))
        return tensor

    def tensor_count(self) -> int:
        return lib.reef_model_tensor_count(self.handle.value)

    def op_count(self) -> int:
        return lib.reef_model_op_count(self.handle.value)

    def op(self, index: int) -> str:
        return lib.reef_model_op(self.handle.value, index).decode()

    def operands(self, function: Any, op: int) -> List[int]:
        """Tensors of an operator's inputs or outputs; -1: left out."""
        found: List[int] = []
        while (tensor := function(self.handle.value, op, len(found))) != -2:
            found.append(tensor)
        return found

    def signatures(self) -> Dict[str, Dict[str, Dict[str, int]]]:
        """By key: names of inputs and outputs with their tensors."""
        def entries(function, s):
            found, tensor = {}, ctypes.c_int32()
            while (name := function(self.handle.value, s, len(found), byref(tensor))) is not None:
                found[name.decode()] = tensor.value
            return found
        value = self.handle.value
        return {lib.reef_model_signature_key(value, s).decode(): {"inputs": entries(lib.reef_model_signature_input, s),
                                                                  "outputs": entries(lib.reef_model_signature_output, s)}
                for s in range(lib.reef_model_signature_count(value))}


class Interpreter:
    """Runs a .tflite model: plain ones on the CPU, the compiled part of _edgetpu.tflite ones on an Edge TPU: a real one if
    the machine has one, else a virtual one.

    As with tflite_runtime: allocate_tensors(), set_tensor() or tensor(), invoke(), get_tensor(). One interpreter belongs
    to one thread at a time; separate ones are independent, and compute at the same time (the GIL is released).

    Args:
      model_path: the file.
      model_content: or its bytes.
      experimental_delegates: at most one matters: of load_delegate(), it says which Edge TPU.
      num_threads: of the CPU.
      experimental_preserve_all_tensors: get_tensor() also has what operators inside the model computed.
      device: the same as a delegate: None (any, where the model needs one), "cpu", ":0", "usb:1", "pci", "virtual", ...
      clock: of a real device: "max", "high", "medium", "low"; None: the one that it has, else max.
      firmware: file for sticks that wait for it; None: $REEF_FIRMWARE, else an installed libedgetpu.so.1.
      profile: measure every operator; see profile().
      tflite_release: "current" or "2.9": whose kernels to equal where releases differ.
      time_limit: seconds that an invocation may take; 0: any.
      fused_floats: add float products with one rounding: faster on most CPUs, not TFLite's bits.
    Other arguments of tflite_runtime's are taken without effect.
    """

    def __init__(self, model_path: Optional[Union[str, os.PathLike]] = None, model_content: Optional[bytes] = None,
                 experimental_delegates: Optional[Sequence[Any]] = None, num_threads: Optional[int] = None,
                 experimental_op_resolver_type: Any = None, experimental_preserve_all_tensors: bool = False,
                 experimental_disable_delegate_clustering: bool = False,
                 experimental_default_delegate_latest_features: bool = False,
                 experimental_compress_quantization_zero_points: bool = False,
                 experimental_disable_delegate_node_fusion: bool = False,
                 experimental_force_delegate_node_profiling: bool = False, *, device: Optional[str] = None,
                 profile: bool = False, tflite_release: str = "current", time_limit: float = 0.0,
                 fused_floats: bool = False, clock: Optional[str] = None,
                 firmware: Optional[Union[str, os.PathLike]] = None):
        if model_path is None and model_content is None:
            raise ValueError("`model_path` or `model_content` must be specified.")
        if model_path is not None and model_content is not None:
            raise ValueError("Can't both provide `model_path` and `model_content`")
        if tflite_release not in ("current", "2.9"):
            raise ValueError(f"tflite_release is 'current' or '2.9', not {tflite_release!r}")
        if num_threads is not None and (not isinstance(num_threads, int) or num_threads < -1 or num_threads == 0):
            raise ValueError("num_threads is 1 or more (-1 or None: one)")
        for delegate in experimental_delegates or ():
            if not isinstance(delegate, Delegate):
                raise ValueError("delegates of another runtime cannot be used here; reef.load_delegate makes one")
            device = device if device is not None else delegate.device
            clock = clock if clock is not None else delegate.clock
        self._model = _Model(None if model_path is None else os.fspath(model_path), model_content)
        options = _library.Options()
        lib.reef_options_init(byref(options))
        options.device = device.encode() if device else None
        options.threads = max(num_threads or 1, 1)
        options.profile, options.tflite_2_9 = int(profile), int(tflite_release == "2.9")
        options.preserve_all_tensors = int(experimental_preserve_all_tensors)
        options.time_limit_seconds = time_limit
        options.fused_floats = int(fused_floats)
        options.clock = clock.encode() if clock else None
        options.firmware = os.fsencode(firmware) if firmware else None
        value = ctypes.c_void_p()
        check(lib.reef_interpreter_create(self._model.handle.value, byref(options), byref(value)))
        self._handle = _library.Handle(value, lib.reef_interpreter_free)
        self._value = value
        self._outside = {*self._model.inputs, *self._model.outputs}
        self._input_at = {t: i for i, t in enumerate(self._model.inputs)}
        self._arrays: Dict[int, np.ndarray] = {}  # tensors that stay where they are until the next allocate_tensors
        self._views: "weakref.WeakSet[_tensors.Memory]" = weakref.WeakSet()  # that callers hold
        self._moving_views: "weakref.WeakSet[_tensors.Memory]" = weakref.WeakSet()  # of outputs that invoke moves
        self._is_allocated = False
        self._invoke = lib.reef_interpreter_invoke

    # ---- As in tflite_runtime ----

    def allocate_tensors(self) -> None:
        """Infers shapes and gives tensors their memory. Arrays of tensor() must be gone by now."""
        self._require_no_views(self._views, "allocate_tensors")
        self._arrays.clear()
        self._is_allocated = False
        check(lib.reef_interpreter_prepare(self._value))
        self._is_allocated = True

    def invoke(self) -> None:
        """Runs the model. Other Python threads go on meanwhile."""
        if self._moving_views:
            self._require_no_views(self._moving_views, "invoke")
        status = self._invoke(self._value)
        if status:
            _library.fail(status)

    def get_input_details(self) -> List[Dict[str, Any]]:
        """A dictionary for every input: name, index, shape, dtype, quantization, ..."""
        return [_tensors.details_of(self._now(t)) for t in self._model.inputs]

    def get_output_details(self) -> List[Dict[str, Any]]:
        return [_tensors.details_of(self._now(t)) for t in self._model.outputs]

    def get_tensor_details(self, subgraph_index: int = 0) -> List[Dict[str, Any]]:
        """Of all tensors of the model's main subgraph."""
        self._require_main(subgraph_index)
        return [self._get_tensor_details(i) for i in range(self._model.tensor_count())]

    def _get_tensor_details(self, tensor_index: int, subgraph_index: int = 0) -> Dict[str, Any]:
        self._require_main(subgraph_index)
        return _tensors.details_of(self._now(tensor_index))

    def _get_ops_details(self) -> List[Dict[str, Any]]:
        return [self._get_op_details(i) for i in range(self._model.op_count())]

    def _get_op_details(self, op_index: int) -> Dict[str, Any]:
        inputs = self._model.operands(lib.reef_model_op_input, op_index)
        outputs = self._model.operands(lib.reef_model_op_output, op_index)
        types = [[_tensors.DTYPES.get(self._now(t).type, np.void) for t in side if t >= 0] for side in (inputs, outputs)]
        return {"index": int(op_index), "op_name": self._model.op(op_index), "inputs": np.array(inputs, np.int32),
                "outputs": np.array(outputs, np.int32), "operand_types": types[0], "result_types": types[1]}

    def _native_handle(self) -> "Interpreter":
        """What PyCoral hands to its library: here the interpreter itself."""
        return self

    def num_subgraphs(self) -> int:
        return lib.reef_model_subgraph_count(self._model.handle.value)

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copies a value into an input: its type and shape must be the input's."""
        target = self._array(tensor_index)
        if tensor_index not in self._input_at:
            raise ValueError(f"Cannot set tensor {tensor_index}: it is no input of the model")
        value = np.asarray(value)
        if value.dtype != target.dtype or value.shape != target.shape:
            name = self._model.tensor(tensor_index).name.decode("utf-8", "replace")
            if value.dtype != target.dtype:
                raise ValueError(f"Cannot set tensor: Got value of type {value.dtype} but expected type {target.dtype} for "
                                 f"input {self._input_at[tensor_index]}, name: {name}")
            raise ValueError(f"Cannot set tensor: Dimension mismatch. Got shape {value.shape} but expected {target.shape} "
                             f"for input {self._input_at[tensor_index]}, name: {name}")
        np.copyto(target, value)

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> np.ndarray:
        """A copy of an input, an output or a constant; with experimental_preserve_all_tensors of any tensor."""
        self._require_main(subgraph_index)
        return self._array(tensor_index).copy()

    def tensor(self, tensor_index: int) -> Callable[[], np.ndarray]:
        """A function that gives the tensor's own memory as an array, without a copy.

        Drop such arrays before allocate_tensors() and resize_tensor_input().
        """
        return lambda: self._view(tensor_index)

    def resize_tensor_input(self, input_index: int, tensor_size: Sequence[int], strict: bool = False) -> None:
        """allocate_tensors() must follow. strict: only sizes that the model leaves open may change."""
        if input_index not in self._input_at:
            raise ValueError(f"tensor {input_index} is no input of the model")
        self._require_no_views(self._views, "resize_tensor_input")
        sizes = [int(size) for size in tensor_size]
        if strict:
            details = _tensors.details_of(self._model.tensor(input_index))
            signature = list(details["shape_signature"])
            if len(sizes) != len(signature) or any(s not in (-1, n) for s, n in zip(signature, sizes)):
                raise ValueError(f"ResizeInputTensorStrict only allows mutating unknown dimensions: {signature}, not {sizes}")
        dims = (ctypes.c_int32 * max(len(sizes), 1))(*sizes)
        self._arrays.clear()
        self._is_allocated = False
        check(lib.reef_interpreter_resize_input(self._value, self._input_at[input_index], dims, len(sizes)))

    def reset_all_variables(self) -> None:
        """States of recurrent networks to zero."""
        check(lib.reef_interpreter_reset_variables(self._value))

    def get_signature_list(self) -> Dict[str, Dict[str, List[str]]]:
        """Names of inputs and outputs by signature."""
        return {key: {side: list(names) for side, names in signature.items()}
                for key, signature in self._model.signatures().items()}

    def _get_full_signature_list(self) -> Dict[str, Dict[str, Dict[str, int]]]:
        return self._model.signatures()

    def get_signature_runner(self, signature_key: Optional[str] = None) -> "SignatureRunner":
        signatures = self._model.signatures()
        if signature_key is None:
            if len(signatures) != 1:
                raise ValueError(f"the model has {len(signatures)} signatures; name one of {list(signatures)}")
            signature_key = next(iter(signatures))
        if signature_key not in signatures:
            raise ValueError(f"Invalid signature_key provided: {signature_key!r}; there are {list(signatures)}")
        return SignatureRunner(self, signature_key, signatures[signature_key])

    # ---- Reef's own ----

    def device(self) -> Optional[str]:
        """The Edge TPU in use, such as "usb:0"; None where all runs on the CPU."""
        info = _library.DeviceInfo()
        return None if lib.reef_interpreter_device(self._value, byref(info)) else info.selector.decode()

    def device_notes(self) -> List[str]:
        """What went wrong with the device and was mended since the last call; of all its users."""
        text = ctypes.c_void_p()
        check(lib.reef_interpreter_device_notes(self._value, byref(text)))
        try:
            return ctypes.string_at(text.value).decode("utf-8", "replace").splitlines()
        finally:
            lib.reef_string_free(text)

    def profile(self) -> List[OpProfile]:
        """Time of every operator over all invocations (measured); empty unless the interpreter was made to profile."""
        count, entry, result = lib.reef_interpreter_take_profile(self._value), _library.OpProfile(), []
        for i in range(count):
            check(lib.reef_interpreter_profile(self._value, i, byref(entry)))
            result.append(OpProfile(entry.op.decode(), entry.output.decode("utf-8", "replace"), entry.calls,
                                    entry.total_ms))
        return result

    def notes(self) -> List[str]:
        """Sentences about ops whose results deserve attention."""
        found: List[str] = []
        while (note := lib.reef_interpreter_note(self._value, len(found))) is not None:
            found.append(note.decode("utf-8", "replace"))
        return found

    # ---- Inside ----

    def _now(self, index: int) -> _library.Tensor:
        """The tensor as it is now, with its memory where it has a value of its own."""
        if not 0 <= index < self._model.tensor_count():
            raise ValueError(f"Invalid tensor index {index} exceeds max tensor index {self._model.tensor_count() - 1}")
        tensor = _library.Tensor()
        check(lib.reef_interpreter_tensor(self._value, index, byref(tensor)))
        return tensor

    def _require_main(self, subgraph_index: int) -> None:
        if not 0 <= subgraph_index < self.num_subgraphs():
            raise ValueError(f"subgraph_index is out of range: {subgraph_index} for the model, which has "
                             f"{self.num_subgraphs()} subgraphs.")
        if subgraph_index:
            raise _library.UnsupportedError("only tensors of the main subgraph (0) can be looked at")

    def _array(self, index: int) -> np.ndarray:
        """The tensor's memory, for use inside one call."""
        array = self._arrays.get(index)
        if array is not None:
            return array
        tensor = self._readable(index)
        array = np.asarray(_tensors.memory_of(tensor, None))
        if not tensor.is_dynamic:
            self._arrays[index] = array
        return array

    def _view(self, index: int) -> np.ndarray:
        """The same for the caller to keep."""
        tensor = self._readable(index)
        memory = _tensors.memory_of(tensor, (self._handle, self._model))
        self._views.add(memory)
        if tensor.is_dynamic:
            self._moving_views.add(memory)
        array = np.asarray(memory)
        if tensor.is_constant:
            array.flags.writeable = False
        return array

    def _readable(self, index: int) -> _library.Tensor:
        tensor = self._now(index)
        if tensor.data or (self._is_allocated and index in self._outside):
            return tensor
        if not self._is_allocated and self._model.tensor(index).data:  # a constant, which is there before anything else
            return self._model.tensor(index)
        if index in self._outside or not self._is_allocated:
            raise ValueError("Tensor data is null. Run allocate_tensors() first")
        raise ValueError(f"tensor {index} ('{tensor.name.decode('utf-8', 'replace')}') is computed inside the model and not "
                         "kept; make the interpreter with experimental_preserve_all_tensors=True")

    @staticmethod
    def _require_no_views(views: "weakref.WeakSet[_tensors.Memory]", what: str) -> None:
        if len(views):
            raise RuntimeError(f"There is at least 1 reference to internal data in the interpreter in the form of a numpy "
                               f"array or slice. Be sure to only hold the function returned from tensor() if you are using "
                               f"raw data access. ({what}() would move it)")


class SignatureRunner:
    """Runs a model by the names of its signature: runner(name=array, ...) -> {name: array}."""

    def __init__(self, interpreter: Interpreter, key: str, signature: Dict[str, Dict[str, int]]):
        self._interpreter, self._key, self._signature = interpreter, key, signature

    def __call__(self, **inputs: Any) -> Dict[str, np.ndarray]:
        wanted = self._signature["inputs"]
        if set(inputs) != set(wanted):
            raise ValueError(f"signature '{self._key}' takes {sorted(wanted)}, but {sorted(inputs)} are given")
        interpreter = self._interpreter
        for name, value in inputs.items():
            shape = tuple(np.shape(value))
            if _tensors.shape_of(interpreter._now(wanted[name])) != shape:
                interpreter.resize_tensor_input(wanted[name], shape)
        if not interpreter._is_allocated:
            interpreter.allocate_tensors()
        for name, value in inputs.items():
            interpreter.set_tensor(wanted[name], value)
        interpreter.invoke()
        return {name: interpreter.get_tensor(index) for name, index in self._signature["outputs"].items()}

    def get_input_details(self) -> Dict[str, Dict[str, Any]]:
        return {name: self._interpreter._get_tensor_details(i) for name, i in self._signature["inputs"].items()}

    def get_output_details(self) -> Dict[str, Dict[str, Any]]:
        return {name: self._interpreter._get_tensor_details(i) for name, i in self._signature["outputs"].items()}


__all__ = ["Delegate", "Error", "Interpreter", "OpProfile", "OpResolverType", "SignatureRunner", "load_delegate"]
