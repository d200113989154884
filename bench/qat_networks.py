#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks of torchvision, timm and Ultralytics through quantization-aware training.

    bench/qat_networks.py [NAME...]

For each network, with random weights and small pictures: prepare_qat, one step of training, convert (which compiles the model and compares
three random inputs with the virtual Edge TPU, code by code). Prints a row for each. "With gradient" counts parameters that the step reached;
heads that begin at zero let none through. Peers come from PyPI: torch, torchvision, timm, ultralytics, onnx.
"""
import pathlib
import sys
import tempfile
import time
import warnings

import torch

import reef
import reef.torch

SIZE = 64
TORCHVISION = {"resnet18": {}, "mobilenet_v3_small": {}, "efficientnet_b0": {}, "densenet121": {}, "shufflenet_v2_x0_5": {}, "squeezenet1_1": {},
               "regnet_y_400mf": {}, "googlenet": {"init_weights": False, "aux_logits": False}, "mobilenet_v2": {}, "mnasnet0_5": {},
               "resnext50_32x4d": {}, "alexnet": {}, "swin_t": {}, "convnext_tiny": {}, "efficientnet_v2_s": {}, "mobilenet_v3_large": {}}
TIMM = {"vit_tiny_patch16_224": {"img_size": SIZE, "depth": 3}, "mixer_s32_224": {"img_size": SIZE, "num_classes": 10}, "convnext_atto": {},
        "ghostnet_100": {}, "hardcorenas_a": {}, "efficientvit_b0": {}, "legacy_seresnet18": {}, "poolformer_s12": {}, "cspdarknet53": {},
        "dla34": {}, "resmlp_12_224": {"img_size": SIZE}, "xcit_nano_12_p16_224": {"img_size": SIZE}, "mobilenetv4_conv_small": {},
        "repvgg_a0": {}, "edgenext_xx_small": {}, "mobilevit_xxs": {}, "mobilevitv2_050": {}, "fastvit_t8": {},
        "levit_128s": {"img_size": SIZE}, "pit_ti_224": {"img_size": SIZE}, "deit_tiny_patch16_224": {"img_size": SIZE, "depth": 2},
        "coat_lite_tiny": {"img_size": SIZE}, "swin_s3_tiny_224": {"img_size": SIZE, "window_size": 4}, "rexnet_100": {},
        "tf_efficientnet_lite0": {}, "lcnet_050": {}, "tinynet_e": {}, "fbnetc_100": {}, "res2net50_14w_8s": {}, "resnest14d": {},
        "ese_vovnet19b_dw": {}, "dpn68": {}, "hrnet_w18_small": {}, "inception_next_atto": {}}
ULTRALYTICS = ("yolov5n", "yolov8n", "yolo11n", "yolov3-tiny", "yolov6n", "yolov8n-cls", "yolov8n-seg", "yolov8n-pose", "yolov8n-obb", "yolov9t", "yolov10n",
               "yolo12n")


class Segmenter(torch.nn.Module):
    """Torchvision's segmenters give a dictionary."""

    def __init__(self):
        super().__init__()
        from torchvision.models.segmentation import lraspp_mobilenet_v3_large
        self.net = lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)

    def forward(self, x):
        return self.net(x)["out"]


def network(name):
    if name == "lraspp":
        return Segmenter()
    if name in TORCHVISION:
        import torchvision.models
        return getattr(torchvision.models, name)(weights=None, **TORCHVISION[name])
    if name in TIMM:
        import timm
        return timm.create_model(name, pretrained=False, **TIMM[name])
    from ultralytics import YOLO
    model = YOLO(f"{name}.yaml").model.float()
    model.model[-1].export, model.model[-1].format = True, "onnx"
    return model.requires_grad_(True)


def measure(name, folder):
    torch.manual_seed(0)
    model = network(name).train()
    with torch.no_grad():  # statistics of batch norms as after training, so that outputs are not all alike
        for _ in range(2):
            model(torch.randn(4, 3, SIZE, SIZE))
    samples = torch.randn(6, 3, SIZE, SIZE)
    qat = reef.torch.prepare_qat(model.eval(), torch.zeros(1, 3, SIZE, SIZE), samples)
    optimizer = torch.optim.Adam(reef.torch.parameter_groups(qat), 1e-4)
    outputs = qat.train()(samples[:2])
    (outputs if torch.is_tensor(outputs) else outputs[0]).square().mean().backward()
    reached = sum(bool(p.grad.abs().sum() > 0) for p in qat.parameters() if p.grad is not None)
    trained = sum(p.requires_grad for p in qat.parameters())
    optimizer.step()
    result = reef.torch.convert(qat, pathlib.Path(folder) / f"{name}.tflite", verify=3)
    fixed = sum(not origin.is_trained for origin in qat.constants.origins.values())
    return f"{len(qat.graph.ops)} | {reached} of {trained} | {fixed} | equal on {result.verified} inputs"


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print("| network | operators | parameters with gradient | constants not trained | codes beside the virtual device's | seconds |")
    print("| --- | ---: | ---: | ---: | --- | ---: |", flush=True)
    for name in sys.argv[1:] or [*TORCHVISION, *TIMM, "lraspp", *ULTRALYTICS]:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = measure(name, folder)
            except reef.Error as error:
                found = f"| | | {error}"
        print(f"| {name} | {found} | {time.monotonic() - began:.0f} |", flush=True)


if __name__ == "__main__":
    main()
