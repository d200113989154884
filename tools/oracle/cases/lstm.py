# SPDX-License-Identifier: Apache-2.0
"""Long short-term memories: over a sequence, and one step."""

import itertools

import numpy as np

from cases._lstm import Lstm
from onemodel import Model, seeded

FLOAT_TOLERANCE = 2e-6  # the runtimes' vectorized tanh and logistic differ from the C library's in the last bits

# name: what is unusual about the cell; sizes are (batch, inputs, cells, outputs)
CELLS = {
    "plain": dict(sizes=(2, 5, 6, 6)),
    "wide": dict(sizes=(1, 19, 9, 9)),
    "cifg": dict(sizes=(2, 4, 5, 5), cifg=True),
    "peephole": dict(sizes=(2, 5, 6, 6), peephole=True),
    "cifg_peephole": dict(sizes=(1, 5, 6, 6), cifg=True, peephole=True),
    "projection": dict(sizes=(2, 5, 7, 3), projection=True),
    "projection_bias": dict(sizes=(2, 3, 5, 9), projection=True, projection_bias=True),
    "layer_norm": dict(sizes=(2, 5, 8, 8), layer_norm=True),
    "layer_norm_odd": dict(sizes=(1, 3, 7, 7), layer_norm=True),
    "everything": dict(sizes=(2, 5, 8, 3), peephole=True, projection=True, projection_bias=True, layer_norm=True),
    "everything_cifg": dict(sizes=(1, 5, 8, 3), cifg=True, peephole=True, projection=True, layer_norm=True),
}


def sequence_case(name, kind, steps=3, time_major=False, options=None, fields=None, **cell):
    rng = seeded("UNIDIRECTIONAL_SEQUENCE_LSTM " + name)
    m = Model()
    lstm = Lstm(m, rng, kind, **cell)
    order = [steps, lstm.batch] if time_major else [lstm.batch, steps]
    x = lstm.tensor(m.input, "x", order + [lstm.n_input])
    y = lstm.tensor(m.output, "y", order + [lstm.n_output], is_output=True)
    fields = {"fused_activation_function": "TANH", "time_major": time_major, **(fields or {})}
    m.op("UNIDIRECTIONAL_SEQUENCE_LSTM", lstm.operands(x), [y], intermediates=lstm.intermediates(), **fields)
    inputs = [lstm.values(order + [lstm.n_input]) for _ in range(2)]
    options = {"invocations": 2, **(options or {})}
    if kind != "int8":
        options.setdefault("tolerance", FLOAT_TOLERANCE)
    return "UNIDIRECTIONAL_SEQUENCE_LSTM", name, m, inputs, options


def float_cases():
    for cell, settings in CELLS.items():
        yield sequence_case(f"float_{cell}", "float", time_major=cell == "peephole", **settings)
    for activation in ("NONE", "RELU", "RELU_N1_TO_1", "RELU6", "SIGN_BIT"):
        yield sequence_case(f"float_{activation.lower()}", "float", fields={"fused_activation_function": activation},
                            **CELLS["plain"])
    yield sequence_case("float_none_2_9", "float", options={"runtime": "tflite29"},
                        fields={"fused_activation_function": "NONE"}, **CELLS["plain"])
    clips = {"cell_clip": 0.25, "proj_clip": 0.1}
    yield sequence_case("float_clips", "float", fields=clips, **CELLS["projection"])
    for cell, settings in CELLS.items():
        asymmetric = cell in ("wide", "projection_bias", "everything", "cifg")
        yield sequence_case(f"hybrid_{cell}", "hybrid", fields={"asymmetric_quantize_inputs": asymmetric}, **settings)
    yield sequence_case("hybrid_uint8", "hybrid", weight_dtype="uint8", **CELLS["peephole"])
    yield sequence_case("hybrid_clips_time_major", "hybrid", time_major=True, fields=clips, **CELLS["projection"])


def int8_cases(runtime, suffix):
    options = {"runtime": runtime}
    for cell, settings in CELLS.items():
        yield sequence_case(f"int8_{cell}{suffix}", "int8", options=options, **settings)
    for bits in (9, 12, 15):
        yield sequence_case(f"int8_cell_scale_{bits}{suffix}", "int8", options=options, cell_scale_bits=bits,
                            **CELLS["plain"])
    zero_points = dict(hidden_zero_point=-128, output_zero_point=127, input_zero_point=127)
    yield sequence_case(f"int8_extreme_zero_points{suffix}", "int8", options=options, **zero_points, **CELLS["projection"])
    yield sequence_case(f"int8_clips_time_major{suffix}", "int8", time_major=True, options=options,
                        fields={"cell_clip": 0.25, "proj_clip": 0.3}, **CELLS["projection"])
    yield sequence_case(f"int8_everything_time_major{suffix}", "int8", time_major=True, options=options,
                        **CELLS["everything"])
    yield sequence_case(f"int8_saturating{suffix}", "int8", options=options, input_scale=0.5, **CELLS["wide"])


def cases():
    yield from float_cases()
    yield from int8_cases("litert", "")
    yield from int8_cases("tflite29", "_2_9")
