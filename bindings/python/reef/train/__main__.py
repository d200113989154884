# SPDX-License-Identifier: Apache-2.0
"""`reef train`, and the program for `torchrun`:  torchrun --nproc_per_node 2 -m reef.train classifier --data photos -o model"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, List, Optional

# Exit codes that the command `reef train` knows.
NO_FRAMEWORK = 42


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="reef train", description="Train a model for the Edge TPU from your own pictures")
    kinds = parser.add_subparsers(dest="kind", required=True)
    classifier = kinds.add_parser("classifier", help="from a folder with a folder of pictures for each class")
    _add_common(classifier)
    classifier.set_defaults(size=96, epochs=30)
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
    command.add_argument("--checkpoint", help="weights to begin with: finished_float.pt of another run")
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
        print(f"training needs PyTorch and onnx, and {error.name} is not installed: pip install torch onnx", file=sys.stderr)
        return NO_FRAMEWORK
    from .._library import Error
    from . import TrainRequest, train_classifier
    from ._loop import world
    values: Any = {name: value for name, value in vars(given).items() if name not in ("kind", "json")}
    try:
        report = train_classifier(TrainRequest(**values))
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if world()[0] == 0:
        print(json.dumps(report, indent=2) if given.json else _summary(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
