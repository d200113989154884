#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX files as no exporter of PyTorch writes them: every attribute, form of padding and opset that the standard allows.

    bench/onnx_by_hand.py FOLDER [--count N] [--seed S] [--only NODE,...]

Each file is a small network: a convolution, one to three nodes drawn from CONSTRUCTS with attributes drawn at random (opsets 7 to
23), and a convolution behind them where the shape allows one. Files that ONNX's checker or ONNX Runtime refuses are left out, so what
stays is legal. NAME.samples.npz has samples; bench/ways.py takes the folder through Reef:

    bench/onnx_by_hand.py FOLDER && bench/ways.py build/reef FOLDER --json FILE
"""

import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper

import onnx_layers  # noqa: F401: lists its constructs
import onnx_operators  # noqa: F401
from onnx_network import CONSTRUCTS, Network, waves

SAMPLES = 12


def make(number, seed, only):
    random = np.random.default_rng([seed, number])
    opset = int(random.choice([7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]))
    rank = int(random.choice([4, 4, 4, 4, 3, 5, 2]))
    shape = {2: (30,), 3: (6, 24), 4: (3, int(random.integers(9, 20)), int(random.integers(9, 20))), 5: (3, 5, 9, 8)}[rank]
    n = Network(random, opset, shape)
    if rank == 2:
        n.go_on(n.node("Gemm", [n.at, n.weights(16, 30), n.weights(16)], transB=1))
    else:
        n.go_on(n.node("Conv", [n.at, n.weights(8, shape[0], *([3] * (rank - 2)))]))
    if n.flip(0.6):
        n.go_on(n.node("Relu", [n.at]))
    drawn = []
    for _ in range(n.between(1, 3)):
        fitting = [name for name, (ranks, since, _) in CONSTRUCTS.items() if len(n.shape) in ranks and opset >= since]
        wanted = [name for name in fitting if name in only] if not drawn and only else fitting
        if not wanted or np.prod(n.shape) > 40_000:
            break
        drawn.append(n.pick(*wanted))
        CONSTRUCTS[drawn[-1]][2](n)
    if only and not set(drawn) & set(only):
        return None
    if len(n.shape) in (3, 4, 5) and n.shape[1] <= 64 and n.flip(0.7):
        n.go_on(n.node("Conv", [n.at, n.weights(4, n.shape[1], *([1] * (len(n.shape) - 2)))]))
    return n, "_".join([f"{seed}_{number:03d}", *drawn, f"opset{opset}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="names of CONSTRUCTS, separated by commas: each file has one of them")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    left_out = 0
    for number in range(arguments.count):
        try:
            made = make(number, arguments.seed, [name for name in arguments.only.split(",") if name])
            if made is None:
                continue
            network, name = made
            model = network.model(network.at)
            model.graph.output[0].CopyFrom(helper.make_tensor_value_info(network.at, TensorProto.FLOAT, network.shape))
            onnx.checker.check_model(model, full_check=True)
            shape = [d.dim_value for d in network.graph_input.type.tensor_type.shape.dim]
            samples = np.stack([waves(1000 * arguments.seed + k, shape) for k in range(SAMPLES)])
            results = [network.run(network.at, sample) for sample in samples[:2]]
            if not all(np.isfinite(r).all() for r in results) or np.ptp(results[0]) == 0:
                continue
        except Exception as error:  # not legal, or not in ONNX Runtime
            left_out += 1
            print(f"{number}: left out: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:160]}")
            continue
        onnx.save(model, arguments.folder / f"h{name}.onnx")
        np.savez(arguments.folder / f"h{name}.samples.npz", input_0=samples)
    print(f"{left_out} of {arguments.count} left out")


if __name__ == "__main__":
    main()
