# SPDX-License-Identifier: Apache-2.0
"""Build small TFLite models by hand, usually of one operator.

Problem: to prove an operator against a runtime we did not write, we need models with exactly the types,
quantization and attributes in question, including ones no converter would emit. Approach: a thin layer
over the generated object API of the TFLite schema; nothing is inferred (no shapes, no scales), so the
model holds what you wrote. Not guaranteed: that the model makes sense. The runtime is asked that.

Usage
-----
    from onemodel import Model
    m = Model()
    x = m.input("x", "int8", [1, 8, 8, 3], scale=0.1, zero_point=-3)
    w = m.const("w", weights, "int8", scale=[.01, .02], axis=0)            # lists: per-axis; zero points default to 0
    b = m.const("b", bias, "int32", scale=[.001, .002], axis=0)
    y = m.output("y", "int8", [1, 8, 8, 2], scale=0.2, zero_point=5)
    m.op("CONV_2D", [x, w, b], [y], padding="SAME", stride_w=1, stride_h=1, fused_activation_function="RELU6")
    data = m.build()                                                       # bytes of the .tflite

  tensors     m.tensor / m.input / m.output / m.const / m.variable return a handle. `m.output(handle)` marks an
              existing tensor as a graph output. dtype is a schema name in any case ("float32", "int4", "string").
              Sub-byte constants are packed for you, `string` constants take lists of bytes/str.
              `shape_signature=[-1, 3]` for dynamic dimensions; `extra={...}` sets other TensorT fields.
              min/max: quant_min=, quant_max=.
  operators   m.op(name, inputs, outputs, **fields). None as an input is an absent optional tensor (-1).
              The options table follows from the name; name another with options="Pool2DOptions".
              Fields: snake_case or camelCase; enum fields take names ("VALID", "RELU6", "int32", "REFLECT").
              The table is written even when no field is given; options=None leaves it out.
              version=N, else the lowest version that the runtime accepts (1, or more where it starts later).
              intermediates=[...], mutating_variable_inputs=[...] as in the schema.
  custom ops  m.op("custom:TFLite_Detection_PostProcess", ..., custom_options=dict or bytes): a dict becomes a flexbuffer.
  subgraphs   g = m.subgraph("body"): same methods as the model (which stands for subgraph 0); g.index for
              m.op("WHILE", ..., cond_subgraph_index=g.index, body_subgraph_index=h.index).
  signatures  m.signature("serving_default", {"x": x}, {"y": y})
  metadata    m.metadata("name", bytes)

Deterministic data for cases: `rng = seeded("some name")`, a numpy RandomState (its streams are frozen by numpy).
"""

import dataclasses
import re
import zlib

import flatbuffers
import numpy as np
from flatbuffers import flexbuffers

try:
    from ai_edge_litert import schema_py_generated as schema
except ImportError:
    try:
        from tensorflow.lite.python import schema_py_generated as schema
    except ImportError:
        from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

HIGHEST_KNOWN_VERSION = 20  # no operator of the schema is beyond version 15 today

# Element types with a numpy counterpart. The rest are handled byte-wise or packed (see encode_elements).
NUMPY_TYPES = {
    "FLOAT32": np.float32, "FLOAT16": np.float16, "FLOAT64": np.float64, "INT8": np.int8, "INT16": np.int16,
    "INT32": np.int32, "INT64": np.int64, "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32,
    "UINT64": np.uint64, "BOOL": np.bool_, "COMPLEX64": np.complex64, "COMPLEX128": np.complex128,
}
SUB_BYTE_BITS = {"INT4": 4, "UINT4": 4, "INT2": 2}

# Operators whose options table does not carry the operator's own name.
OPTIONS_BY_OPERATOR = {
    "AVERAGE_POOL_2D": "Pool2DOptions", "MAX_POOL_2D": "Pool2DOptions", "L2_POOL_2D": "Pool2DOptions",
    "L2_NORMALIZATION": "L2NormOptions", "MAXIMUM": "MaximumMinimumOptions", "MINIMUM": "MaximumMinimumOptions",
    "MEAN": "ReducerOptions", "SUM": "ReducerOptions", "REDUCE_PROD": "ReducerOptions", "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions", "REDUCE_ANY": "ReducerOptions", "REDUCE_ALL": "ReducerOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions", "CONV_3D_TRANSPOSE": "Conv3DOptions",
    "RANDOM_STANDARD_NORMAL": "RandomOptions", "RANDOM_UNIFORM": "RandomOptions", "MULTINOMIAL": "RandomOptions",
}

# Enum of a field, by (table, field) where the name alone is ambiguous, else by field.
ENUM_BY_FIELD = {
    "padding": schema.Padding, "fusedActivationFunction": schema.ActivationFunctionType, "mode": schema.MirrorPadMode,
    "weightsFormat": schema.FullyConnectedOptionsWeightsFormat, "kernelType": schema.LSTMKernelType,
    "combiner": schema.CombinerType, "type": schema.LSHProjectionType, "inDataType": schema.TensorType,
    "outDataType": schema.TensorType, "outType": schema.TensorType, "outputType": schema.TensorType,
    "idxOutType": schema.TensorType, "quantizedBiasType": schema.TensorType, "keyDtype": schema.TensorType,
    "valueDtype": schema.TensorType, "algorithm": schema.RngAlgorithm, "reduceFunction": schema.ReduceWindowFunction,
    "comparisonDirection": schema.StablehloComparisonDirection, "compareType": schema.StablehloComparisonType,
}


def seeded(name):
    """A random source that depends on nothing but the name."""
    return np.random.RandomState(zlib.crc32(name.encode()))


def enum_value(enum, value):
    """Accepts a number or a member's name in any case; schema prefixes such as STABLEHLO_..._EQ may be left off."""
    if not isinstance(value, str):
        return int(value)
    members = {k.upper(): v for k, v in vars(enum).items() if isinstance(v, int)}
    wanted = value.upper()
    if wanted in members:
        return members[wanted]
    matches = [v for k, v in members.items() if k.endswith("_" + wanted)]
    if len(matches) != 1:
        raise ValueError(f"{value!r} is not a member of {enum.__name__}: {sorted(members)}")
    return matches[0]


def enum_name(enum, value):
    return next((k for k, v in vars(enum).items() if isinstance(v, int) and v == value), str(value))


def encode_strings(values):
    """TFLite's string tensor: int32 count, count+1 int32 offsets from the start, then the bytes."""
    raw = [v.encode() if isinstance(v, str) else bytes(v) for v in np.asarray(values, dtype=object).reshape(-1)]
    offsets = np.cumsum([4 * (len(raw) + 2)] + [len(r) for r in raw])
    return np.array([len(raw), *offsets], "<i4").tobytes() + b"".join(raw)


def encode_elements(values, dtype):
    """The little-endian bytes a tensor of this type holds. Sub-byte types: first element in the lowest bits."""
    dtype = dtype.upper()
    if isinstance(values, (bytes, bytearray)):
        return bytes(values)
    if dtype == "STRING":
        return encode_strings(values)
    if dtype in SUB_BYTE_BITS:
        bits = SUB_BYTE_BITS[dtype]
        per_byte = 8 // bits
        flat = np.asarray(values).reshape(-1).astype(np.int64) & ((1 << bits) - 1)
        flat = np.concatenate([flat, np.zeros(-len(flat) % per_byte, np.int64)]).reshape(-1, per_byte)
        return (flat << (bits * np.arange(per_byte))).sum(axis=1).astype(np.uint8).tobytes()
    if dtype == "BFLOAT16":  # round to nearest even; NaN is not handled
        bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()
    if dtype not in NUMPY_TYPES:
        raise ValueError(f"no encoding for element type {dtype}: pass bytes")
    return np.ascontiguousarray(np.asarray(values).astype(NUMPY_TYPES[dtype])).tobytes()


@dataclasses.dataclass(frozen=True)
class Tensor:
    """Handle of a tensor within one subgraph."""
    index: int
    name: str
    dtype: str
    shape: tuple


class AlignedBuffer(schema.BufferT):
    """The schema asks for 16-byte alignment of buffers, which the generated Python writer forgets."""

    def Pack(self, builder):
        if self.data is not None:
            builder.StartVector(1, len(self.data), 16)
            builder.head -= len(self.data)
            builder.Bytes[builder.head:builder.head + len(self.data)] = self.data
            vector = builder.EndVector()
        schema.BufferStart(builder)
        if self.data is not None:
            schema.BufferAddData(builder, vector)
        return schema.BufferEnd(builder)


class Subgraph:
    """Tensors and operators of one subgraph. Made by Model; see the module's usage."""

    def __init__(self, model, index, name):
        self._model = model
        self.index = index
        self.table = schema.SubGraphT(tensors=[], inputs=[], outputs=[], operators=[], name=name)

    def tensor(self, name, dtype, shape, *, data=None, scale=None, zero_point=None, axis=0, quant_min=None,
               quant_max=None, is_variable=False, shape_signature=None, extra=None):
        dtype = dtype.upper()
        table = schema.TensorT(shape=[int(d) for d in shape], type=enum_value(schema.TensorType, dtype), name=name,
                               isVariable=is_variable, shapeSignature=shape_signature, hasRank=True)
        if scale is not None or zero_point is not None or quant_min is not None:
            table.quantization = self._quantization(scale, zero_point, axis, quant_min, quant_max)
        if data is not None:
            table.buffer = self._model._add_buffer(encode_elements(data, dtype))
        for field, value in (extra or {}).items():
            if not hasattr(table, field):
                raise ValueError(f"TensorT has no field {field!r}")
            setattr(table, field, value)
        self.table.tensors.append(table)
        return Tensor(len(self.table.tensors) - 1, name, dtype, tuple(table.shape))

    @staticmethod
    def _quantization(scale, zero_point, axis, quant_min, quant_max):
        def as_list(value, kind):
            return None if value is None else [kind(v) for v in np.atleast_1d(value)]
        scales = as_list(scale, float)
        zero_points = as_list(zero_point, int) or [0] * len(scales or [])
        if scales and len(zero_points) == 1:
            zero_points *= len(scales)
        return schema.QuantizationParametersT(min=as_list(quant_min, float), max=as_list(quant_max, float), scale=scales,
                                              zeroPoint=zero_points, quantizedDimension=axis)

    def input(self, name, dtype, shape, **kwargs):
        handle = self.tensor(name, dtype, shape, **kwargs)
        self.table.inputs.append(handle.index)
        return handle

    def output(self, name_or_handle, dtype=None, shape=None, **kwargs):
        handle = name_or_handle
        if not isinstance(handle, Tensor):
            handle = self.tensor(name_or_handle, dtype, shape, **kwargs)
        self.table.outputs.append(handle.index)
        return handle

    def const(self, name, values, dtype=None, shape=None, **kwargs):
        """Constant tensor; type and shape default to the array's own."""
        if not isinstance(values, (bytes, bytearray)):
            values = np.asarray(values, dtype=object if (dtype or "").upper() == "STRING" else None)
            shape = values.shape if shape is None else shape
            dtype = values.dtype.name.replace("bool_", "bool") if dtype is None else dtype
        return self.tensor(name, dtype, shape, data=values, **kwargs)

    def variable(self, name, dtype, shape, **kwargs):
        return self.tensor(name, dtype, shape, is_variable=True, **kwargs)

    def op(self, name, inputs, outputs, /, *, version=None, options="by name", custom_options=None, intermediates=None,
           mutating_variable_inputs=None, **fields):
        index = lambda handles: [-1 if h is None else h.index for h in handles]
        table = schema.OperatorT(inputs=index(inputs), outputs=index(outputs),
                                 opcodeIndex=self._model._opcode(name, version))
        if intermediates is not None:
            table.intermediates = index(intermediates)
        table.mutatingVariableInputs = mutating_variable_inputs
        if custom_options is not None:
            raw = flexbuffers.Dumps(custom_options) if isinstance(custom_options, dict) else custom_options
            table.customOptions = np.frombuffer(bytes(raw), np.uint8)
        options = options_table_name(name) if options == "by name" else options
        if options is None and fields:
            raise ValueError(f"{name} has no options table, yet fields were given: {sorted(fields)}")
        if options is not None:
            set_options(table, options, fields)
        self.table.operators.append(table)


def options_table_name(operator):
    """The union member that holds this operator's options, or None where the schema has none."""
    if operator in OPTIONS_BY_OPERATOR:
        return OPTIONS_BY_OPERATOR[operator]
    wanted = operator.replace("_", "").lower() + "options"
    for union in (schema.BuiltinOptions, schema.BuiltinOptions2):
        for member in vars(union):
            if member.lower() == wanted:
                return member
    return None


def set_options(operator_table, options_name, fields):
    options = getattr(schema, options_name + "T")()
    known = {f.lower(): f for f in vars(options)}
    for key, value in fields.items():
        field = known.get(key.replace("_", "").lower())
        if field is None:
            raise ValueError(f"{options_name} has no field {key!r}; it has {sorted(known.values())}")
        if isinstance(value, str) and field in ENUM_BY_FIELD:
            value = enum_value(ENUM_BY_FIELD[field], value)
        setattr(options, field, value)
    if hasattr(schema.BuiltinOptions, options_name):
        operator_table.builtinOptionsType = getattr(schema.BuiltinOptions, options_name)
        operator_table.builtinOptions = options
    else:
        operator_table.builtinOptions2Type = getattr(schema.BuiltinOptions2, options_name)
        operator_table.builtinOptions2 = options


class Model(Subgraph):
    """A whole model; its own tensor/op methods build subgraph 0."""

    def __init__(self, name="main"):
        self._codes = []  # OperatorCodeT, in order of first use
        self._undecided = set()  # indices of codes whose version the runtime is asked for
        self._buffers = [AlignedBuffer()]  # buffer 0 is empty by convention
        self._subgraphs = [self]
        self._signatures = []
        self._metadata = []
        super().__init__(self, 0, name)

    def subgraph(self, name):
        graph = Subgraph(self, len(self._subgraphs), name)
        self._subgraphs.append(graph)
        return graph

    def signature(self, key, inputs, outputs, subgraph_index=0):
        maps = lambda named: [schema.TensorMapT(name=n, tensorIndex=h.index) for n, h in named.items()]
        self._signatures.append(schema.SignatureDefT(inputs=maps(inputs), outputs=maps(outputs), signatureKey=key,
                                                     subgraphIndex=subgraph_index))

    def metadata(self, name, raw):
        self._metadata.append(schema.MetadataT(name=name, buffer=self._add_buffer(raw)))

    def _add_buffer(self, raw):
        self._buffers.append(AlignedBuffer(data=raw))
        return len(self._buffers) - 1

    def _opcode(self, name, version):
        custom = name[len("custom:"):] if name.startswith("custom:") else None
        builtin = schema.BuiltinOperator.CUSTOM if custom else getattr(schema.BuiltinOperator, name)
        for i, code in enumerate(self._codes):
            same = code.builtinCode == builtin and code.customCode == custom
            if same and ((i in self._undecided) if version is None else code.version == version):
                return i
        if version is None and not custom:
            self._undecided.add(len(self._codes))
        self._codes.append(schema.OperatorCodeT(builtinCode=builtin, deprecatedBuiltinCode=min(builtin, 127),
                                                customCode=custom, version=version or 1))
        return len(self._codes) - 1

    def _pack(self):
        model = schema.ModelT(version=3, operatorCodes=self._codes, subgraphs=[g.table for g in self._subgraphs],
                              description="", buffers=self._buffers, signatureDefs=self._signatures or None,
                              metadata=self._metadata or None)
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())

    def build(self):
        """The model's bytes, with undecided operator versions raised until the runtime knows the operator."""
        data = self._pack()
        while self._undecided:
            refused = refused_operator(data)
            code = next((c for i, c in enumerate(self._codes) if i in self._undecided
                         and enum_name(schema.BuiltinOperator, c.builtinCode) == refused), None)
            if code is None or code.version >= HIGHEST_KNOWN_VERSION:
                break  # accepted, or refused for a reason that a version cannot cure
            code.version += 1
            data = self._pack()
        self._undecided.clear()
        return data


def refused_operator(data):
    """Name of the builtin operator whose version the reference resolver does not have, or None."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    try:
        Interpreter(model_content=data, num_threads=1, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    except (ValueError, RuntimeError) as error:
        match = re.search(r"Didn't find op for builtin opcode '(\w+)' version", str(error))
        return match.group(1) if match else None
    return None
