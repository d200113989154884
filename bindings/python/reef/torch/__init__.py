# SPDX-License-Identifier: Apache-2.0
"""Training for the Edge TPU with PyTorch: quantization-aware training whose forward pass is the chip's arithmetic.

    import reef.torch
    qat = reef.torch.prepare_qat(model, example_input, calibration=samples)
    ... train qat like any module ...
    reef.torch.convert(qat, "model_int8.tflite")
    reef.compile("model_int8.tflite")

Needs PyTorch (`pip install torch onnx`); nothing else of Reef does. docs/train.md explains it.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as _error:
    raise ImportError("reef.torch needs PyTorch, which is not installed: pip install torch onnx") from _error

from ._convert import ConvertResult, convert, device_codes, random_codes
from ._finetune import distillation_loss, finetune, recover
from ._module import QatModel
from ._pictures import PictureBatches
from ._prepare import from_quantized, prepare_qat
from ._training import parameter_groups
from ._write_back import write_back

__all__ = ["ConvertResult", "PictureBatches", "QatModel", "convert", "device_codes", "distillation_loss", "finetune", "from_quantized",
           "parameter_groups", "prepare_qat", "random_codes", "recover", "write_back"]
