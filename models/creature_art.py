# SPDX-License-Identifier: Apache-2.0
"""Draws the sea creatures that Reef's own demo model is trained on.

Problem: a demo and its tests need labelled pictures whose origin and licence are beyond doubt.
Approach: every picture is drawn from random numbers. Each creature is a function that paints
vector shapes in its own coordinates (x right, y down, the creature within about [-1, 1]); a Brush
maps those through a random rotation, mirror, scale and shift onto a canvas. draw_scene() puts water
behind it, weeds, rocks and bubbles before it, and camera noise over all.

The same (seed, class, size) gives the same picture with the same Pillow and NumPy. Other versions of
Pillow may fill edges differently by a pixel, so pictures that tests rely on are shipped as files.

Requires: pillow, numpy (pip names).
"""

import colorsys
import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

SUPERSAMPLE = 2  # shapes are drawn this much larger, then averaged down: anti-aliased edges


def hsv(hue, saturation, value):
    """An 8-bit RGB colour; hue in turns and cyclic, saturation and value clipped to [0, 1]."""
    clipped = (min(max(saturation, 0.0), 1.0), min(max(value, 0.0), 1.0))
    return tuple(round(255 * c) for c in colorsys.hsv_to_rgb(hue % 1.0, *clipped))


def shade(colour, factor):
    """Darker (factor < 1) or lighter (factor > 1, towards white) variant of a colour."""
    if factor <= 1.0:
        return tuple(round(c * factor) for c in colour)
    return tuple(round(255 - (255 - c) / factor) for c in colour)


def smooth(points, closed, steps=6):
    """Catmull-Rom curve through the points: organic outlines from a few control points."""
    p = np.asarray(points, dtype=float)
    p = np.vstack([p[-1], p, p[:2]]) if closed else np.vstack([p[0], p, p[-1]])
    t = (np.arange(steps) / steps)[:, None]
    pieces = [
        0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)
        for a, b, c, d in zip(p[:-3], p[1:-2], p[2:-1], p[3:])
    ]
    return np.vstack(pieces if closed else pieces + [p[-1:]])


class Brush:
    """Paints shapes given in creature coordinates onto a Pillow image."""

    def __init__(self, image, centre, unit, angle=0.0, mirror=False):
        self.draw = ImageDraw.Draw(image, "RGBA" if image.mode == "RGB" else None)
        self.centre, self.unit = np.asarray(centre, dtype=float), unit  # unit: pixels per 1.0
        c, s = math.cos(angle), math.sin(angle)
        flip = -1.0 if mirror else 1.0
        self.matrix = np.array([[c * flip, -s], [s * flip, c]])

    def place(self, points):
        mapped = np.asarray(points, dtype=float) @ self.matrix.T * self.unit + self.centre
        return [tuple(p) for p in mapped]

    def poly(self, points, fill, edge=None, edge_width=0.03):
        self.draw.polygon(self.place(points), fill=fill)
        if edge is not None:
            self.line(list(points) + [points[0]], edge_width, edge)

    def line(self, points, width, fill):
        pixels = self.place(points)
        thick = max(1, round(width * self.unit))
        self.draw.line(pixels, fill=fill, width=thick, joint="curve")
        for x, y in (pixels[0], pixels[-1]):  # round caps
            r = thick / 2
            self.draw.ellipse((x - r, y - r, x + r, y + r), fill=fill)

    def oval(self, x, y, rx, ry, fill, edge=None, turn=0.0):
        a = np.linspace(0, 2 * math.pi, 28, endpoint=False)
        ex, ey = rx * np.cos(a), ry * np.sin(a)
        c, s = math.cos(turn), math.sin(turn)
        self.poly(np.stack([x + ex * c - ey * s, y + ex * s + ey * c], axis=1), fill, edge)

    def eye(self, x, y, r):
        self.oval(x, y, r, r, (250, 250, 245), (20, 20, 25))
        self.oval(x, y, r * 0.55, r * 0.55, (15, 15, 20))

    def tapered(self, points, widths, fill, grow=0.0):
        """A limb: discs of changing width along a path, dense enough to look like one shape."""
        path = smooth(points, closed=False, steps=8)
        along = np.interp(np.linspace(0, 1, len(path)), np.linspace(0, 1, len(widths)), widths)
        for (x, y), w in zip(path, along):
            self.oval(x, y, w / 2 + grow, w / 2 + grow, fill)
        return path, along


def fish(b, rng, main, second):
    dark, h = shade(main, 0.45), rng.uniform(0.3, 0.5)
    t = np.linspace(0, 1, 9)
    profile = h * np.sin(math.pi * t**0.8) ** 0.75 + 0.07 * t
    x = 0.75 - 1.25 * t
    fork, spread = rng.uniform(0.0, 0.22), rng.uniform(0.34, 0.5)
    b.poly([(-0.42, 0), (-0.95, -spread), (-0.95 + fork, 0), (-0.95, spread)], second, dark)
    top_fin = [(0.3, -h * 0.8), (0.0, -h - rng.uniform(0.15, 0.3)), (-0.35, -h * 0.75), (-0.2, -h * 0.4)]
    b.poly(smooth(top_fin, True), second, dark)
    b.poly(smooth([(0.15, h * 0.8), (-0.15, h + 0.2), (-0.25, h * 0.6)], True), second, dark)
    outline = np.vstack([np.stack([x, -profile], 1), np.stack([x, profile], 1)[::-1]])
    b.poly(smooth(outline, True), main)
    stripes = int(rng.integers(0, 4))
    for k in range(stripes):
        sx = 0.2 - 0.25 * k
        half = np.interp(-sx, -x, profile) * 0.93
        b.line(smooth([(sx, -half), (sx + 0.05, 0), (sx, half)], False), 0.09, second)
    b.line(np.vstack([smooth(outline, True), outline[:1]]), 0.035, dark)
    b.line(smooth([(0.33, -h * 0.5), (0.27, 0), (0.33, h * 0.5)], False), 0.03, dark)  # gill
    b.poly(smooth([(0.12, 0.06), (-0.15, 0.2), (-0.1, 0.02)], True), shade(second, 0.8), dark, 0.02)
    b.line([(0.76, 0.05), (0.62, 0.09)], 0.03, dark)
    b.eye(0.5, -0.1, 0.085)


def starfish(b, rng, main, second):
    arms, valley = int(rng.choice([5, 5, 5, 6])), rng.uniform(0.3, 0.42)
    outline = []
    for k in range(arms):
        a = 2 * math.pi * k / arms + rng.uniform(-0.08, 0.08)
        reach, half = rng.uniform(0.88, 1.0), math.pi / arms
        for turn, r in ((-0.1, reach * 0.93), (0.0, reach), (0.1, reach * 0.93), (half, valley)):
            outline.append((r * math.sin(a + turn), -r * math.cos(a + turn)))
    b.poly(smooth(outline, True), main, shade(main, 0.5), 0.045)
    for tip in outline[1::4]:
        tip = np.array(tip)
        b.line([(0, 0), tip * 0.8], 0.03, shade(main, 0.72))
        for t in (0.25, 0.45, 0.63, 0.8):
            r = 0.075 * (1.15 - t)
            b.oval(*(tip * t), r, r, second)
    b.oval(0, 0, 0.1, 0.1, second)


def jellyfish(b, rng, main, second):
    dark, rx, ry = shade(main, 0.6), rng.uniform(0.5, 0.68), rng.uniform(0.5, 0.65)
    rim = -0.1
    for k, x in enumerate(np.linspace(-0.82, 0.82, int(rng.integers(6, 10))) * rx):
        length, wave, phase = rng.uniform(0.6, 1.05), rng.uniform(0.04, 0.1), rng.uniform(0, 6.28)
        y = np.linspace(0, length, 9)
        path = np.stack([x * (1 + 0.25 * y) + wave * y / length * np.sin(phase + 7 * y), rim + y], 1)
        b.line(smooth(path, False), 0.035, second if k % 2 else dark)
    for x in (-0.16, 0.14):  # oral arms: short, thick, frilly
        y = np.linspace(0, rng.uniform(0.45, 0.65), 7)
        b.tapered(np.stack([x + 0.06 * np.sin(12 * y + x * 40), rim + y], 1), (0.2, 0.14, 0.05), shade(main, 1.5))
    a = np.linspace(math.pi, 2 * math.pi, 13)
    dome = [(rx * math.cos(t), rim + ry * 1.2 * math.sin(t)) for t in a]
    lobes = 6
    frill = [(rx * (1 - 2 * k / (2 * lobes)), rim + (0.1 if k % 2 else -0.01)) for k in range(1, 2 * lobes)]
    b.poly(smooth(dome + frill, True, 4), main, dark)
    b.poly(smooth([(x * 0.72, rim + (y - rim) * 0.76 - 0.06) for x, y in dome], True, 4), shade(main, 1.35))
    for x, y in ((-0.2, -0.3), (0.2, -0.3), (0.0, -0.42)):
        b.oval(x * rx / 0.6, y, 0.1, 0.075, second)


def crab(b, rng, main, second):
    dark, tall = shade(main, 0.5), rng.uniform(0.3, 0.4)
    for side in (-1, 1):
        for k in range(int(rng.integers(3, 5))):
            y, kink = 0.02 + 0.1 * k, rng.uniform(-0.03, 0.03)
            knee = (side * (0.8 - 0.05 * k), y - 0.1 + 0.1 * k + kink)
            leg = [(side * 0.35, y), knee, (side * (0.95 - 0.1 * k), y + 0.3)]
            b.line(leg, 0.085, dark)
            b.line(leg, 0.055, main)
        lift = rng.uniform(-0.08, 0.08)
        arm = smooth([(side * 0.4, -0.1), (side * 0.75, -0.15), (side * 0.7, -0.45 + lift)], False)
        b.line(arm, 0.12, dark)
        b.line(arm, 0.085, main)
        cx, cy, size = side * 0.66, -0.62 + lift, rng.uniform(0.2, 0.27)
        opening = rng.uniform(0.28, 0.5)  # half angle of the claw's gap, radians
        up = -math.pi / 2 - side * 0.35
        arc = np.linspace(up + opening, up + 2 * math.pi - opening, 20)
        claw = [(cx + size * math.cos(t), cy + 1.2 * size * math.sin(t)) for t in arc]
        b.poly([(cx, cy + 0.03)] + claw, main, dark)
        b.line([(side * 0.14, -tall * 0.8), (side * 0.17, -tall - 0.16)], 0.055, dark)
    body = [(-0.52, -0.1), (-0.3, -tall), (0.3, -tall), (0.52, -0.1), (0.34, 0.33), (-0.34, 0.33)]
    b.poly(smooth(body, True), main, dark)
    for x, y, r in ((-0.22, -0.08, 0.06), (0.22, -0.08, 0.06), (0, -0.18, 0.05), (0, 0.05, 0.05)):
        b.oval(x, y, r, r * 0.8, second)
    b.line(smooth([(-0.14, 0.19), (0, 0.24), (0.14, 0.19)], False), 0.03, dark)
    for side in (-1, 1):
        b.eye(side * 0.17, -tall - 0.18, 0.08)


def coral(b, rng, main, second):
    dark, twigs = shade(main, 0.5), []

    def grow(x, y, direction, length, width, level):
        ex, ey = x + length * math.sin(direction), y - length * math.cos(direction)
        twigs.append(((x, y), (ex, ey), width, level))
        if level == 0:
            return
        spread = rng.uniform(0.3, 0.5)
        turns = (-spread, spread) if level < 3 else (-spread * 2, rng.uniform(-0.15, 0.15), spread * 2)
        for turn in turns:
            grow(ex, ey, direction * 0.85 + turn, length * rng.uniform(0.75, 1.0), width * 0.72, level - 1)

    grow(0, 0.85, rng.uniform(-0.1, 0.1), rng.uniform(0.42, 0.52), 0.2, 3)
    for (start, end, width, _) in twigs:
        b.line([start, end], width + 0.05, dark)
    for (start, end, width, _) in twigs:
        b.line([start, end], width, main)
    for (start, end, width, level) in twigs:
        b.line([start, end], width * 0.25, shade(main, 1.3))
        if level == 0:
            b.oval(*end, width * 0.45, width * 0.45, second)
    rock = hsv(rng.uniform(0.05, 0.12), 0.25, rng.uniform(0.3, 0.5))
    mound = [(-0.55, 1.0), (-0.35, 0.78), (0.05, 0.7), (0.4, 0.8), (0.55, 1.0), (0.0, 1.04)]
    b.poly(smooth(mound, True), rock, shade(rock, 0.6))


def seahorse(b, rng, main, second):
    dark, bend = shade(main, 0.5), rng.uniform(-0.05, 0.05)
    body = [(0.08, -0.72), (-0.14, -0.62), (-0.2, -0.42), (-0.02, -0.18), (0.06, 0.08 + bend)]
    tail = [(-0.06, 0.35), (-0.18, 0.58), (-0.12, 0.82), (0.1, 0.92)]
    curl = [(0.3, 0.8), (0.3, 0.6), (0.16, 0.56), (0.13, 0.68)]
    widths = (0.3, 0.3, 0.26, 0.4, 0.46, 0.34, 0.2, 0.16, 0.14, 0.12, 0.1, 0.08, 0.06)
    snout = [(0.1, -0.68), (0.35, -0.6), (0.55, -0.54)]
    b.poly(smooth([(-0.15, -0.05), (-0.5, -0.15), (-0.5, 0.2), (-0.22, 0.25)], True), second, dark)  # back fin
    for k in range(4):  # crest
        x, y = -0.08 - 0.08 * k, -0.84 + 0.1 * k
        b.poly([(x + 0.08, y + 0.04), (x - 0.07, y - 0.13), (x - 0.02, y + 0.14)], second, dark, 0.02)
    for colour, grow in ((dark, 0.03), (main, 0.0)):
        b.tapered(snout, (0.2, 0.12, 0.13), colour, grow)
        path, across = b.tapered(body + tail + curl, widths, colour, grow)
    for k in range(20, 76, 5):  # bony rings
        tangent = path[k + 1] - path[k - 1]
        normal = np.array([-tangent[1], tangent[0]]) / (np.hypot(*tangent) + 1e-9) * across[k] * 0.46
        b.line([path[k] - normal, path[k] + normal], 0.025, shade(main, 0.7))
    b.eye(0.08, -0.74, 0.075)


def shell(b, rng, main, second):
    dark, ribs, half = shade(main, 0.5), int(rng.integers(7, 11)), rng.uniform(0.95, 1.15)
    hinge = np.array([0.0, 0.75])

    def rim_point(angle, radius):
        return hinge + radius * np.array([math.sin(angle), -math.cos(angle) * 0.98])

    def fan(scale, bump):
        angles = np.linspace(-half, half, 2 * ribs + 1)
        reach = scale * (1.45 - 0.32 * np.abs(angles / half) ** 2.2)
        reach[1::2] += bump
        reach[0::2] -= bump
        return smooth([rim_point(a, r) for a, r in zip(angles, reach)], False, 4)

    ears = rng.uniform(0.3, 0.4)
    b.poly([(-ears, 0.86), (-ears * 0.8, 0.5), (ears * 0.8, 0.5), (ears, 0.86)], shade(main, 0.8), dark)
    b.poly(np.vstack([fan(1.0, 0.035), hinge[None] + [[0.1, 0.08]], hinge[None] + [[-0.1, 0.08]]]), main, dark, 0.04)
    for scale in rng.permutation([0.85, 0.66, 0.47])[: int(rng.integers(1, 4))]:
        b.line(fan(scale, 0.02), 0.07, second)
    for angle in np.linspace(-half, half, 2 * ribs + 1)[2:-1:2]:
        b.line([hinge, rim_point(angle, 1.4 - 0.32 * abs(angle / half) ** 2.2)], 0.028, dark)


def turtle(b, rng, main, second):
    skin, dark = second, shade(second, 0.5)
    swing = rng.uniform(-0.12, 0.12)
    for side in (-1, 1):
        paddle = [(0.62, -0.62), (0.98, -0.4), (0.92, -0.3), (0.66, -0.34)]
        front = [(0.3, -0.38)] + [(x, y + swing) for x, y in paddle] + [(0.38, -0.14)]
        back = [(0.26, 0.42), (0.56, 0.58 - swing), (0.62, 0.86 - swing), (0.48, 0.84 - swing), (0.16, 0.6)]
        for limb in (front, back):
            b.poly(smooth([(side * x, y) for x, y in limb], True), skin, dark)
    b.poly([(-0.07, 0.6), (0, 0.92), (0.07, 0.6)], skin, dark)
    b.oval(0, -0.74, 0.17, 0.22, skin, dark)
    for side in (-1, 1):
        b.oval(side * 0.1, -0.82, 0.035, 0.045, (15, 15, 20))
    wide = rng.uniform(0.46, 0.54)
    b.oval(0, 0.03, wide, 0.64, shade(main, 0.7), shade(main, 0.35))
    b.oval(0, 0.03, wide * 0.86, 0.56, main)
    seam = shade(main, 0.45)
    for y in (-0.28, 0.04, 0.36):  # the middle row of scutes, with seams to the rim
        r = 0.19
        plate = [(r * math.cos(a), y + 0.17 * math.sin(a)) for a in np.arange(6) * math.pi / 3]
        b.poly(plate, shade(main, 1.35), seam)
        for side in (-1, 1):
            b.line([(side * r, y), (side * wide * 0.92, y * 1.05)], 0.03, seam)


# name: (painter, natural hue range in turns, largest tilt in radians, opacity range)
CREATURES = {
    "coral": (coral, (0.90, 1.12), 0.25, (1.0, 1.0)),
    "crab": (crab, (-0.04, 0.10), 0.6, (1.0, 1.0)),
    "fish": (fish, (-0.05, 0.65), 0.6, (1.0, 1.0)),
    "jellyfish": (jellyfish, (0.70, 0.98), 0.7, (0.7, 0.92)),
    "seahorse": (seahorse, (0.05, 0.17), 0.4, (1.0, 1.0)),
    "shell": (shell, (0.92, 1.15), math.pi, (1.0, 1.0)),
    "starfish": (starfish, (-0.03, 0.13), math.pi, (1.0, 1.0)),
    "turtle": (turtle, (0.20, 0.45), math.pi, (1.0, 1.0)),
}
LABELS = sorted(CREATURES)


def water(rng, width, height):
    """Backdrop: a depth gradient with soft blotches, perhaps sun rays and a sandy bed."""
    hue, value = rng.uniform(0.46, 0.66), rng.uniform(0.45, 0.95)
    top = np.array(hsv(hue, rng.uniform(0.35, 0.8), value), dtype=float)
    deep_hue, deep_value = hue + rng.uniform(-0.03, 0.06), value * rng.uniform(0.3, 0.7)
    deep = np.array(hsv(deep_hue, rng.uniform(0.6, 0.95), deep_value), dtype=float)
    t = np.linspace(0, 1, height)[:, None, None]
    coarse = Image.fromarray(rng.integers(0, 256, (6, 8), dtype=np.uint8))
    blotches = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), dtype=float)[..., None] - 128
    pixels = top + (deep - top) * t + blotches * rng.uniform(0.02, 0.14)
    image = Image.fromarray(np.clip(np.broadcast_to(pixels, (height, width, 3)), 0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(image, "RGBA")
    for _ in range(int(rng.integers(0, 4))):  # sun rays
        x, w, lean = rng.uniform(0, width), rng.uniform(8, 40), rng.uniform(-0.5, 0.5) * height
        ray = [(x, 0), (x + w, 0), (x + 2 * w + lean, height), (x - w + lean, height)]
        draw.polygon(ray, fill=(255, 255, 240, int(rng.integers(8, 30))))
    if rng.random() < 0.5:
        sand = hsv(rng.uniform(0.08, 0.15), rng.uniform(0.2, 0.5), value * rng.uniform(0.6, 0.95))
        level = height * rng.uniform(0.78, 0.95)
        ridge = smooth([(x, level + rng.uniform(-8, 8)) for x in np.linspace(-10, width + 10, 7)], False)
        draw.polygon([tuple(p) for p in ridge] + [(width + 10, height), (-10, height)], fill=sand)
    return image


def weed(image, rng, x, reach):
    """One strand of seaweed from the bottom edge, `reach` pixels tall."""
    width, height = image.size
    colour = hsv(rng.uniform(0.22, 0.45), rng.uniform(0.5, 0.9), rng.uniform(0.2, 0.6))
    y = np.linspace(height + 4, height - reach, 8)
    sway = rng.uniform(4, 14) * np.sin(rng.uniform(0, 6.28) + np.linspace(0, rng.uniform(3, 7), 8))
    strand = Brush(image, (0, 0), 1.0)
    strand.tapered(np.stack([x + sway, y], 1), (rng.uniform(7, 14), 3), colour)


def bubbles(image, rng, most):
    draw = ImageDraw.Draw(image, "RGBA")
    for _ in range(int(rng.integers(0, most + 1))):
        x, y, r = rng.uniform(0, image.width), rng.uniform(0, image.height), rng.uniform(3, 15)
        draw.ellipse((x - r, y - r, x + r, y + r), fill=(220, 240, 255, 45), outline=(240, 250, 255, 170), width=2)
        draw.ellipse((x - r * 0.5, y - r * 0.5, x - r * 0.1, y - r * 0.1), fill=(255, 255, 255, 200))


def camera(image, rng):
    """Exposure, blur and sensor noise, at final resolution."""
    if rng.random() < 0.3:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 0.9)))
    pixels = np.asarray(image, dtype=float)
    pixels = (pixels - 128) * rng.uniform(0.8, 1.15) + 128 + rng.uniform(-18, 18)
    pixels += rng.normal(0, rng.uniform(0.5, 7), pixels.shape)
    return Image.fromarray(np.clip(np.rint(pixels), 0, 255).astype(np.uint8))


def add_creature(scene, rng, name, sizes=(0.25, 0.49)):
    """Paints the creature into the scene, its radius `sizes` of the shorter side. Where it is: an image of opacities."""
    painter, hues, tilt, opacity = CREATURES[name]
    w, h = scene.size
    hue = rng.uniform(*hues) if rng.random() < 0.6 else rng.random()
    main = hsv(hue, rng.uniform(0.45, 0.95), rng.uniform(0.65, 1.0))
    second = hsv(hue + rng.choice([0.08, -0.08, 0.3, 0.5]), rng.uniform(0.2, 0.9), rng.uniform(0.6, 1.0))
    unit = min(w, h) * rng.uniform(*sizes)
    centre = [side / 2 + rng.uniform(-1, 1) * max(0.0, side / 2 - unit * 0.92) for side in (w, h)]
    if name == "coral":  # it grows on the sea bed
        centre[1] = h - unit * rng.uniform(0.8, 1.0)
    layer = Image.new("RGBA", (w, h), main + (0,))
    painter(Brush(layer, centre, unit, rng.uniform(-tilt, tilt), rng.random() < 0.5), rng, main, second)
    haze = rng.uniform(0.0, 0.4)  # distance through water: the creature fades towards the scene
    strength = rng.uniform(*opacity) * (1 - haze)
    scene.paste(layer.convert("RGB"), (0, 0), layer.getchannel("A").point([round(a * strength) for a in range(256)]))
    return layer.getchannel("A")


def draw_scene(name, seed, width, height):
    """One width x height RGB picture of the creature `name`, or of empty water for None; seed: sequence of integers."""
    rng = np.random.default_rng(seed)
    w, h = width * SUPERSAMPLE, height * SUPERSAMPLE
    scene = water(rng, w, h)
    for _ in range(int(rng.integers(0, 3))):
        weed(scene, rng, rng.uniform(0, w), rng.uniform(0.15, 0.6) * h)
    bubbles(scene, rng, 6)
    if name is not None:
        add_creature(scene, rng, name)
    for _ in range(int(rng.choice([0, 0, 1, 2]))):  # something in front of it
        weed(scene, rng, rng.uniform(0.1, 0.9) * w, rng.uniform(0.3, 0.8) * h)
    bubbles(scene, rng, 5)
    return camera(scene.resize((width, height), Image.Resampling.BOX), rng)
