# SPDX-License-Identifier: Apache-2.0
"""The architectures of bench/breadth.py: which, how they are built, and how PyTorch writes them as ONNX.

All weights are random (nothing is downloaded). These things make such a network behave like a trained one, as far as
quantizers are concerned:

  - running means and variances of batch norms are settled on pictures;
  - batch norms add a constant. Without it networks of random weights and rectifiers amplify every disturbance from layer to
    layer: in float, noise of half an 8-bit step on the input (45 dB) leaves 12 dB at the end of MobileNet v2, and every
    quantizer's figure is that amplification (docs/breadth.md has the measurements);
  - parameters that start as zero (layer scales, class tokens, positions) get small values, else whole branches are 0;
  - class scores of Ultralytics' heads vary between 0 and 1, not around the 1e-3 or 1e-4 that training starts from;
  - heads of torchvision's detectors start with weights near 0; they get ordinary ones, else their outputs are constant;
  - detectors of torchvision are exported as backbone, neck and heads (what runs on an accelerator), without the decoding
    and suppression of boxes; Ultralytics' models as its own exporter does, decoding included.

A name is that of a layer or network of breadth_layers.py, convnet_parts.py or small_networks/ where these have it, torchvision's where torchvision has
it, Ultralytics' yaml file where it begins with "yolo" or "rtdetr", else timm's.
"""
import os
import pathlib

import numpy as np

import breadth_layers
import convnet_parts
import keras_models
import random_networks
import random_transformers
import small_networks

SHIFT = 0.5
SHIFT_ULTRALYTICS = 1.0  # their rectifier is SiLU throughout

# family: {name: side of the picture, or the shape of one sample as PyTorch takes it}
ARCHITECTURES = {
    "mobile convnets": {
        "mobilenet_v2": 128, "mobilenet_v3_small": 128, "mobilenet_v3_large": 128, "mnasnet1_0": 128,
        "efficientnet_b0": 128, "squeezenet1_1": 128, "squeezenet1_0": 96, "shufflenet_v2_x1_0": 128,
        "ghostnet_100": 128, "mobilenetv4_conv_small": 128, "mobileone_s0": 128, "tinynet_e": 106, "lcnet_050": 128,
        "fbnetc_100": 128, "semnasnet_075": 128, "hardcorenas_a": 128, "mixnet_s": 128, "efficientnet_lite0": 128,
        "rexnet_100": 128, "repghostnet_050": 128, "spnasnet_100": 128, "mobilenetv1_100": 128, "ghostnetv2_100": 128,
        "mobilenet_edgetpu_v2_xs": 128, "efficientnet_es": 96, "fbnetv3_b": 96, "rexnetr_200": 64,
    },
    "convnets": {
        "vgg11": 224, "alexnet": 224, "googlenet": 96, "inception_v3": 128, "densenet121": 64,
        "regnet_x_400mf": 96, "regnet_y_400mf": 96, "cspresnet50": 64, "cspdarknet53": 64, "hrnet_w18_small": 96,
        "dla34": 64, "vovnet39a": 64, "repvgg_a0": 96, "ese_vovnet19b_dw": 96, "selecsls42b": 64, "xception41": 96,
        "dpn48b": 64, "nf_regnet_b0": 96, "darknet53": 64, "gernet_s": 96, "inception_v4": 96, "nfnet_l0": 64,
        "eca_nfnet_l0": 64, "legacy_xception": 96, "efficientnet_v2_s": 64, "visformer_tiny": 224,
        "hgnet_tiny": 64, "hgnetv2_b0": 64, "tresnet_m": 64, "dla46x_c": 64, "cs3darknet_s": 64, "res2next50": 64,
        "resnetblur50": 64, "gcresnext26ts": 64,
        "regnetz_005": 64,
    },
    "ResNet-like": {
        "resnet18": 96, "resnet50": 64, "resnext50_32x4d": 64, "wide_resnet50_2": 64, "skresnet18": 96,
        "res2net50_26w_4s": 64, "resnetv2_50": 64, "seresnet50": 64, "resnest14d": 64, "ecaresnet26t": 96,
        "botnet26t_256": 256, "lambda_resnet26t": 64, "resnet26d": 96, "seresnext26t_32x4d": 64, "skresnext50_32x4d": 64,
        "resnest26d": 64, "gcresnet33ts": 64, "resnetaa50": 64, "res2net50_14w_8s": 64,
    },
    "GELU convnets": {
        "convnext_tiny": 64, "convnextv2_atto": 64, "convmixer_768_32": 56, "poolformer_s12": 64,
        "focalnet_tiny_srf": 64, "mambaout_femto": 64, "inception_next_atto": 64, "repvit_m0_9": 64,
        "fastvit_t8": 64, "starnet_s1": 64, "poolformerv2_s12": 64, "convnext_atto": 64, "convformer_s18": 64, "rdnet_tiny": 64,
    },
    "transformers and hybrids": {
        "vit_tiny_patch16_224": 224, "deit_tiny_patch16_224": 224, "swin_tiny_patch4_window7_224": 224,
        "cait_xxs24_224": 224, "xcit_nano_12_p16_224": 224, "pit_ti_224": 224, "mobilevit_xxs": 128,
        "mobilevitv2_050": 128, "efficientformer_l1": 224, "efficientformerv2_s0": 224, "efficientvit_b0": 128,
        "efficientvit_m0": 224, "levit_128s": 224, "edgenext_xx_small": 128, "coatnet_nano_rw_224": 224,
        "maxvit_nano_rw_256": 256, "swiftformer_xs": 128, "convit_tiny": 224, "vit_b_32": 224, "swin_v2_t": 64,
        "tnt_s_legacy_patch16_224": 224, "crossvit_tiny_240": 240, "nest_tiny": 224, "twins_pcpvt_small": 224,
        "pvt_v2_b0": 128, "shvit_s1": 128, "mobilenetv4_hybrid_medium": 128,
    },
    "MLPs": {"mixer_s32_224": 224, "gmlp_ti16_224": 224, "resmlp_12_224": 224},
    "segmentation": {
        "lraspp_mobilenet_v3_large": 128, "deeplabv3_mobilenet_v3_large": 128, "deeplabv3_resnet50": 64,
        "fcn_resnet50": 64,
    },
    "torchvision detectors": {
        "ssdlite320_mobilenet_v3_large": 320, "ssd300_vgg16": 300, "retinanet_resnet50_fpn": 96,
        "retinanet_resnet50_fpn_v2": 96, "fcos_resnet50_fpn": 96, "fasterrcnn_mobilenet_v3_large_320_fpn": 128,
        "fasterrcnn_resnet50_fpn": 96, "maskrcnn_resnet50_fpn_v2": 96,
    },
    "Ultralytics": {
        "yolov3-tiny": 160, "yolov5n": 160, "yolov6n": 160, "yolov8n": 160, "yolov8n-cls": 96, "yolov8n-seg": 160,
        "yolov8n-pose": 160, "yolov8n-obb": 160, "yolov8n-ghost": 160, "yolov8n-p2": 128, "yolov9t": 160,
        "yolov10n": 160, "yolo11n": 160, "yolo11n-seg": 160, "yolo11n-pose": 160, "yolo11n-cls": 96, "yolo12n": 160,
        "yolo26n": 160, "rtdetr-l": 160,
    },
    "further mobile convnets": {
        "mnasnet0_5": 96, "shufflenet_v2_x0_5": 96, "ghostnetv3_050": 96, "lcnetv2_small": 96, "tf_mixnet_s": 96,
        "tf_efficientnet_b0": 96, "tf_mobilenetv3_small_minimal_100": 96, "mobilenetv3_rw": 96, "tf_efficientnetv2_b0": 96,
        "tf_efficientnet_cc_b0_4e": 64, "gc_efficientnetv2_rw_t": 64, "fasternet_t0": 96,
        "starnet_s050": 96, "hgnetv2_b1": 64, "mobilenetv2_035": 96, "efficientnet_blur_b0": 64, "efficientnet_h_b5": 64,
        "test_efficientnet": 96, "test_efficientnet_gn": 96, "test_efficientnet_ln": 96, "test_efficientnet_evos": 96,
    },
    "further convnets": {
        "vgg11_bn": 224, "densenetblur121d": 64, "res2net50d": 64, "regnetv_040": 64, "resnetrs50": 64,
        "resnetv2_50x1_bit": 64, "resnet50_gn": 64, "xception41p": 64, "hrnet_w18": 64, "eca_vovnet39b": 64,
        "cs3edgenet_x": 64, "cs3sedarknet_l": 64, "sedarknet21": 64, "darknetaa53": 64, "cspnext_tiny": 64,
        "legacy_seresnet18": 64, "inception_resnet_v2": 96, "nasnetalarge": 96, "pnasnet5large": 96, "seresnextaa101d_32x8d": 64,
        "test_resnet": 96, "test_byobnet": 96, "test_nfnet": 96, "test_convnext": 96, "test_convnext2": 96, "test_convnext3": 96,
        "test_mambaout": 96, "caformer_s18": 64, "skresnet34": 64, "resnet18d": 64, "tresnet_v2_l": 64, "dpn68b": 64,
        "halonet26t": 64, "eca_botnext26ts_256": 256, "bat_resnext26ts": 64, "lamhalobotnet50ts_256": 64, "repvgg_d2se": 64,
        "nf_resnet50": 64, "dm_nfnet_f0": 64, "convnext_zepto_rms": 64, "convnext_atto_ols": 64, "mambaout_kobe": 64,
    },
    "further transformers and hybrids": {
        "test_vit": 160, "test_vit2": 160, "test_vit3": 160, "test_vit4": 160, "test_maxvit": 160, "test_coatnet": 160,
        "test_vit_relpos": 160,
        "coat_lite_tiny": 64, "cpubone_nano": 96, "crossvit_9_dagger_240": 240, "csatv2": 224, "davit_tiny": 64, "deit3_small_patch16_224": 64,
        "efficientvim_m1": 96, "eva02_tiny_patch14_224": 56, "gcvit_xxtiny": 224, "hiera_tiny_224": 224, "iformer_t": 64, "lowformer_b0": 64,
        "mvitv2_tiny": 64, "nextvit_small": 64, "sequencer2d_s": 64, "swinv2_tiny_window8_256": 256, "swinv2_cr_tiny_224": 224,
        "swin_s3_tiny_224": 224, "tiny_vit_5m_224": 224, "tnt_s_patch16_224": 224, "twins_svt_small": 64, "vit_small_r26_s32_224": 224,
        "vit_relpos_small_patch16_224": 64, "vitamin_small_224": 64, "volo_d1_224": 224, "beit_base_patch16_224": 64, "flexivit_small": 64,
        "maxxvit_rmlp_nano_rw_256": 256, "efficientvit_b1": 64, "efficientvit_l1": 64, "efficientvit_m1": 224, "gmixer_12_224": 64,
        "resmlp_12_224": 64, "xcit_nano_12_p8_224": 64, "convit_small": 64, "visformer_small": 64, "mobilevit_xs": 128,
        "edgenext_x_small": 64, "swiftformer_s": 64, "fastvit_sa12": 64, "fastvit_mci0": 64, "repvit_m1_0": 64, "shvit_s2": 96,
        "pvt_v2_b2_li": 224, "levit_conv_128s": 224, "pit_xs_224": 224, "swin_t": 64, "maxvit_t": 224,
        "mobilenetv4_hybrid_large": 64, "samvit_base_patch16_224": 64, "hieradet_small": 64,
    },
    "video": {
        "r3d_18": (3, 8, 32, 32), "mc3_18": (3, 8, 32, 32), "r2plus1d_18": (3, 8, 32, 32), 
        "mvit_v2_s": (3, 16, 224, 224), "swin3d_t": (3, 8, 32, 32),
    },
    "further detectors": {
        "keypointrcnn_resnet50_fpn": 96, "maskrcnn_resnet50_fpn": 96, "fasterrcnn_resnet50_fpn_v2": 96,
        "fasterrcnn_mobilenet_v3_large_fpn": 128,
    },
    "further Ultralytics": {
        "yolov3": 96, "yolov3-spp": 96, "yolov5n-p6": 128, "yolov8n-p6": 128, "yolov8n-world": 128, "yolov8n-worldv2": 128,
        "yolov8n-ghost-p2": 128, "yolov8n-ghost-p6": 128, "yolov8n-rtdetr": 160, "yolov8n-pose-p6": 128, "yolov8n-seg-p6": 128,
        "yolov8n-cls-resnet50": 96, "yolov9s": 128, "yolov9c-seg": 128, "yolov10s": 128, "yolo11n-obb": 128,
        "yolo12n-cls": 96, "yolo12n-seg": 128, "yolo12n-pose": 128, "yolo12n-obb": 128,
        "yolo26n-cls": 96, "yolo26n-seg": 128, "yolo26n-pose": 128, "yolo26n-obb": 128, "yolo26n-p2": 128, "yolo26n-depth": 128,
        "yolo26n-sem": 128, "rtdetr-resnet50": 160,
    },
    "Keras": keras_models.MODELS,
    "convnet parts": convnet_parts.NETWORKS,
    "random": random_networks.NETWORKS,
    "random transformers": random_transformers.NETWORKS,
    "layers": {name: breadth_layers.SIDE for name in breadth_layers.layers()},
    "small networks": {name: shape for name, (shape, _) in small_networks.NETWORKS.items()},
}


def shape_of(size):
    """Of one sample, from what ARCHITECTURES says."""
    return (3, size, size) if isinstance(size, int) else tuple(size)


def hash_of(name):
    value = 0
    for letter in name.encode():
        value = (value * 131 + letter) % 2**31
    return value


def tensors_of(value):
    """All tensors in nested lists, tuples and dictionaries, in order."""
    import torch
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in tensors_of(item)] if isinstance(value, (list, tuple)) else []


def plain(module, forward=None):
    """A module that gives a tuple of tensors."""
    import torch

    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, x):
            return tuple(tensors_of(forward(self.module, x) if forward else self.module(x)))

    return Plain()


def detector_body(detector, x):
    """Backbone, neck and heads of a detector of torchvision, on a batch of pictures."""
    features = detector.backbone(x)
    features = [features] if not isinstance(features, dict) else list(features.values())
    if hasattr(detector, "rpn"):
        return detector.rpn.head(features)
    return detector.head(features)


def build_ultralytics(name):
    """What Ultralytics' exporter hands to PyTorch's: the head decodes its boxes and gives one tensor."""
    os.environ.setdefault("YOLO_OFFLINE", "1")
    from ultralytics.nn.tasks import (ClassificationModel, DetectionModel, OBBModel, PoseModel, RTDETRDetectionModel,
                                      SegmentationModel, WorldModel)
    kinds = {"cls": ClassificationModel, "seg": SegmentationModel, "pose": PoseModel, "obb": OBBModel, "rtdetr": RTDETRDetectionModel,
             "world": WorldModel, "worldv2": WorldModel}
    kind = next((kinds[word] for word in name.split("-") if word in kinds), DetectionModel)
    model = kind(f"{name}.yaml", verbose=False)
    for scores in getattr(model.model[-1], "cv3", None) or []:
        last = [m for m in scores.modules() if getattr(m, "bias", None) is not None][-1]
        last.bias.data.fill_(-1)
        last.weight.data *= 6
    if hasattr(model.model[-1], "linear"):
        model.model[-1].linear.weight.data *= 30
    return model


def is_ultralytics(name):
    return name.startswith(("yolo", "rtdetr")) and name not in small_networks.NETWORKS


def build(name, side):
    import timm
    import torch
    import torchvision
    torch.manual_seed(hash_of(name))
    if name in small_networks.NETWORKS:
        return small_networks.NETWORKS[name][1]()
    if name in convnet_parts.NETWORKS:
        return convnet_parts.build(name)
    if name in random_transformers.NETWORKS:
        return random_transformers.build(int(name.removeprefix("random_transformer_")))
    if name in breadth_layers.layers():
        torch.manual_seed(hash_of(name))
        return breadth_layers.build(name)
    if name in random_networks.NETWORKS:
        return random_networks.build(int(name.removeprefix("random_")))
    if is_ultralytics(name):
        return build_ultralytics(name)
    if name in torchvision.models.list_models():
        extra = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
        if name in torchvision.models.list_models(torchvision.models.detection):
            detector = torchvision.models.get_model(name, weights=None, weights_backbone=None)
            for m in (detector.rpn.head if hasattr(detector, "rpn") else detector.head).modules():
                if isinstance(m, torch.nn.Conv2d):
                    torch.nn.init.kaiming_normal_(m.weight)
            return plain(detector, detector_body)
        if name in torchvision.models.list_models(torchvision.models.segmentation):
            extra = {"weights_backbone": None}
        return torchvision.models.get_model(name, weights=None, **extra)
    for extra in ({"img_size": side}, {"input_size": (3, side, side)}, {}):
        try:
            return timm.create_model(name, pretrained=False, exportable=True, **extra)
        except TypeError:
            pass
    raise ValueError(f"timm does not build {name}")


def settle(module, pictures, shift):
    """Running means and variances of batch norms from pictures; constants that start at 0 get small values."""
    import torch
    for m in module.modules():
        if isinstance(m, torch.nn.modules.batchnorm._BatchNorm):
            m.reset_running_stats()
            m.momentum = None
            if m.bias is not None:
                m.bias.data += shift + 0.02 * torch.randn_like(m.bias)
    module.train()
    for m in module.modules():
        if "Dropout" in type(m).__name__ or "DropPath" in type(m).__name__:
            m.eval()
    with torch.no_grad():
        for _ in range(2):
            module(torch.from_numpy(pictures))
        for p in module.parameters():
            if p.numel() > 0 and bool((p == p.flatten()[0]).all()) and abs(float(p.flatten()[0])) < 1e-3:
                p.add_(torch.randn_like(p) * 0.02)
    module.eval()


def ready_for_export(name, module):
    """Ultralytics fuses batch norms and tells its heads that they are exported."""
    if is_ultralytics(name):
        for p in module.parameters():
            p.requires_grad = False
        module = module.fuse(verbose=False)
        for m in module.modules():
            if hasattr(m, "export"):
                m.export, m.format, m.dynamic = True, "onnx", False
            if hasattr(m, "max_det"):
                m.max_det = 20
    return plain(module).eval()


def export(name, size, pictures, path, dynamo):
    if name in keras_models.MODELS:
        keras_models.export(name, size, pictures, path)
        return
    import torch
    module = build(name, size if isinstance(size, int) else size[-1])
    settle(module, pictures, SHIFT_ULTRALYTICS if is_ultralytics(name) else SHIFT)
    module = ready_for_export(name, module)
    sample = torch.from_numpy(pictures[:1])
    with torch.no_grad():
        module(sample)
    temporary = pathlib.Path(str(path) + ".part")
    if dynamo:
        torch.onnx.export(module, (sample,), str(temporary), dynamo=True, external_data=False, input_names=["input"])
    else:
        torch.onnx.export(module, (sample,), str(temporary), dynamo=False, opset_version=17, input_names=["input"])
    temporary.rename(path)


def read_samples(folder, shape, count):
    """[count, *shape], between -2 and 2 for the most part. Pictures of the folder for networks that take pictures; where
    there is no folder, and for all other networks, they are drawn."""
    takes_pictures = len(shape) == 3 and shape[0] == 3
    files = sorted(p for p in pathlib.Path(folder).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png")) \
        if folder and takes_pictures else []
    result = []
    for i in range(count):
        random = np.random.default_rng(i)
        if files:
            from PIL import Image
            picture = Image.open(files[i * len(files) // count]).convert("RGB").resize(shape[:0:-1])
            result.append(((np.asarray(picture, np.float32) / 255 - 0.45) / 0.225).transpose(2, 0, 1))
        elif takes_pictures:
            coarse = random.uniform(-2, 2, (3, 8, 8))
            rows, columns = (np.linspace(0, 7, size).astype(int) for size in shape[1:])
            result.append(coarse[:, rows][:, :, columns] + random.normal(0, 0.1, shape))
        else:
            # Something slow and something fast, louder or softer: no two samples have the same mean and power.
            slow = np.sin(np.linspace(0, random.uniform(1, 9), shape[-1]) + random.uniform(0, 6))
            result.append((slow + random.normal(0, 0.5, shape)) * random.uniform(0.3, 1.2))
    return np.stack(result).astype(np.float32)
