# SPDX-License-Identifier: Apache-2.0
"""Long short-term memories: over a sequence, and one step."""

import numpy as np

from cases._lstm import Lstm
from onemodel import Model, seeded

BASIC_TOLERANCE = 2e-6  # the basic kernel multiplies matrices with a library whose order of additions is not known

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
    return "UNIDIRECTIONAL_SEQUENCE_LSTM", name, m, inputs, options


CELLS_2_9 = ("wide", "cifg_peephole", "projection_bias", "everything")  # where the older release is asked, too
OLD = {"runtime": "tflite29"}


def float_cases():
    clips = {"cell_clip": 0.25, "proj_clip": 0.1}
    for cell, settings in CELLS.items():
        asymmetric = {"asymmetric_quantize_inputs": cell in ("wide", "projection_bias", "everything", "cifg")}
        yield sequence_case(f"float_{cell}", "float", time_major=cell == "peephole", **settings)
        yield sequence_case(f"hybrid_{cell}", "hybrid", fields=asymmetric, **settings)
        if cell in CELLS_2_9:
            yield sequence_case(f"float_{cell}_2_9", "float", options=OLD, time_major=cell == "wide", **settings)
            yield sequence_case(f"hybrid_{cell}_2_9", "hybrid", options=OLD, fields=asymmetric, **settings)
    for activation in ("NONE", "RELU_N1_TO_1", "RELU6", "SIGN_BIT"):
        yield sequence_case(f"float_{activation.lower()}", "float", fields={"fused_activation_function": activation},
                            **CELLS["plain"])
    yield sequence_case("float_none_2_9", "float", options=OLD, fields={"fused_activation_function": "NONE"}, **CELLS["plain"])
    yield sequence_case("float_clips", "float", fields=clips, **CELLS["projection"])
    yield sequence_case("hybrid_uint8", "hybrid", weight_dtype="uint8", **CELLS["peephole"])
    yield sequence_case("hybrid_clips_time_major", "hybrid", time_major=True, fields=clips, **CELLS["projection"])


def int8_cases():
    for cell, settings in CELLS.items():
        yield sequence_case(f"int8_{cell}", "int8", **settings)
        if cell in CELLS_2_9:
            yield sequence_case(f"int8_{cell}_2_9", "int8", options=OLD, **settings)
    for bits in (9, 15):
        yield sequence_case(f"int8_cell_scale_{bits}", "int8", cell_scale_bits=bits, **CELLS["plain"])
    yield sequence_case("int8_saturating", "int8", input_scale=0.5, **CELLS["wide"])
    zero_points = dict(hidden_zero_point=-128, output_zero_point=127, input_zero_point=127)
    for options, suffix in (({}, ""), (OLD, "_2_9")):
        yield sequence_case(f"int8_extreme_zero_points{suffix}", "int8", options=options, **zero_points, **CELLS["projection"])
        yield sequence_case(f"int8_clips_time_major{suffix}", "int8", time_major=True, options=options,
                            fields={"cell_clip": 0.25, "proj_clip": 0.3}, **CELLS["projection"])
        yield sequence_case(f"int8_everything_time_major{suffix}", "int8", time_major=True, options=options,
                            **CELLS["everything"])


def step_case(name, kind, options=None, fields=None, **cell):
    rng = seeded("LSTM " + name)
    m = Model()
    lstm = Lstm(m, rng, kind, **cell)
    x = lstm.tensor(m.input, "x", [lstm.batch, lstm.n_input])
    y = lstm.tensor(m.output, "y", [lstm.batch, lstm.n_output], is_output=True)
    fields = {"fused_activation_function": "TANH", "kernel_type": "FULL", **(fields or {})}
    m.op("LSTM", lstm.operands(x), [y], intermediates=lstm.intermediates(), **fields)
    inputs = [lstm.values([lstm.batch, lstm.n_input]) for _ in range(3)]
    options = {"invocations": 3, **(options or {})}
    return "LSTM", name, m, inputs, options


def basic_case(name, quantized, sizes, weights_zero_point=128, options=None):
    rng = seeded("LSTM " + name)
    batch, n_input, cells = sizes
    depth = n_input + cells
    m = Model()
    if quantized:
        unit = dict(scale=1 / 128, zero_point=128)
        state = dict(scale=1 / 2048, zero_point=0)
        weight_scale = float(np.float32(0.02))
        x = m.input("x", "uint8", [batch, n_input], **unit)
        h = m.variable("h", "uint8", [batch, cells], **unit)
        w = m.const("w", rng.randint(0, 256, [4 * cells, depth]), "uint8", scale=weight_scale, zero_point=weights_zero_point)
        b = m.const("b", rng.randint(-20000, 20000, [4 * cells]), "int32", scale=weight_scale / 128, zero_point=0)
        c = m.variable("c", "int16", [batch, cells], **state)
        y = m.output("y", "uint8", [batch, cells], **unit)
        outputs = [y, m.output("c2", "int16", [batch, cells], **state), m.tensor("j", "uint8", [batch, depth], **unit),
                   m.tensor("g", "int16", [batch, 4 * cells], scale=1 / 4096, zero_point=0)]
        inputs = [rng.randint(0, 256, [batch, n_input]) for _ in range(3)]
    else:
        x, h, c = m.input("x", "float32", [batch, n_input]), *(m.variable(n, "float32", [batch, cells]) for n in "hc")
        w = m.const("w", rng.uniform(-1, 1, [4 * cells, depth]).astype(np.float32))
        b = m.const("b", rng.uniform(-1, 1, [4 * cells]).astype(np.float32))
        outputs = [m.output("y", "float32", [batch, cells]), m.output("c2", "float32", [batch, cells]),
                   m.tensor("j", "float32", [batch, depth]), m.tensor("g", "float32", [batch, 4 * cells])]
        inputs = [rng.uniform(-1, 1, [batch, n_input]).astype(np.float32) for _ in range(3)]
    m.op("LSTM", [x, h, w, b, c], outputs, kernel_type="BASIC", fused_activation_function="TANH", version=2)
    options = {"invocations": 3, **({} if quantized else {"tolerance": BASIC_TOLERANCE}), **(options or {})}
    return "LSTM", name, m, inputs, options


def step_cases():
    for cell in ("plain", "cifg_peephole", "everything"):
        yield step_case(f"float_{cell}", "float", **CELLS[cell])
        yield step_case(f"hybrid_{cell}", "hybrid", **CELLS[cell])
        for runtime, suffix in (("litert", ""), ("tflite29", "_2_9")):
            yield step_case(f"int8_{cell}{suffix}", "int8", options={"runtime": runtime}, **CELLS[cell])
    yield step_case("float_clips", "float", fields={"cell_clip": 0.25, "proj_clip": 0.1}, **CELLS["projection"])
    for label, sizes in {"small": (1, 3, 2), "odd": (3, 5, 7)}.items():
        yield basic_case(f"basic_float_{label}", False, sizes)
        yield basic_case(f"basic_uint8_{label}", True, sizes)
        yield basic_case(f"basic_uint8_{label}_2_9", True, sizes, options={"runtime": "tflite29"})
    yield basic_case("basic_uint8_zero_point_0", True, (2, 4, 8), weights_zero_point=0)


def bidirectional_case(name, kind, *, batch=2, steps=3, n_input=5, cells=(6, 6), aux=None, merge=False,
                       time_major=False, options=None, fields=None, **cell):
    """aux: length of the auxiliary input, or None. (Without weights of its own, the runtime reads uninitialized memory.)"""
    rng = seeded("BIDIRECTIONAL_SEQUENCE_LSTM " + name)
    m = Model()
    outputs = [3 if cell.get("projection") else n for n in cells]
    both = [Lstm(m, rng, kind, (batch, n_input, c, o), prefix=p, **cell) for p, c, o in zip("fb", cells, outputs)]
    front = [steps, batch] if time_major else [batch, steps]
    x = m.input("x", "float32", front + [n_input])
    extra = m.input("a", "float32", front + [aux]) if aux else None
    weights = []
    for lstm in both:
        for w, gate in zip(lstm.input_weights, "ifco"):
            weights.append(lstm.weights(f"{gate}_a", [lstm.n_cell, aux]) if aux and w is not None else None)
    operands = [x, *both[0].operands(x, with_norms=False)[1:18], *both[1].operands(x, with_norms=False)[1:18]]
    for lstm in both:
        operands += [lstm.output_state, lstm.cell_state]
    shapes = [front + [sum(outputs)]] if merge else [front + [o] for o in outputs]
    results = [m.output(f"y{i}", "float32", shape) for i, shape in enumerate(shapes)]
    fields = {"fused_activation_function": "TANH", "merge_outputs": merge, "time_major": time_major, **(fields or {})}
    m.op("BIDIRECTIONAL_SEQUENCE_LSTM", [*operands, extra, *weights], results, **fields)
    draws = []
    for _ in range(2):
        draws.append(rng.uniform(-1, 1, front + [n_input]).astype(np.float32))
        if aux:
            draws.append(rng.uniform(-1, 1, front + [aux]).astype(np.float32))
    return "BIDIRECTIONAL_SEQUENCE_LSTM", name, m, draws, {"invocations": 2, **(options or {})}


def bidirectional_cases():
    for kind in ("float", "hybrid"):
        yield bidirectional_case(f"{kind}_plain", kind)
        yield bidirectional_case(f"{kind}_plain_2_9", kind, options=OLD, cells=(9, 9))
        yield bidirectional_case(f"{kind}_merged_time_major", kind, merge=True, time_major=True)
        yield bidirectional_case(f"{kind}_cifg_peephole", kind, cifg=True, peephole=True)
        yield bidirectional_case(f"{kind}_aux_beside", kind, aux=4,
                                 fields={"asymmetric_quantize_inputs": kind == "hybrid"})
    yield bidirectional_case("float_projection_clips", "float", projection=True, projection_bias=True,
                             fields={"cell_clip": 0.25, "proj_clip": 0.1})


def cases():
    yield from float_cases()
    yield from int8_cases()
    yield from step_cases()
    yield from bidirectional_cases()
