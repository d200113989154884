# SPDX-License-Identifier: Apache-2.0
"""`reef train`, and the program for `torchrun`:  torchrun --nproc_per_node 2 -m reef.train classifier --data photos -o model"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, List, Optional


def _fail(message: str, as_json: bool, kind: str = "invalid_input") -> int:
    if as_json:
        print(json.dumps({"schema_version": 1, "error": {"kind": kind, "message": message, "exit_code": 1}}))
    print(f"reef: {message}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="reef train", description="Train a model for the Edge TPU from your own pictures")
    kinds = parser.add_subparsers(dest="kind", required=True)
    classifier = kinds.add_parser("classifier", help="from a folder with a folder of pictures for each class")
    _add_common(classifier)
    classifier.set_defaults(size=96, epochs=30)
    detector = kinds.add_parser("detector", help="from pictures with boxes, in COCO's, YOLO's or Pascal VOC's form")
    _add_common(detector)
    detector.add_argument("--head", default="yolo", help="yolo or ssd")
    detector.set_defaults(size=128, epochs=60)
    return parser


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--data", required=True, help="the pictures")
    command.add_argument("-o", "--output", required=True, help="folder for the results")
    command.add_argument("--backbone", default="mobilenet", help="mobilenet or efficientnet-lite")
    command.add_argument("--size", type=int, help="pixels a side, a multiple of 16")
    command.add_argument("--width", type=float, default=0.5, help="channels, as a factor")
    command.add_argument("--epochs", type=int, help="of the float network")
    command.add_argument("--qat-epochs", type=int, default=5, help="in the chip's arithmetic")
    command.add_argument("--batch", type=int, default=32, help="pictures in a step, over all processes")
    command.add_argument("--rate", type=float, default=2e-3, help="largest learning rate")
    command.add_argument("--held-back", type=float, default=0.2, help="share of the pictures to test with")
    command.add_argument("--patience", type=int, default=10, help="epochs without a better score after which training ends")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--no-mirror", dest="mirror", action="store_false", help="mirrored pictures are other pictures")
    command.add_argument("--resume", action="store_true", help="go on with a run that did not end")
    command.add_argument("--checkpoint", help="weights to begin with: finished_float.pt of another run, or shipped")
    command.add_argument("--precision", default="auto", help="of the float network: auto, full, mixed or double")
    command.add_argument("--ray-workers", type=int, default=0, help="train by so many workers of Ray Train; 0: in this process")
    command.add_argument("--json", action="store_true", help="print the report as JSON")


def _summary(report: dict) -> str:
    lines = [f"{report['metric']} on {report['test_pictures']} pictures that were not learned from (measured): {100 * report['score']:.1f} % "
             f"in 8 bits, {100 * report['score_float']:.1f} % in float"]
    if "device_pictures" in report:
        lines.append(f"on the virtual Edge TPU, {report['device_pictures']} of them: {100 * report['device_score']:.1f} %, "
                     f"{report['device_codes_differing']} codes differ from training's")
        lines.append(f"written: {report['compiled']}, {report['model']}, labels.txt, training.svg, report.json")
    return "\n".join(lines)


def main(arguments: Optional[List[str]] = None) -> int:
    given = _parser().parse_args(arguments)
    try:
        import onnx  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        return _fail(f"training needs PyTorch and onnx, and Python ({sys.executable}) has no {error.name}: pip install torch onnx, or "
                     "set REEF_PYTHON to a Python that has them", given.json, "not_found")
    from .._library import Error
    from . import TrainRequest, train_classifier, train_detector
    from ._loop import world
    values: Any = {name: value for name, value in vars(given).items() if name not in ("kind", "json", "ray_workers")}
    try:
        if given.ray_workers > 0:
            from ._ray import train_with_ray
            report = train_with_ray(given.kind, TrainRequest(**values), given.ray_workers)
        else:
            report = {"classifier": train_classifier, "detector": train_detector}[given.kind](TrainRequest(**values))
    except Error as error:
        return _fail(str(error), given.json)
    except KeyboardInterrupt:
        return _fail("stopped; the same command with --resume goes on", given.json)
    if world()[0] == 0:
        print(json.dumps({"schema_version": 1, **report}, indent=2) if given.json else _summary(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
