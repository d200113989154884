# SPDX-License-Identifier: Apache-2.0
"""FULLY_CONNECTED, BATCH_MATMUL and EMBEDDING_LOOKUP in every type combination that the reference kernels know."""

import numpy as np

from cases._scales import fit, limits, random_quantized
from onemodel import Model, seeded

ACTIVATIONS = ["NONE", "RELU", "RELU_N1_TO_1", "RELU6"]
WEIGHT_LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "int2": (-2, 1), "int16": (-32768, 32767)}


def fully_connected(name, shape, units, depth=None, *, dtype="float32", weights="float32", per_channel=False,
                    bias="float32", activation="NONE", weight_zero=0, zeros=None, output=None, fields=None, zero_input=False):
    rng = seeded(f"FULLY_CONNECTED {name}")
    return ("FULLY_CONNECTED", name, *draw_fully_connected(
        rng, shape, units, depth or shape[-1], dtype, weights, per_channel, bias, activation, weight_zero, zeros,
        output or dtype, dict(fields or {}), zero_input))


def draw_fully_connected(rng, shape, units, depth, dtype, weight_type, per_channel, bias_type, activation, weight_zero,
                         zeros, output_type, fields, zero_input):
    m = Model()
    rows = int(np.prod(shape)) // depth
    out_shape = [*shape[:-1], units] if fields.get("keep_num_dims") else [rows, units]
    fields["fused_activation_function"] = activation
    if weight_type == "float32":
        w = rng.uniform(-1, 1, (units, depth)).astype(np.float32)
        weights = m.const("w", w)
    else:
        low, high = WEIGHT_LIMITS[weight_type]
        if dtype == "float32" and weight_type == "int8":
            low = -127  # the runtime's vector code negates -128 wrongly
        w = rng.randint(low, high + 1, (units, depth))
        scales = rng.uniform(0.002, 0.02, units if per_channel else 1)
    if dtype == "float32":
        x = m.input("x", "float32", shape)
        if weight_type != "float32":
            weights = m.const("w", w, weight_type, scale=scales, zero_point=0)
        b = m.const("b", rng.uniform(-1, 1, units).astype(np.float32)) if bias_type else None
        y = m.output("y", "float32", out_shape)
        m.op("FULLY_CONNECTED", [x, weights, b], [y], **fields)
        values = rng.uniform(-2, 2, shape).astype(np.float32)
        return m, [values * 0 if zero_input else values]

    zero_in, zero_out = zeros or ((0, None) if dtype == "int16" else (int(rng.randint(*limits(dtype))), None))
    values = random_quantized(rng, dtype, shape)
    sums = (values.astype(np.int64).reshape(rows, depth) - zero_in) @ (w.astype(np.int64) - weight_zero).T
    bias = (rng.uniform(-1, 1, units) * (sums.std() + 1) - sums.mean(axis=0)).astype(np.int64)
    if bias_type:
        sums = sums + bias
    input_scale = float(np.float32(rng.uniform(0.005, 0.1)))
    scales = np.float32(scales * 3 / max(np.sqrt(((sums * input_scale * scales) ** 2).mean()), input_scale))
    scale, fitted = fit(sums * input_scale * scales, output_type)
    zero_out = fitted if zero_out is None else zero_out
    x = m.input("x", dtype, shape, scale=input_scale, zero_point=zero_in)
    weights = m.const("w", w, weight_type, scale=scales, zero_point=weight_zero)
    b = m.const("b", bias, bias_type, scale=input_scale * scales) if bias_type else None
    y = m.output("y", output_type, out_shape, scale=scale, zero_point=zero_out)
    m.op("FULLY_CONNECTED", [x, weights] if fields.pop("two_inputs", False) else [x, weights, b], [y], **fields)
    return m, [values]


def fully_connected_cases():
    fc = fully_connected
    yield fc("float_one_row", [1, 7], 5)
    yield fc("float_rows", [5, 8], 17)
    yield fc("float_flattened", [2, 2, 3, 4], 6, 12)
    yield fc("float_scalar_depth", [6], 3, 1)
    yield fc("float_keep_dims", [2, 3, 4], 5, fields={"keep_num_dims": True})
    yield fc("float_no_bias", [2, 9], 4, bias=None)
    yield fc("float_no_rows", [0, 4], 3)
    for activation in ACTIVATIONS[1:]:
        yield fc(f"float_{activation.lower()}", [2, 6], 5, activation=activation)
    eight = dict(dtype="int8", weights="int8", bias="int32")
    old = dict(dtype="uint8", weights="uint8", bias="int32", weight_zero=117)
    for label, kind in (("int8", eight), ("uint8", old)):
        yield fc(f"{label}_one_row", [1, 16], 10, **kind)
        yield fc(f"{label}_odd", [3, 13], 7, **kind)
        yield fc(f"{label}_flattened", [2, 1, 3, 4], 5, 6, **kind)
        yield fc(f"{label}_keep_dims", [2, 2, 9], 6, fields={"keep_num_dims": True}, **kind)
        yield fc(f"{label}_no_bias", [2, 9], 6, **{**kind, "bias": None})
        yield fc(f"{label}_two_inputs", [2, 9], 6, **{**kind, "bias": None}, fields={"two_inputs": True})
        yield fc(f"{label}_deep", [2, 150], 3, **kind)
        for activation in ACTIVATIONS[1:]:
            yield fc(f"{label}_{activation.lower()}", [2, 12], 9, activation=activation, **kind)
        low, high = limits(label)
        for ends in ((low, low), (high, high), (low, high)):
            yield fc(f"{label}_zero_points_{ends[0]}_{ends[1]}", [2, 12], 6, zeros=ends, **kind)
    for zero in (-128, 127, 5):
        yield fc(f"int8_weight_zero_point_{zero}", [2, 11], 6, **{**eight, "weight_zero": zero})
    for zero in (0, 255):
        yield fc(f"uint8_weight_zero_point_{zero}", [2, 11], 6, **{**old, "weight_zero": zero})
    yield fc("uint8_to_int16", [2, 12], 6, output="int16", **old)
    for activation in ACTIVATIONS:
        yield fc(f"int8_per_channel_{activation.lower()}", [3, 14], 7, per_channel=True, activation=activation, **eight)
    for bits in ("int4", "int2"):
        for per_channel in (False, True):
            label = f"int8_weights_{bits}_per_{'channel' if per_channel else 'tensor'}"
            yield fc(label, [3, 15], 5, per_channel=per_channel, **{**eight, "weights": bits})
    for bias in ("int64", "int32", None):
        for per_channel in (False, True):
            fields = {"quantized_bias_type": bias} if bias == "int32" else {}
            label = f"int16_bias_{bias}_per_{'channel' if per_channel else 'tensor'}"
            yield fc(label, [3, 17], 6, dtype="int16", weights="int8", bias=bias, per_channel=per_channel, fields=fields)
    yield fc("int16_weights_int4", [2, 9], 5, dtype="int16", weights="int4", bias="int64", per_channel=True)
    for bias in ("int64", "int32", None):
        fields = {"quantized_bias_type": bias} if bias else {}
        yield fc(f"int16_weights_int16_bias_{bias}", [2, 9], 5, dtype="int16", weights="int16", bias=bias, fields=fields)
    yield fc("int16_weights_int16_per_channel", [2, 9], 5, dtype="int16", weights="int16", bias="int64", per_channel=True,
             fields={"quantized_bias_type": "int64"})
    yield fc("int16_deep", [1, 700], 2, dtype="int16", weights="int8", bias="int64")
    yield fc("int16_relu6", [2, 8], 4, dtype="int16", weights="int8", bias="int64", activation="RELU6")
    for asymmetric in (False, True):
        for per_channel in (False, True):
            for weights in ("int8", "int4"):
                label = (f"hybrid_{weights}_per_{'channel' if per_channel else 'tensor'}"
                         f"_{'asymmetric' if asymmetric else 'symmetric'}")
                yield fc(label, [3, 18], 6, weights=weights, per_channel=per_channel,
                         fields={"asymmetric_quantize_inputs": asymmetric})
    yield fc("hybrid_relu6_no_bias", [2, 10], 7, weights="int8", bias=None, activation="RELU6")
    yield fc("hybrid_zero_input", [2, 10], 7, weights="int8", zero_input=True)
    yield fc("hybrid_int2", [2, 10], 7, weights="int2", per_channel=True)
    empty = Model()
    x, w = empty.input("x", "float32", [2, 0]), empty.const("w", np.zeros((3, 0), np.float32))
    empty.op("FULLY_CONNECTED", [x, w, empty.const("b", np.ones(3, np.float32))], [empty.output("y", "float32", [2, 3])])
    yield "FULLY_CONNECTED", "float_no_depth_gives_zeros", empty, None
    bad = Model()
    x, w = bad.input("x", "float32", [2, 5]), bad.const("w", np.zeros((3, 2, 5), np.float32))
    bad.op("FULLY_CONNECTED", [x, w, None], [bad.output("y", "float32", [2, 3])])
    yield "FULLY_CONNECTED", "refused_weights_of_rank_3", bad, None, {"expect_error": True}


PRODUCT_SHAPES = {  # x, y as they are without adj_x and adj_y
    "plain": ([3, 5], [5, 4]), "one_by_one": ([1, 1], [1, 1]), "batched": ([2, 3, 4], [2, 4, 5]),
    "y_for_all": ([2, 3, 4], [4, 9]), "x_for_all": ([3, 4], [2, 4, 2]), "one_batch": ([2, 3, 4], [1, 4, 2]),
    "broadcast_both": ([2, 1, 3, 4], [1, 3, 4, 2]), "rank_5": ([2, 1, 2, 2, 3], [1, 2, 2, 3, 2]),
    "rank_4": ([2, 2, 3, 2], [2, 2, 2, 3]), "mixed_ranks": ([2, 3, 2], [2, 1, 1, 2, 4]), "wide": ([9, 17], [17, 19]),
}


def swap(shape, swapped):
    return [*shape[:-2], shape[-1], shape[-2]] if swapped else shape


def batch_matmul(name, shapes, adj=(False, False), *, dtype="float32", y_type=None, output=None, per_channel=False,
                 constant=False, fields=None, zeros=None):
    rng = seeded(f"BATCH_MATMUL {name}")
    y_type, output = y_type or dtype, output or dtype
    x_shape, y_shape = swap(shapes[0], adj[0]), swap(shapes[1], adj[1])
    out_shape = list(np.broadcast_shapes(shapes[0][:-2], shapes[1][:-2])) + [shapes[0][-2], shapes[1][-1]]
    values = [rng.uniform(-2, 2, s).astype(np.float32) if t == "float32" else random_quantized(rng, t, s)
              for s, t in ((x_shape, dtype), (y_shape, y_type))]
    params = [{}, {}, {}]
    if dtype != "float32":
        zero = lambda t: 0 if t == "int16" or dtype == "int16" else int(rng.randint(*limits(t)))
        zero_x, zero_y = zeros or (zero(dtype), zero(y_type))
        turn = lambda v, swapped: np.swapaxes(v, -1, -2) if swapped else v
        sums = (turn(values[0], adj[0]).astype(np.int64) - zero_x) @ (turn(values[1], adj[1]).astype(np.int64) - zero_y)
        scale, zero_out = fit(sums * 0.01 * 0.02, output if output != "int32" else "int8")
        params = [dict(scale=0.01, zero_point=zero_x), dict(scale=0.02, zero_point=zero_y),
                  dict(scale=scale, zero_point=zero_out)]
    elif y_type == "int8":
        columns = y_shape[-2] if adj[1] else y_shape[-1]
        params[1] = dict(scale=rng.uniform(0.002, 0.02, columns if per_channel else 1),
                         axis=len(y_shape) - (2 if adj[1] else 1))
    m = Model()
    x = m.input("x", dtype, x_shape, **params[0])
    y = m.const("y", values[1], y_type, **params[1]) if constant else m.input("y", y_type, y_shape, **params[1])
    m.op("BATCH_MATMUL", [x, y], [m.output("z", output, out_shape, **params[2])], adj_x=adj[0], adj_y=adj[1],
         **(fields or {}))
    return "BATCH_MATMUL", name, m, values[:1] if constant else values


def batch_matmul_cases():
    bmm = batch_matmul
    for label, shapes in PRODUCT_SHAPES.items():
        yield bmm(f"float_{label}", shapes)
        yield bmm(f"int8_{label}", shapes, dtype="int8")
    for adj in ((True, False), (False, True), (True, True)):
        label = f"adj_{'x' if adj[0] else ''}{'y' if adj[1] else ''}"
        for kind in ("plain", "batched", "broadcast_both"):
            yield bmm(f"float_{label}_{kind}", PRODUCT_SHAPES[kind], adj)
            yield bmm(f"int8_{label}_{kind}", PRODUCT_SHAPES[kind], adj, dtype="int8")
        yield bmm(f"int16_{label}", PRODUCT_SHAPES["batched"], adj, dtype="int16")
        yield bmm(f"hybrid_{label}", PRODUCT_SHAPES["y_for_all"], adj, y_type="int8", constant=True, per_channel=True)
    for zeros in ((-128, -128), (127, -128), (-128, 127)):
        yield bmm(f"int8_zero_points_{zeros[0]}_{zeros[1]}", ([2, 9], [9, 3]), dtype="int8", zeros=zeros)
    yield bmm("int8_constant", PRODUCT_SHAPES["wide"], dtype="int8", constant=True)
    yield bmm("float_constant", PRODUCT_SHAPES["wide"], constant=True)
    yield bmm("int8_to_int32", PRODUCT_SHAPES["batched"], dtype="int8", output="int32")
    yield bmm("int8_to_int32_adj_y", PRODUCT_SHAPES["wide"], (False, True), dtype="int8", output="int32")
    yield bmm("int16", PRODUCT_SHAPES["wide"], dtype="int16")
    yield bmm("int16_by_int8", PRODUCT_SHAPES["wide"], dtype="int16", y_type="int8")
    yield bmm("int16_by_int8_deep", ([1, 600], [600, 2]), dtype="int16", y_type="int8", constant=True)
    for asymmetric in (False, True):
        for kind in ("plain", "batched", "y_for_all", "one_batch", "broadcast_both", "rank_4", "wide"):
            label = f"hybrid_{kind}_{'asymmetric' if asymmetric else 'symmetric'}"
            yield bmm(label, PRODUCT_SHAPES[kind], y_type="int8", constant=True, per_channel=kind != "batched",
                      fields={"asymmetric_quantize_inputs": asymmetric})
    bad = Model()
    x, y = bad.input("x", "float32", [2, 3]), bad.input("y", "float32", [4, 2])
    bad.op("BATCH_MATMUL", [x, y], [bad.output("z", "float32", [2, 2])])
    yield "BATCH_MATMUL", "refused_depths_differ", bad, None, {"expect_error": True}


def embedding_lookup(name, table_type, output, shape, ids, per_row=False):
    rng = seeded(f"EMBEDDING_LOOKUP {name}")
    params = {}
    if table_type == "float32":
        table = rng.uniform(-3, 3, shape).astype(np.float32)
    else:
        low, high = WEIGHT_LIMITS.get(table_type, (-1000, 1000))
        table = rng.randint(low, high + 1, shape)
    if output != table_type:
        params = dict(scale=rng.uniform(0.001, 0.1, shape[0] if per_row else 1), zero_point=0)
    elif table_type == "int8":
        params = dict(scale=0.5, zero_point=3)
    m = Model()
    x = m.input("ids", "int32", [len(ids)])
    y = m.output("y", output, [len(ids), *shape[1:]], **(params if output == table_type else {}))
    m.op("EMBEDDING_LOOKUP", [x, m.const("table", table, table_type, **params)], [y])
    return "EMBEDDING_LOOKUP", name, m, [np.array(ids, np.int32)]


def embedding_lookup_cases():
    look = embedding_lookup
    yield look("float", "float32", "float32", [5, 3], [0, 4, 2, 2])
    yield look("float_rank_3", "float32", "float32", [4, 2, 3], [3, 0])
    yield look("float_no_ids", "float32", "float32", [4, 2], [])
    yield look("int8_copied", "int8", "int8", [6, 4], [5, 1])
    yield look("int32_copied", "int32", "int32", [3, 2], [2, 1, 0])
    yield look("int8_to_float", "int8", "float32", [6, 5], [5, 0, 3])
    yield look("int8_to_float_per_row", "int8", "float32", [6, 5], [5, 0, 3], per_row=True)
    yield look("uint8_to_float", "uint8", "float32", [4, 6], [3, 1])
    yield look("int4_to_float", "int4", "float32", [5, 6], [4, 1, 0])
    yield look("int4_to_float_per_row", "int4", "float32", [5, 2, 3], [4, 1, 0], per_row=True)
    for bad in (-1, 5):
        yield *look(f"refused_id_{bad}", "float32", "float32", [5, 3], [0, bad]), {"expect_error": True}


def cases():
    yield from fully_connected_cases()
    yield from batch_matmul_cases()
    yield from embedding_lookup_cases()
