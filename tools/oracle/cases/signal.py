# SPDX-License-Identifier: Apache-2.0
"""TFLite-Micro's audio operators."""

import numpy as np

from onemodel import Model, seeded

MICRO = {"runtime": "tflm"}


def one_op(operator, name, inputs, outputs, options, *, invocations=1, tolerance=None):
    """inputs: (type, values of each invocation) for graph inputs, or (type, array) in a 1-tuple for constants."""
    m = Model()
    handles, given = [], [[] for _ in range(invocations)]
    for i, (dtype, values) in enumerate(inputs):
        if isinstance(values, list):
            handles.append(m.input(f"x{i}", dtype, np.shape(values[0])))
            for n, value in enumerate(values):
                given[n].append(value)
        else:
            handles.append(m.const(f"c{i}", values, dtype))
    results = [m.output(f"y{i}", dtype, shape) for i, (dtype, shape) in enumerate(outputs)]
    m.op(f"custom:{operator}", handles, results, custom_options=options)
    settings = {**MICRO, **({"invocations": invocations} if invocations > 1 else {}),
                **({"tolerance": tolerance} if tolerance else {})}
    return f"custom:{operator}", name, m, [v for run in given for v in run], settings


def window_cases():
    rng = seeded("SignalWindow")
    for shift, shape in ((12, [1, 24]), (0, [8]), (15, [2, 3, 8])):
        window = rng.randint(-32768, 32768, [shape[-1]])
        samples = rng.randint(-32768, 32768, shape)
        samples.flat[:2] = -32768, 32767
        yield one_op("SignalWindow", f"shift{shift}", [("int16", [samples]), ("int16", window)], [("int16", shape)],
                     {"shift": shift})
    yield one_op("SignalWindow", "frames", [("int16", [rng.randint(-32768, 32768, [12])]), ("int16", rng.randint(0, 4096, [4]))],
                 [("int16", [12])], {"shift": 12})


def auto_scale_cases():
    rng = seeded("SignalFftAutoScale")
    for largest in (0, 1, 2, 3, 255, 256, 16383, 16384, 32767, -32768, -1, -16384):
        samples = rng.randint(-abs(largest), abs(largest) + 1, [9]) if largest not in (0, -32768) else np.zeros([9], int)
        samples[3] = largest
        yield one_op("SignalFftAutoScale", f"largest_{largest}", [("int16", [samples])], [("int16", [9]), ("int32", [])], {})


def rfft_cases():
    for dtype, number in (("int16", 7), ("int32", 2), ("float32", 0)):
        for length, frame in ((8, 8), (16, 11), (32, 32), (64, 40), (128, 128), (512, 480)):
            if length > 64 and dtype != "int16":
                continue
            rng = seeded(f"SignalRfft {dtype} {length}")
            shape = [2, frame] if length == 16 else [frame]
            if dtype == "float32":
                samples = rng.uniform(-1, 1, shape).astype(np.float32)
            else:
                info = np.iinfo(dtype)
                samples = rng.randint(info.min, info.max + 1, shape, dtype=np.int64)
                samples.flat[:3] = info.min, info.max, info.min
            yield one_op("SignalRfft", f"{dtype}_{length}", [(dtype, [samples])], [(dtype, shape[:-1] + [length + 2])],
                         {"T": number, "fft_length": length}, tolerance=1e-6 if dtype == "float32" else None)
    for label, samples in {"all_lowest": np.full([64], -32768), "all_highest": np.full([64], 32767),
                           "impulse": np.eye(1, 64)[0] * 32767, "alternating": np.resize([-32768, 32767], [64])}.items():
        yield one_op("SignalRfft", f"int16_{label}", [("int16", [samples])], [("int16", [66])], {"T": 7, "fft_length": 64})


def filter_bank_cases():
    rng = seeded("SignalEnergy")
    spectrum = rng.randint(-32768, 32768, [34])
    spectrum[:4] = -32768, -32768, 32767, 32767
    yield one_op("SignalEnergy", "all", [("int16", [spectrum])], [("uint32", [17])], {"start_index": 0, "end_index": 17})
    rng = seeded("SignalFilterBank")
    energy = rng.randint(0, 1 << 32, [20], dtype=np.uint64)
    weights, unweights = rng.randint(0, 4097, [30]), rng.randint(-4096, 4097, [30])
    tables = [("int16", np.array(t)) for t in ([1, 4, 7, 12, 15], [0, 4, 8, 16, 20], [3, 3, 5, 2, 4])]
    yield one_op("SignalFilterBank", "plain", [("uint32", [energy]), ("int16", weights), ("int16", unweights), *tables],
                 [("uint64", [4])], {"num_channels": 4})
    roots = np.array([0, 1, 2, 3, 4, 6, 7, 12, 13, 1 << 31, (1 << 32) - 1, 65535 ** 2 + 65536, 1 << 32, (1 << 32) + 1,
                      1 << 62, (1 << 64) - 1, 12345678901234567, 999999999999999999], np.uint64)
    roots = np.concatenate([roots, seeded("SignalFilterBankSquareRoot").randint(0, 1 << 40, [14], dtype=np.uint64)])
    for bits in (0, 3, 15):
        yield one_op("SignalFilterBankSquareRoot", f"bits{bits}", [("uint64", [roots]), ("int32", [np.array(bits)])],
                     [("uint32", [len(roots)])], {})


def channel_cases():
    for clamping in (False, True):
        rng = seeded(f"SignalFilterBankSpectralSubtraction {clamping}")
        options = {"alternate_one_minus_smoothing": 15401, "alternate_smoothing": 983, "clamping": clamping,
                   "min_signal_remaining": 819, "num_channels": 7, "one_minus_smoothing": 15975, "smoothing": 409,
                   "smoothing_bits": 10, "spectral_subtraction_bits": 14}
        frames = [(rng.randint(0, 1 << 22, [7]) >> rng.randint(0, 12, [7])) for _ in range(4)]
        frames[3][:2] = 0xFFFFFFFF, 0
        yield one_op("SignalFilterBankSpectralSubtraction", f"clamping_{clamping}".lower(), [("uint32", frames)],
                     [("uint32", [7]), ("uint32", [7])], options, invocations=4)
    rng = seeded("SignalPCAN")
    table = rng.randint(-32768, 32768, [125])
    smooth = (32636 / (1 + np.arange(125))).astype(int)
    noise = np.concatenate([[0, 1, 2, 3, 4, 1023, 1024, 2047, 2048, (1 << 32) - 1], 1 << np.arange(5, 32, 3)])
    signal = rng.randint(0, 1 << 24, [len(noise)], dtype=np.int64)
    signal[5] = (1 << 32) - 1
    for label, lut in (("random_table", table), ("smooth_table", smooth)):
        for shift in (6, 0, 20):
            yield one_op("SignalPCAN", f"{label}_shift{shift}", [("uint32", [signal]), ("uint32", [noise]), ("int16", lut)],
                         [("uint32", [len(noise)])], {"snr_shift": shift})
    values = np.concatenate([np.arange(12), [(1 << 32) - 1, 1 << 31, 1 << 29, (1 << 29) - 1],
                             seeded("SignalFilterBankLog").randint(0, 1 << 32, [40], dtype=np.int64) >> np.arange(40) % 30])
    for bits, scale in ((3, 64), (0, 1600), (0, 65536), (31, 1)):
        yield one_op("SignalFilterBankLog", f"bits{bits}_scale{scale}", [("uint32", [values])], [("int16", [len(values)])],
                     {"input_correction_bits": bits, "output_scale": scale})


def cases():
    yield from window_cases()
    yield from auto_scale_cases()
    yield from rfft_cases()
    yield from filter_bank_cases()
    yield from channel_cases()
