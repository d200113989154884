#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/formats/numpy/numpy_files.h: small .npy and .npz files as NumPy makes them, for the readers' tests."""
import io
import pathlib
import numpy as np


def literal(data):
    """C++ string literal; a piece per 40 bytes, so that hexadecimal escapes end."""
    pieces = []
    for at in range(0, max(len(data), 1), 40):
        text = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in data[at:at + 40])
        pieces.append(f'"{text}"')
    return "\n     ".join(pieces)


def npy(array, version=(1, 0)):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def cases():
    rng = np.random.default_rng(1)
    for code in ["?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"]:
        yield f"plain {code}", rng.integers(0, 2 if code == "?" else 100, (2, 3)).astype(code), (1, 0), True
    for code in [">i2", ">u4", ">i8", ">f4", ">f8", ">c8", ">c16"]:
        yield f"big-endian {code}", rng.integers(-100, 100, (3, 2)).astype(code), (1, 0), False
    values = rng.integers(0, 100, (2, 3, 4))
    yield "Fortran order", np.asfortranarray(values.astype("<i2")), (1, 0), False
    yield "Fortran order, big-endian", np.asfortranarray(values.astype(">f4")), (1, 0), False
    yield "version 2", values.astype("<f4"), (2, 0), False
    yield "version 3", values.astype("u1"), (3, 0), False
    yield "scalar", np.array(2.5, "<f4"), (1, 0), True
    yield "vector", np.arange(5, dtype="<i4"), (1, 0), True
    yield "no elements", np.zeros((0, 3), "<f4"), (1, 0), True


def archive(save):
    out = io.BytesIO()
    save(out, a=np.arange(6, dtype="<f4").reshape(2, 3) * 1.5, ids=np.full(100, -7, "<i8"), words=np.array(["ab", "c"]))
    return out.getvalue()


def size(data):
    return f"std::string_view({literal(data)}, {len(data)})"


lines = ["// SPDX-License-Identifier: Apache-2.0",
         "// Written by tools/oracle/make_numpy_files.py with NumPy " + np.__version__ + ". Do not edit.",
         "// clang-format off", "#pragma once", "#include <cstdint>", "#include <string_view>", "#include <vector>", "",
         "namespace reef::numpy {", "",
         "struct NumpyFile {", "  std::string_view name, type;", "  std::vector<std::int64_t> shape;",
         "  std::string_view bytes, little_endian_c_order;", "  bool is_plain;  // writing gives the same bytes", "};",
         "inline const NumpyFile kNumpyFiles[] = {"]
for name, array, version, plain in cases():
    kind = array.dtype.newbyteorder("<")
    shape = ", ".join(str(n) for n in array.shape)
    lines.append(f'    {{"{name}", "{array.dtype.newbyteorder("=").name}", {{{shape}}},\n     {size(npy(array, version))},\n'
                 f'     {size(np.ascontiguousarray(array.astype(kind)).tobytes())}, {"true" if plain else "false"}}},')
lines += ["};", "", f"inline constexpr std::string_view kStoredNpz({literal(archive(np.savez))}, {len(archive(np.savez))});",
          f"inline constexpr std::string_view kDeflatedNpz({literal(archive(np.savez_compressed))}, "
          f"{len(archive(np.savez_compressed))});", "", "}  // namespace reef::numpy", ""]
target = pathlib.Path(__file__).parents[2] / "src/formats/numpy/numpy_files.h"
target.write_text("\n".join(lines))
