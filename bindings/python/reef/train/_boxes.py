# SPDX-License-Identifier: Apache-2.0
"""Pictures with boxes, as COCO, YOLO or Pascal VOC write them: found, checked, as fractions of the picture.

  COCO   a .json file with "images", "annotations", "categories"; pictures anywhere beside or below it
  YOLO   labels/NAME.txt with rows `class cx cy w h` for images/NAME.jpg (or both in one folder); class names in data.yaml or
         classes.txt
  VOC    Annotations/NAME.xml, pictures in JPEGImages or anywhere below
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence, Tuple, Union

from .._library import Error
from ._pictures import Box, picture_files

Path = Union[str, "os.PathLike[str]"]
_BEYOND = 0.02  # of the picture that a box may reach over its border, where it is cut


@dataclass
class Labelled:
    """Pictures, each with its boxes (perhaps none)."""
    files: List[pathlib.Path] = field(default_factory=list)
    boxes: List[List[Box]] = field(default_factory=list)
    class_names: List[str] = field(default_factory=list)
    form: str = ""

    def __len__(self) -> int:
        return len(self.files)


def _checked(box: Sequence[float], where: str) -> Tuple[float, float, float, float]:
    """left, top, right, bottom as fractions -> centre and size, cut at the border."""
    if not all(math.isfinite(value) for value in box):
        raise Error(f"{where}: a box has a value that is no number")
    left, top, right, bottom = box
    if right <= left or bottom <= top:
        raise Error(f"{where}: a box has no area ({right - left:.3f} x {bottom - top:.3f} of the picture)")
    if min(left, top) < -_BEYOND or max(right, bottom) > 1 + _BEYOND:
        raise Error(f"{where}: a box lies outside of the picture (left {left:.3f}, top {top:.3f}, right {right:.3f}, bottom {bottom:.3f}, as "
                    "fractions); are its numbers for another size of the picture?")
    left, top, right, bottom = max(left, 0.0), max(top, 0.0), min(right, 1.0), min(bottom, 1.0)
    return (left + right) / 2, (top + bottom) / 2, right - left, bottom - top


def _from_coco(path: pathlib.Path) -> Labelled:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        categories = sorted((int(c["id"]), str(c["name"])) for c in content["categories"])
        images = {int(i["id"]): (str(i["file_name"]), float(i["width"]), float(i["height"])) for i in content["images"]}
        rows = [(int(a["image_id"]), int(a["category_id"]), [float(v) for v in a["bbox"]]) for a in content["annotations"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Error(f"{path} is no COCO file: {type(error).__name__} {error}") from error
    by_name = {file.name: file for file in picture_files(path.parent.parent if path.parent.name == "annotations" else path.parent)}
    number = {identity: i for i, (identity, _) in enumerate(categories)}
    boxes: Dict[int, List[Box]] = {identity: [] for identity in images}
    for image, category, box in rows:
        if image not in images or category not in number or len(box) != 4:
            raise Error(f"{path}: an annotation names picture {image} and category {category}, which the file does not describe")
        name, width, height = images[image]
        x, y, w, h = box
        boxes[image].append((number[category], *_checked((x / width, y / height, (x + w) / width, (y + h) / height), name)))
    missing = [name for name, _, _ in images.values() if pathlib.Path(name).name not in by_name]
    if missing:
        raise Error(f"{path} names {len(missing)} pictures that are not there: {', '.join(missing[:3])}")
    files = [by_name[pathlib.Path(images[identity][0]).name] for identity in images]
    return Labelled(files, [boxes[identity] for identity in images], [name for _, name in categories], "COCO")


def _yolo_names(root: pathlib.Path) -> List[str]:
    for name in ("classes.txt", "obj.names"):
        if (root / name).is_file():
            return [line.strip() for line in (root / name).read_text(encoding="utf-8").splitlines() if line.strip()]
    for path in sorted(root.glob("*.yaml")):
        names: List[str] = []
        inside = False
        for line in path.read_text(encoding="utf-8").splitlines():  # only what this needs of YAML
            if line.startswith("names:"):
                inside, rest = True, line[6:].strip()
                if rest.startswith("["):
                    return [word.strip().strip("'\"") for word in rest.strip("[]").split(",") if word.strip()]
            elif inside and line[:1] in (" ", "-"):
                names.append(line.strip().lstrip("-").split(":")[-1].strip().strip("'\""))
            elif line.strip():
                inside = False
        if names:
            return names
    return []


def _from_yolo(root: pathlib.Path, texts: Dict[str, pathlib.Path]) -> Labelled:
    names, result, largest = _yolo_names(root), Labelled(form="YOLO"), -1
    for picture in picture_files(root):
        boxes: List[Box] = []
        text = texts.get(picture.stem)
        for number, line in enumerate(text.read_text(encoding="utf-8").splitlines() if text else [], 1):
            if not line.strip():
                continue
            where = f"{text}, line {number}"
            try:
                values = [float(word) for word in line.split()]
                kind, x, y, w, h = int(values[0]), *values[1:5]
            except (ValueError, IndexError) as error:
                raise Error(f"{where}: a row is `class cx cy width height`, not '{line.strip()[:60]}'") from error
            if kind < 0 or (names and kind >= len(names)):
                raise Error(f"{where}: there is no class {kind}; {len(names)} are named")
            largest = max(largest, kind)
            boxes.append((kind, *_checked((x - w / 2, y - h / 2, x + w / 2, y + h / 2), where)))
        result.files.append(picture)
        result.boxes.append(boxes)
    result.class_names = names or [f"class {i}" for i in range(largest + 1)]
    return result


def _from_voc(root: pathlib.Path, documents: List[pathlib.Path]) -> Labelled:
    pictures = {file.stem: file for file in picture_files(root)}
    found: List[Tuple[pathlib.Path, List[Tuple[str, Tuple[float, float, float, float]]]]] = []
    for path in documents:
        try:
            tree = ElementTree.parse(path).getroot()
            width, height = (float(tree.findtext(f"size/{side}", "0")) for side in ("width", "height"))
            rows = [(thing.findtext("name", "").strip(), [float(thing.findtext(f"bndbox/{edge}", "nan"))
                                                          for edge in ("xmin", "ymin", "xmax", "ymax")])
                    for thing in tree.iter("object")]
        except (ElementTree.ParseError, OSError, ValueError) as error:
            raise Error(f"{path} is no Pascal VOC file: {error}") from error
        if width <= 0 or height <= 0:
            raise Error(f"{path} does not say how large its picture is")
        if path.stem not in pictures:
            raise Error(f"{path} describes a picture that is not there: {tree.findtext('filename', path.stem)}")
        boxes = [(name, _checked((x0 / width, y0 / height, x1 / width, y1 / height), str(path))) for name, (x0, y0, x1, y1) in rows]
        found.append((pictures[path.stem], boxes))
    names = sorted({name for _, boxes in found for name, _ in boxes})
    return Labelled([file for file, _ in found], [[(names.index(name), *box) for name, box in boxes] for _, boxes in found], names,
                    "Pascal VOC")


def _coco_file(root: pathlib.Path) -> Optional[pathlib.Path]:
    candidates = [root] if root.suffix == ".json" else sorted(root.glob("*.json")) + sorted(root.glob("annotations/*.json"))
    if len(candidates) > 1:
        raise Error(f"{root} has several .json files; name the one to learn from with --data")
    return candidates[0] if candidates else None


def read_boxes(data: Path) -> Labelled:
    """Pictures with boxes; the form is told by the files. Raises reef.Error with what is wrong and where."""
    root = pathlib.Path(data)
    if not root.exists():
        raise Error(f"there is no {root}")
    coco = _coco_file(root)
    documents = sorted(root.rglob("*.xml")) if root.is_dir() else []
    texts = {path.stem: path for path in sorted(root.rglob("*.txt")) if path.name not in ("classes.txt",)} if root.is_dir() else {}
    if coco is not None:
        result = _from_coco(coco)
    elif documents:
        result = _from_voc(root, documents)
    elif texts:
        result = _from_yolo(root, texts)
    else:
        raise Error(f"{root} has no boxes: neither a .json file (COCO), nor labels/*.txt (YOLO), nor .xml files (Pascal VOC)")
    count = sum(1 for boxes in result.boxes if boxes)
    if count < 2:
        raise Error(f"{root} has {count} pictures with boxes; two are needed at least, one of which is kept for testing")
    return result
