# SPDX-License-Identifier: Apache-2.0
"""Pictures for pretrained models: those of a folder, and scenes with faces.

A face detector that sees no faces gives out hardly a score above its threshold, and what is left of none says nothing. The wheel
of `scikit-image` has 100 faces (a part of Labeled Faces in the Wild, 25 x 25 pixels, grey), that of `insightface` a photograph of
six people. Scenes are made of them: up to three of the small faces, enlarged and tinted, on a picture of the folder, or
a window of the photograph.
"""

import io
import pathlib
import zipfile

import numpy as np

PHOTOGRAPHED = ((60, 170), (175, 100), (265, 155), (395, 185), (490, 60), (590, 165))  # faces of t1.jpg, of 640 x 443


def out_of_wheel(folder, part, name):
    for wheel in sorted(pathlib.Path(folder).glob(f"{part}-*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.namelist():
                if entry.endswith(name):
                    return io.BytesIO(archive.read(entry))
    return None


def resized(picture, height, width):
    from PIL import Image

    clipped = np.clip(picture, 0, 255).astype(np.uint8)
    return np.asarray(Image.fromarray(clipped).resize((width, height), Image.BICUBIC), np.float32)


class Pictures:
    def __init__(self, folder, wheels):
        files = pathlib.Path(folder).rglob("*") if folder else []
        self.files = sorted(p for p in files if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
        self.wheels = wheels
        self.small_faces = self.photograph = None

    def __call__(self, i, height, width):
        if not self.files:
            random = np.random.default_rng(i)
            blocks = np.kron(random.uniform(0, 255, (8, 8, 3)), np.ones((height // 8 + 1, width // 8 + 1, 1)))
            return blocks[:height, :width]
        from PIL import Image

        file = self.files[i * 7919 % len(self.files)]
        return np.asarray(Image.open(file).convert("RGB").resize((width, height)), np.float32)

    def faces(self, i, height, width):
        """A scene with faces; without the wheels that have some, any picture."""
        if self.small_faces is None:
            data = out_of_wheel(self.wheels, "scikit_image", "lfw_subset.npy")
            self.small_faces = np.load(data)[:100] * 255.0 if data else np.zeros((0, 25, 25))
            data = out_of_wheel(self.wheels, "insightface", "t1.jpg")
            if data:
                from PIL import Image

                self.photograph = np.asarray(Image.open(data).convert("RGB").resize((640, 443)), np.float32)
        random = np.random.default_rng(10_000 + i)
        if self.photograph is not None and i % 4 == 0:
            return self.window(random, height, width)
        scene = self(i, height, width).copy()
        for k in range(random.integers(1, 4) if len(self.small_faces) else 0):
            face = self.small_faces[(i + 37 * k) % len(self.small_faces)]
            side = int(random.uniform(0.2, 0.6) * min(height, width))
            tint = np.array([1.1, 0.95, 0.8]) if random.random() < 0.7 else np.ones(3)
            face = resized(np.repeat(face[..., None], 3, 2) * tint * random.uniform(0.7, 1.2), side, side)
            y, x = random.integers(0, height - side), random.integers(0, width - side)
            scene[y : y + side, x : x + side] = face[:, :: -1 if random.random() < 0.5 else 1]
        return scene

    def window(self, random, height, width):
        side = int(random.uniform(110, 420))
        x, y = PHOTOGRAPHED[random.integers(len(PHOTOGRAPHED))]
        left = int(np.clip(x - side * random.uniform(0.3, 0.7), 0, 640 - side))
        top = int(np.clip(y - side * random.uniform(0.3, 0.7), 0, 443 - side))
        part = self.photograph[top : top + side, left : left + side] * random.uniform(0.6, 1.2)
        return resized(part[:, :: -1 if random.random() < 0.5 else 1], height, width)
