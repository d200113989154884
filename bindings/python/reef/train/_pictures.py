# SPDX-License-Identifier: Apache-2.0
"""Pictures in folders, one folder for each class: found, checked, split, loaded, varied."""

from __future__ import annotations

import hashlib
import os
import pathlib
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from torch import Tensor

from .._library import Error
from ..data import vary
from ..image import load_image

Path = Union[str, "os.PathLike[str]"]
Progress = Callable[[int, int], None]
Box = Tuple[int, float, float, float, float]  # class; centre, width and height as fractions of the picture
SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".bmp", ".webp"))
FEWEST = 2  # of a class: one to learn from, one to test with


@dataclass(frozen=True)
class Pictures:
    """Files with the number of their class."""
    files: List[pathlib.Path]
    labels: List[int]
    class_names: List[str]

    def __len__(self) -> int:
        return len(self.files)

    def only(self, chosen: Sequence[int]) -> "Pictures":
        return Pictures([self.files[i] for i in chosen], [self.labels[i] for i in chosen], self.class_names)


def picture_files(folder: pathlib.Path) -> List[pathlib.Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())


def read_classes(folder: Path) -> Pictures:
    """Every folder in `folder` is a class. Raises reef.Error with what is wrong, and what to do."""
    root = pathlib.Path(folder)
    if not root.is_dir():
        raise Error(f"there is no folder {root}")
    names = sorted(entry.name for entry in root.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if not names:
        loose = len(picture_files(root))
        raise Error(f"{root} has no folders: put the pictures of each class into a folder with the class's name"
                    + (f" ({loose} pictures lie beside each other)" if loose else ""))
    found: Dict[str, List[pathlib.Path]] = {name: picture_files(root / name) for name in names}
    empty = [name for name, files in found.items() if not files]
    if empty:
        raise Error(f"no pictures (JPEG, PNG, BMP, WebP) in {_listed([str(root / name) for name in empty])}")
    if len(names) == 1:
        raise Error(f"{root} has one class, '{names[0]}': a classifier needs two at least; add a folder with other pictures")
    few = [f"'{name}' has {len(files)}" for name, files in found.items() if len(files) < FEWEST]
    if few:
        raise Error(f"a class needs {FEWEST} pictures at least, one of which is kept for testing: {_listed(few)}")
    files = [(path, label) for label, name in enumerate(names) for path in found[name]]
    return Pictures([path for path, _ in files], [label for _, label in files], names)


def _listed(items: Sequence[str], most: int = 5) -> str:
    rest = len(items) - most
    return ", ".join(items[:most]) + (f" and {rest} more" if rest > 0 else "")


def split(pictures: Pictures, share: float) -> Tuple[Pictures, Pictures]:
    """To learn from and to test with: of every class the same share, chosen by the files' names, so that it stays the same."""
    learned: List[int] = []
    tested: List[int] = []
    for label in range(len(pictures.class_names)):
        own = [i for i, value in enumerate(pictures.labels) if value == label]
        own.sort(key=lambda i: hashlib.sha256(pictures.files[i].name.encode()).digest())
        count = min(max(round(len(own) * share), 1), len(own) - 1)
        tested += own[:count]
        learned += own[count:]
    return pictures.only(sorted(learned)), pictures.only(sorted(tested))


def load(files: Sequence[pathlib.Path], size: int, progress: Optional[Progress] = None) -> Tensor:
    """All pictures at one size, uint8 [count, 3, size, size]. Damaged files are an error that names them all."""
    pixels = np.empty((len(files), size, size, 3), dtype=np.uint8)
    damaged: List[str] = []
    for i, path in enumerate(files):
        try:
            pixels[i] = load_image(path, (size, size))
        except Error as error:
            damaged.append(f"{path} ({error})")
        if progress is not None:
            progress(i + 1, len(files))
    if damaged:
        raise Error(f"{len(damaged)} of {len(files)} pictures cannot be read: {_listed(damaged, 3)}; remove or replace them")
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()


def normalized(pixels: Tensor) -> Tensor:
    """uint8 to [-1, 1]: what `--preprocess mean=127.5,std=127.5` means."""
    return (pixels.to(torch.float32) - 127.5) / 127.5


PREPROCESS = "mean=127.5,std=127.5"


def varied(pixels: Tensor, places: Sequence[int], generator: torch.Generator, mirror: bool = True,
           boxes: Optional[Sequence[List[Box]]] = None) -> Tuple[Tensor, Optional[List[List[Box]]]]:
    """Mirrored, moved by up to an eighth, brighter or darker, each at random, by the data pipeline's augmentation; boxes move along, and
    those that move out are dropped. One number is drawn, from which the variation of every picture follows by its place in the
    batch, so that a batch cut over several processes is varied as one."""
    seed = int(torch.randint(0, 1 << 62, (1,), generator=generator))
    channels_last = pixels.permute(0, 2, 3, 1).cpu().numpy()
    before = None if boxes is None else [np.array([(*rest, kind) for kind, *rest in own], np.float64).reshape(-1, 5) for own in boxes]
    result, after = vary(channels_last, places, seed=seed, boxes=before, flip=0.5 if mirror else 0.0, shift=0.125,
                         brightness=20 / 255, contrast=0.2)
    moved = None if after is None else [[(int(row[4]), *map(float, row[:4])) for row in own] for own in after]
    return torch.from_numpy(result).permute(0, 3, 1, 2).to(pixels.device, torch.float32), moved
