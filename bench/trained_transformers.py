# SPDX-License-Identifier: Apache-2.0
"""Small transformers of timm's architectures, trained in a minute each on drawn shapes (examples/python/transformer.py draws them).

Random weights have almost uniform attention and no outliers, so that they say little about quantizers. These networks have
learned to tell four shapes: they differ in where their norms are, in positions, class tokens, windows and kinds of attention.
"""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "examples" / "python"))

SIDE, PICTURES, STEPS = 32, 3000, 350
PLAIN = {"img_size": SIDE, "patch_size": 4, "embed_dim": 96, "depth": 4, "num_heads": 3}
MEAN = {"global_pool": "avg", "class_token": False}

# Name: timm's name, and what makes it small.
NETWORKS = {
    "vit": ("vit_tiny_patch16_224", PLAIN),  # a class token, norms first
    "vit_mean": ("vit_tiny_patch16_224", PLAIN | MEAN | {"qk_norm": True, "init_values": 0.1}),
    "vit_norms_last": ("vit_tiny_patch16_224", PLAIN | MEAN | {"block_fn": "ResPostBlock"}),
    "vit_parallel": ("vit_tiny_patch16_224", PLAIN | {"depth": 3, "block_fn": "ParallelScalingBlock"}),
    "vit_relpos": ("vit_relpos_small_patch16_224", PLAIN),
    "cait": ("cait_xxs24_224", PLAIN | {"depth": 3}),
    "convit": ("convit_tiny", PLAIN | {"embed_dim": 24, "num_heads": 4, "local_up_to_layer": 3}),
    "crossvit": ("crossvit_tiny_240", {"img_size": SIDE, "patch_size": (4, 8), "embed_dim": (48, 96), "img_scale": (1.0, 1.0),
                                       "depth": ((1, 2, 0), (1, 2, 0))}),
    "xcit": ("xcit_nano_12_p8_224", PLAIN | {"patch_size": 8, "depth": 3, "num_heads": 4, "cls_attn_layers": 1}),
    "swin": ("swin_tiny_patch4_window7_224", {"img_size": SIDE, "patch_size": 2, "window_size": 4, "embed_dim": 48, "depths": (2, 2),
                                              "num_heads": (3, 6)}),
    "tiny_vit": ("tiny_vit_5m_224", {"embed_dims": (32, 64, 96), "depths": (1, 2, 2), "num_heads": (1, 2, 3), "window_sizes": (4, 4, 4)}),
    "levit": ("levit_128s", {"img_size": SIDE}),
    "mobilevitv2": ("mobilevitv2_050", {}),
    "efficientvit": ("efficientvit_b0", {}),  # linear attention
}


def samples(count, seed):
    """Pictures of shapes, [count, 3, SIDE, SIDE], around 0, and which each is."""
    from transformer import pictures
    images, kinds = pictures(count, np.random.default_rng(seed))
    return (images - 0.5) / 0.25, kinds


def export(name, path):
    """Trains the network and writes it as ONNX; returns the share of right answers on pictures it has not seen."""
    import timm
    import torch
    from timm.models import vision_transformer
    from transformer import accuracy_in_torch, train
    base, sizes = NETWORKS[name]
    if "block_fn" in sizes:
        sizes = sizes | {"block_fn": getattr(vision_transformer, sizes["block_fn"])}
    torch.manual_seed(1)
    model = train(timm.create_model(base, num_classes=4, **sizes), *samples(PICTURES, 1), STEPS)
    timm.utils.model.reparameterize_model(model)
    temporary = pathlib.Path(str(path) + ".part")
    sample = torch.from_numpy(samples(1, 2)[0])
    with torch.no_grad():
        model(sample)
    torch.onnx.export(model, (sample,), str(temporary), dynamo=False, opset_version=17, input_names=["input"])
    temporary.rename(path)
    return accuracy_in_torch(model, *samples(200, 3))


if __name__ == "__main__":
    for one in sys.argv[2:] or NETWORKS:
        print(one, f"{export(one, pathlib.Path(sys.argv[1]) / f'{one}.onnx'):.1%}", flush=True)
