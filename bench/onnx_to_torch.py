# SPDX-License-Identifier: Apache-2.0
"""An ONNX graph as a torch.nn.Module whose layers are ordinary modules (Conv2d, ConvTranspose2d, Linear), so that tools
for PyTorch find them. Covers the operators of the collection's trained models.

Reshapes with fixed sizes let their last axis follow where a pruned layer feeds them, as code that prunes attention is
written by hand (view(..., heads, -1)). A layer that computes queries, keys and values at once becomes three layers:
torch-pruning does not follow channels through the reshape, transpose and split that take them apart.
"""
import onnx
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional as F


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def safe(name):
    return name.strip("/").replace(".", "_").replace("/", "_").replace(":", "_")


def follow_reshape(x, shape):
    shape = [x.shape[i] if s == 0 else int(s) for i, s in enumerate(shape)]
    try:
        return x.reshape(shape)
    except RuntimeError:
        return x.reshape(shape[:-1] + [-1])


class OnnxModule(nn.Module):
    def __init__(self, path):
        super().__init__()
        graph = onnx.load(path).graph
        self.values = {i.name: torch.tensor(numpy_helper.to_array(i)) for i in graph.initializer}
        self.nodes, self.layers = [], nn.ModuleDict()
        self.input, self.output = graph.input[0].name, graph.output[0].name
        for node in graph.node:
            at = attributes(node)
            if node.op_type == "Constant":
                self.values[node.output[0]] = torch.tensor(numpy_helper.to_array(at["value"]))
                continue
            key = self.add_layer(node, at)
            self.nodes.append((node.op_type, list(node.input), list(node.output), at, key))
        self.heads = {}  # layer: number of heads
        for at in [i for i, node in enumerate(self.nodes) if node[0] == "Split"]:
            self.divide_attention(at)
        self.fold_biases()
        self.nodes = [node for node in self.nodes if node[0] != "gone"]
        everything = sum(numpy_helper.to_array(i).size for i in graph.initializer if i.data_type == 1)
        self.other_parameters = everything - sum(p.numel() for p in self.layers.parameters())

    def fold_biases(self):
        """A sum of a Linear without bias and a constant vector is a Linear with a bias."""
        for i, (kind, inputs, outputs, _, _) in enumerate(self.nodes):
            bias = next((n for n in inputs if n in self.values), None) if kind == "Add" else None
            if bias is None:
                continue
            source = next((k for k, node in enumerate(self.nodes) if set(node[2]) & set(inputs)), None)
            layer = self.layers[self.nodes[source][4]] if source is not None and self.nodes[source][4] else None
            if not isinstance(layer, nn.Linear) or layer.bias is not None or self.values[bias].shape != (
                    layer.out_features,):
                continue
            layer.bias = nn.Parameter(self.values[bias].clone())
            self.nodes[source] = (*self.nodes[source][:2], outputs, *self.nodes[source][3:])
            self.nodes[i] = ("gone", [], [], {}, None)

    def divide_attention(self, at):
        """MatMul, Add, Reshape [1, tokens, 3, heads, each], Transpose, Split, three Squeezes -> three Linears."""
        def maker(name):
            return next((i for i, node in enumerate(self.nodes) if name in node[2]), None)

        chain, name = [at], self.nodes[at][1][0]
        for kind in ("Transpose", "Reshape", "Add", "MatMul"):
            found = next((i for i in map(maker, [name] if kind != "MatMul" else self.nodes[chain[-1]][1])
                          if i is not None and self.nodes[i][0] == kind), None)
            if found is None:
                return
            chain.append(found)
            name = self.nodes[found][1][0] if kind != "Reshape" else self.nodes[found][1][0]
        _, transpose, reshape, add, product = chain
        shape, perm = self.values[self.nodes[reshape][1][1]].tolist(), list(self.nodes[transpose][3]["perm"])
        if len(shape) != 5 or shape[2] != 3 or perm[0] != 2:
            return
        bias = next(self.values[i] for i in self.nodes[add][1] if i in self.values)
        weight = self.layers[self.nodes[product][4]].weight.data
        del self.layers[self.nodes[product][4]]
        source = self.nodes[product][1][0]
        order = [(p if p < 2 else p - 1) for p in perm[1:]]  # without the axis of 3
        for i, part in enumerate(self.nodes[at][2]):
            squeeze = next(k for k, node in enumerate(self.nodes) if node[0] == "Squeeze" and node[1][0] == part)
            layer = nn.Linear(weight.shape[1], weight.shape[0] // 3)
            layer.weight.data, layer.bias.data = weight.chunk(3)[i].clone(), bias.chunk(3)[i].clone()
            key = safe(self.nodes[squeeze][2][0])
            self.layers[key] = layer
            self.heads[key] = shape[3]
            self.nodes[squeeze] = ("Heads", [source], self.nodes[squeeze][2],
                                   {"shape": shape[:2] + [shape[3], -1], "perm": order}, key)
        for i in chain:
            self.nodes[i] = ("gone", [], [], {}, None)

    def add_layer(self, node, at):
        weight = self.values.get(node.input[1]) if len(node.input) > 1 else None
        bias = self.values.get(node.input[2]) if len(node.input) > 2 else None
        if weight is None:
            return None
        if node.op_type in ("Conv", "ConvTranspose"):
            pads, stride = at.get("pads", [0] * 4), at.get("strides", [1, 1])
            assert pads[:2] == pads[2:] or node.op_type == "Conv", "uneven padding"
            groups = at.get("group", 1)
            if node.op_type == "Conv":
                layer = nn.Conv2d(weight.shape[1] * groups, weight.shape[0], tuple(weight.shape[2:]), tuple(stride),
                                  tuple(pads[:2]), tuple(at.get("dilations", [1, 1])), groups, bias is not None)
            else:
                layer = nn.ConvTranspose2d(weight.shape[0], weight.shape[1] * groups, tuple(weight.shape[2:]),
                                           tuple(stride), tuple(pads[:2]), 0, groups, bias is not None)
        elif node.op_type in ("Gemm", "MatMul"):
            if node.op_type == "MatMul" or not at.get("transB", 0):
                weight = weight.t()
            layer = nn.Linear(weight.shape[1], weight.shape[0], bias is not None)
        else:
            return None
        layer.weight.data = weight.clone().contiguous()
        if bias is not None:
            layer.bias.data = bias.clone()
        key = safe(node.output[0])
        self.layers[key] = layer
        return key

    def forward(self, x):
        known = {self.input: x}

        def value(name):
            return known[name] if name in known else self.values[name]

        for kind, inputs, outputs, at, key in self.nodes:
            args = [value(i) if i else None for i in inputs]
            results = [self.layers[key](args[0])] if key else compute(kind, args, at)
            if kind == "Heads":
                results = [results[0].reshape(at["shape"]).permute(at["perm"])]
            known.update(zip(outputs, results))
        return known[self.output]


def axes_of(args, at):
    return [int(a) for a in (args[1] if len(args) > 1 and args[1] is not None else at["axes"])]


def compute(kind, args, at):
    a = args[0]
    if kind in ("Add", "Sub", "Mul", "Div", "Pow"):
        return [getattr(torch, {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Pow": "pow"}[kind])(a, args[1])]
    if kind in ("Sqrt", "Erf", "Tanh", "Sigmoid", "Relu"):
        return [getattr(torch, kind.lower())(a)]
    if kind == "Clip":
        return [torch.clamp(a, float(args[1]), float(args[2]))]
    if kind == "LeakyRelu":
        return [F.leaky_relu(a, at.get("alpha", 0.01))]
    if kind == "HardSigmoid":
        return [torch.clamp(a * at.get("alpha", 0.2) + at.get("beta", 0.5), 0, 1)]
    if kind == "GlobalAveragePool":
        return [a.mean((2, 3), keepdim=True)]
    if kind == "ReduceMean":
        return [a.mean(axes_of(args, at), keepdim=bool(at.get("keepdims", 1)))]
    if kind == "AveragePool":
        return [F.avg_pool2d(a, at["kernel_shape"], at.get("strides"), at.get("pads", [0] * 4)[:2])]
    if kind == "MaxPool":
        return [F.max_pool2d(a, at["kernel_shape"], at.get("strides"), at.get("pads", [0] * 4)[:2])]
    if kind == "Flatten":
        return [a.flatten(at.get("axis", 1))]
    if kind == "Concat":
        return [torch.cat(args, at["axis"])]
    if kind == "Resize":
        scale = [float(s) for s in args[2][2:]] if args[2] is not None and args[2].numel() else None
        mode = at.get("mode", b"nearest").decode()
        size = None if scale else [int(s) for s in args[3][2:]]
        return [F.interpolate(a, size, scale, "bilinear" if mode == "linear" else mode,
                              **({"align_corners": False} if mode == "linear" else {}))]
    if kind == "Reshape":
        return [follow_reshape(a, args[1].tolist())]
    if kind == "Transpose":
        return [a.permute(at["perm"])]
    if kind == "Squeeze":
        for axis in sorted(axes_of(args, at), reverse=True):
            a = a.squeeze(axis)
        return [a]
    if kind == "Split":
        axis = at.get("axis", 0)
        sizes = args[1].tolist() if len(args) > 1 and args[1] is not None else at.get("split")
        if sizes is None:
            return list(a.chunk(at["num_outputs"], axis))
        return list(torch.split(a, sizes, axis))
    if kind == "Slice":
        starts, ends, axes = args[1].tolist(), args[2].tolist(), args[3].tolist()
        steps = args[4].tolist() if len(args) > 4 and args[4] is not None else [1] * len(axes)
        index = [slice(None)] * a.ndim
        for start, end, axis, step in zip(starts, ends, axes, steps):
            index[axis] = slice(start, min(end, a.shape[axis]) if end >= 0 else end, step)
        return [a[tuple(index)]]
    if kind == "Shape":
        return [torch.tensor(a.shape)]
    if kind == "Gather":
        return [torch.index_select(a, at.get("axis", 0), args[1].reshape(-1)).reshape(
            a.shape[:at.get("axis", 0)] + args[1].shape + a.shape[at.get("axis", 0) + 1:])]
    if kind == "MatMul":
        return [a @ args[1]]
    if kind == "Softmax":
        return [torch.softmax(a, at.get("axis", -1))]
    raise NotImplementedError(kind)
