# SPDX-License-Identifier: Apache-2.0
"""Builds LSTMs of every kind: float, hybrid, quantized; with or without input gate, peephole, projection, normalization."""

import numpy as np

from onemodel import Model

GATES = ("input", "forget", "cell", "output")


class Lstm:
    """Operands of one LSTM cell in the order of the full kernel (24 inputs). `kind` is "float", "hybrid" or "int8"."""

    def __init__(self, m, rng, kind, sizes, *, cifg=False, peephole=False, projection=False, projection_bias=False,
                 layer_norm=False, prefix="", weight_dtype="int8", hidden_zero_point=3, output_zero_point=3,
                 cell_scale_bits=11, input_scale=1 / 64, input_zero_point=-5, states=None):
        self.m, self.rng, self.kind, self.prefix = m, rng, kind, prefix
        self.batch, self.n_input, self.n_cell, self.n_output = sizes
        self.weight_dtype = weight_dtype
        self.input_scale, self.input_zero_point = input_scale, input_zero_point
        self.hidden = (1 / 127, hidden_zero_point)
        self.output = (1 / 100 if projection else 1 / 127, output_zero_point)
        self.cell_scale = 2.0 ** -cell_scale_bits
        present = [not (cifg and g == "input") for g in GATES]
        some = lambda flags, make: [make(g) if f else None for f, g in zip(flags, GATES)]
        every = lambda flag: [flag and p for p in present]
        n, k, o = self.n_input, self.n_cell, self.n_output
        self.input_weights = some(present, lambda g: self.weights(f"{g}_w", [k, n]))
        self.recurrent_weights = some(present, lambda g: self.weights(f"{g}_r", [k, o]))
        peepholes = [peephole and p and g != "cell" for p, g in zip(present, GATES)]
        self.peepholes = some(peepholes, lambda g: self.peephole_weights(f"{g}_p"))
        self.layer_norm = layer_norm
        self.norms = some(every(layer_norm), lambda g: self.norm_weights(f"{g}_n"))
        self.biases = some(present, lambda g: self.bias(f"{g}_b", k))
        self.projection = self.weights("proj", [o, k]) if projection else None
        self.projection_bias = self.bias("proj_b", o) if projection_bias else None
        self.output_state, self.cell_state = states if states is not None else self.states()

    def weights(self, name, shape):
        name = self.prefix + name
        if self.kind == "float":
            return self.m.const(name, self.rng.uniform(-0.6, 0.6, shape).astype(np.float32))
        values = self.rng.randint(-127, 128, shape)
        values.flat[0] = -127
        scale = float(np.float32(self.rng.uniform(0.4, 0.8) / 127))
        if self.weight_dtype == "uint8":
            return self.m.const(name, values.astype(np.int8).view(np.uint8), "uint8", scale=scale, zero_point=0)
        return self.m.const(name, values, "int8", scale=scale, zero_point=0)

    def peephole_weights(self, name):
        if self.kind == "int8":
            return self.m.const(self.prefix + name, self.rng.randint(-32767, 32768, [self.n_cell]), "int16",
                                scale=float(np.float32(0.5 / 32767)), zero_point=0)
        return self.weights(name, [self.n_cell])

    def norm_weights(self, name):
        if self.kind == "int8":
            return self.m.const(self.prefix + name, self.rng.randint(4000, 32768, [self.n_cell]), "int16",
                                scale=float(np.float32(0.5 / 32767)), zero_point=0)
        return self.m.const(self.prefix + name, self.rng.uniform(0.2, 1, [self.n_cell]).astype(np.float32))

    def bias(self, name, size):
        if self.kind == "int8":
            spread = 20000 if not self.layer_norm or name == "proj_b" else 1 << 24
            return self.m.const(self.prefix + name, self.rng.randint(-spread, spread, [size]), "int32",
                                scale=1e-5, zero_point=0)
        return self.m.const(self.prefix + name, self.rng.uniform(-0.3, 0.3, [size]).astype(np.float32))

    def states(self):
        shapes = [self.batch, self.n_output], [self.batch, self.n_cell]
        if self.kind != "int8":
            return tuple(self.m.variable(self.prefix + n, "float32", s) for n, s in zip(("h", "c"), shapes))
        return (self.m.variable(self.prefix + "h", "int8", shapes[0], scale=self.output[0], zero_point=self.output[1]),
                self.m.variable(self.prefix + "c", "int16", shapes[1], scale=self.cell_scale, zero_point=0))

    def tensor(self, make, name, shape, is_output=False):
        """Input or output tensor of the right type."""
        if self.kind != "int8":
            return make(name, "float32", shape)
        scale, zero_point = self.output if is_output else (self.input_scale, self.input_zero_point)
        return make(name, "int8", shape, scale=scale, zero_point=zero_point)

    def operands(self, x, with_norms=True):
        norms = self.norms if with_norms else []
        return [x, *self.input_weights, *self.recurrent_weights, self.peepholes[0], self.peepholes[1], self.peepholes[3],
                *self.biases, self.projection, self.projection_bias, self.output_state, self.cell_state, *norms]

    def intermediates(self):
        """Five tensors that carry scales, for the quantized kernel."""
        if self.kind != "int8":
            return None
        scales = [float(np.float32(self.rng.uniform(1, 2) / 4096)) for _ in GATES]
        gates = [self.m.tensor(f"{self.prefix}i{i}", "int16", [0], scale=s, zero_point=0) if self.layer_norm
                 else self.m.tensor(f"{self.prefix}i{i}", "float32", [0]) for i, s in enumerate(scales)]
        return [*gates, self.m.tensor(self.prefix + "hidden", "int8", [0], scale=self.hidden[0], zero_point=self.hidden[1])]

    def values(self, shape):
        if self.kind == "int8":
            return self.rng.randint(-128, 128, shape)
        return self.rng.uniform(-1, 1, shape).astype(np.float32)
