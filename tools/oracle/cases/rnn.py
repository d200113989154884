# SPDX-License-Identifier: Apache-2.0
"""Plain recurrent networks: over a sequence, and one step."""

import numpy as np

from onemodel import Model, seeded


def rnn_case(operator, name, kind, sizes, *, time_major=False, options=None, weight_dtype="int8", **fields):
    rng = seeded(f"{operator} {name}")
    batch, steps, inputs, units = sizes
    m = Model()
    shapes = [units, inputs], [units, units]
    if kind == "float":
        weights = [m.const(n, rng.uniform(-0.7, 0.7, s).astype(np.float32)) for n, s in zip("wr", shapes)]
    else:
        values = [rng.randint(-127, 128, s).astype(np.int8) for s in shapes]
        weights = [m.const(n, v.view(weight_dtype), weight_dtype, scale=float(np.float32(0.005)), zero_point=0)
                   for n, v in zip("wr", values)]
    front = [batch] if operator == "RNN" else [steps, batch] if time_major else [batch, steps]
    x = m.input("x", "float32", front + [inputs])
    b = m.const("b", rng.uniform(-0.5, 0.5, [units]).astype(np.float32))
    state = m.variable("s", "float32", [batch, units])
    y = m.output("y", "float32", front + [units])
    if operator != "RNN":
        fields["time_major"] = time_major
    m.op(operator, [x, *weights, b, state], [y], **fields)
    draws = [rng.uniform(-1, 1, front + [inputs]).astype(np.float32) for _ in range(2)]
    return operator, name, m, draws, {"invocations": 2, **(options or {})}


def cases():
    for operator in ("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN"):
        for runtime, suffix in (("litert", ""), ("tflite29", "_2_9")):
            options = {"runtime": runtime}
            tanh = dict(options=options, fused_activation_function="TANH")
            yield rnn_case(operator, f"float_tanh{suffix}", "float", (2, 3, 19, 9), **tanh)
            yield rnn_case(operator, f"float_relu{suffix}", "float", (1, 2, 4, 5), options=options,
                           fused_activation_function="RELU")
            yield rnn_case(operator, f"hybrid{suffix}", "hybrid", (2, 3, 6, 7), **tanh)
            yield rnn_case(operator, f"hybrid_asymmetric{suffix}", "hybrid", (2, 2, 19, 8), asymmetric_quantize_inputs=True,
                           **tanh)
        yield rnn_case(operator, "float_none", "float", (1, 3, 3, 4), fused_activation_function="NONE")
        yield rnn_case(operator, "hybrid_uint8", "hybrid", (2, 3, 6, 7), weight_dtype="uint8",
                       fused_activation_function="RELU6")
    for kind in ("float", "hybrid"):
        yield rnn_case("UNIDIRECTIONAL_SEQUENCE_RNN", f"{kind}_time_major", kind, (2, 4, 5, 6), time_major=True,
                       fused_activation_function="TANH")
