#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_seeds.py FUZZER FOLDER: small valid inputs for a fuzzer, so that it begins behind the first checks.

They are made from the project's own models and pictures or with Python's standard library; nothing is downloaded. Files that
are there stay as they are.
"""
import gzip
import io
import pathlib
import struct
import sys
import tarfile
import zipfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def zip_of(members, method):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return file.getvalue()


def npy(shape, descr, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def png(width, height, colour, samples):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    stride = len(samples) // height
    rows = b"".join(b"\0" + samples[y * stride:(y + 1) * stride] for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def bmp(width, height):
    rows = bytes(range(256))[:3 * width].ljust((3 * width + 3) // 4 * 4, b"\0") * height
    return (b"BM" + struct.pack("<IHHI", 54 + len(rows), 0, 0, 54)
            + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(rows), 2835, 2835, 0, 0) + rows)


def tar(members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def models(*patterns):
    return {path.name: path.read_bytes() for pattern in patterns for path in sorted((ROOT / "models").glob(pattern))}


def archives():
    members = {"labels.txt": b"crab\nturtle\n", "metadata.json": b'{"task": "detect", "names": {"0": "crab"}}'}
    return {"stored.zip": zip_of(members, zipfile.ZIP_STORED), "deflated.zip": zip_of(members, zipfile.ZIP_DEFLATED),
            "packed.gz": gzip.compress(b"crab\n" * 40, mtime=0)}


def arrays():
    array = npy((2, 3), "<f4", struct.pack("<6f", *range(6)))
    labels = npy((2,), "<i8", struct.pack("<2q", 0, 1))
    return {"a.npy": array, "s.npz": zip_of({"x.npy": array, "y.npy": labels}, zipfile.ZIP_STORED),
            "d.npz": zip_of({"x.npy": array, "y.npy": labels}, zipfile.ZIP_DEFLATED)}


def pictures():
    return {"rgb.png": png(4, 3, 2, bytes(range(36))), "grey.png": png(4, 3, 0, bytes(range(12))),
            "alpha.png": png(2, 2, 6, bytes(range(16))), "small.bmp": bmp(4, 3), **models("images/crab_1.jpg")}


def networks(header):
    """Generated networks (tests/network_trial.cpp): `header` bytes, the input's five numbers, layers of eight bytes."""
    numbers = bytes((37 * i + 11) % 256 for i in range(64))
    return {str(layers): bytes(header) + bytes([0, 8, 8, 7, 3]) + numbers[:8 * layers] for layers in (1, 2, 4, 8)}


# One line each of what the fuzzer's bytes are.
SEEDS = {
    "tflite_reader": lambda: models("reef_creatures_int8.tflite"),
    "onnx_reader": lambda: models("cifar_resnet8.onnx"),
    "onnx_importer": lambda: models("cifar_resnet8.onnx"),
    "compiler_onnx": lambda: models("cifar_resnet8.onnx"),
    "zip_archive": archives,
    "numpy_npz": arrays,
    "image_image": pictures,
    "tar_tar": lambda: {"a.tar": tar({"0.txt": b"1", "0.png": b"2", "1.txt": b"3"})},
    "data_model_card": lambda: {"names": b"{0: 'person', 1: \"bicycle\"}", "list": b"['a', 'b']", "pose": b"[17, 3]",
                                **archives()},
    "network_cpu": lambda: networks(0),
    "network_code": lambda: networks(1),
    "flexbuffer_flex_view": lambda: {"map": bytes.fromhex("61000161010101012401020101")},
    "driver_usb_session": lambda: {"quiet": bytes(2000), "counting": bytes(range(200)) * 10},
    "isa_assembler": lambda: {"end": b"tile_fence tiles=all drain=all\nhalt code=16\nend\n",
                              "scalar": b"start\nL1:\nscalar r0 = mov 5\nbranch to L1\n"},
}


def main():
    name, folder = sys.argv[1].removeprefix("fuzz_"), pathlib.Path(sys.argv[2])
    for file, data in SEEDS.get(name, dict)().items():
        target = folder / f"seed_{file}"
        if not target.exists():
            target.write_bytes(data)


if __name__ == "__main__":
    main()
