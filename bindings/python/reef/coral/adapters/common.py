# SPDX-License-Identifier: Apache-2.0
"""As pycoral.adapters.common: input and output tensors of an interpreter."""

from __future__ import annotations

from typing import Any, Callable, Tuple

import numpy as np

from reef.interpreter import Interpreter


def output_tensor(interpreter: Interpreter, i: int) -> np.ndarray:
    """Output i, without a copy."""
    return interpreter.tensor(interpreter.get_output_details()[i]["index"])()


def input_details(interpreter: Interpreter, key: str) -> Any:
    """Of the first input: "name", "shape", "quantization", ..."""
    return interpreter.get_input_details()[0][key]


def input_size(interpreter: Interpreter) -> Tuple[int, int]:
    """Width and height of the first input, a picture."""
    _, height, width, _ = input_details(interpreter, "shape")
    return int(width), int(height)


def input_tensor(interpreter: Interpreter) -> np.ndarray:
    """The first input's picture, [height, width, channels], without a copy."""
    return interpreter.tensor(input_details(interpreter, "index"))()[0]


def set_input(interpreter: Interpreter, data: Any) -> None:
    """Copies a picture (an array or a PIL image) of the right size into the first input."""
    input_tensor(interpreter)[:, :] = np.asarray(data)


def set_resized_input(interpreter: Interpreter, size: Tuple[int, int],
                      resize: Callable[[Tuple[int, int]], Any]) -> Tuple[Any, Tuple[float, float]]:
    """Fits a picture of (width, height) `size` into the first input, its proportions kept, the rest black.

    resize((width, height)) must give the picture in that size. Returns what it gave, and the factors by which x and y
    shrank: detect.get_objects() takes those as image_scale.
    """
    width, height = input_size(interpreter)
    w, h = size
    scale = min(width / w, height / h)
    w, h = int(w * scale), int(h * scale)
    tensor = input_tensor(interpreter)
    tensor.fill(0)
    result = resize((w, h))
    tensor[:h, :w] = np.reshape(result, (h, w, tensor.shape[2]))
    return result, (scale, scale)
