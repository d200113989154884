# SPDX-License-Identifier: Apache-2.0
"""Transformers and their relatives as timm and torchvision build them, made small: one or two blocks a stage, 32 to 64 channels.

The code is that of the full models: windows, pooling, biases and reshapes are written as their authors write them.
"""

import torch

from .parts import NETWORKS


def timm_model(name, side, **arguments):
    def build():
        import timm

        return timm.create_model(name, pretrained=False, num_classes=10, exportable=True, **arguments)

    return (3, side, side), build


def timm_class(module, kind, side, make_arguments):
    """A class of timm.models.<module>; `make_arguments` gets the module and timm.layers."""

    def build():
        import importlib

        import timm.layers

        code = importlib.import_module(f"timm.models.{module}")
        return getattr(code, kind)(num_classes=10, **make_arguments(code, timm.layers))

    return (3, side, side), build


def vit_of_torchvision():
    from torchvision.models.vision_transformer import VisionTransformer

    return VisionTransformer(64, 16, 2, 4, 64, 128, num_classes=10)


def swin_of_torchvision(version):
    def build():
        from torchvision.models import swin_transformer as swin

        block, merging = swin.SwinTransformerBlock, swin.PatchMerging
        if version == 2:
            block, merging = swin.SwinTransformerBlockV2, swin.PatchMergingV2
        return swin.SwinTransformer([4, 4], 32, [2, 2], [2, 4], [4, 4], stochastic_depth_prob=0.0, num_classes=10,
                                    block=block, downsample_layer=merging)

    return build


def maxvit_of_torchvision():
    from torchvision.models.maxvit import MaxVit

    return MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 16, 0.0, num_classes=10)


LIBRARY = {
    "small_swin": timm_model("swin_tiny_patch4_window7_224", 56, img_size=56, embed_dim=32, depths=(2, 2), num_heads=(2, 4)),
    "small_swin_v2": timm_model("swinv2_tiny_window8_256", 64, img_size=64, embed_dim=32, depths=(2, 2), num_heads=(2, 4)),
    "small_pit": timm_model("pit_ti_224", 64, img_size=64, base_dims=[16, 16, 16], depth=[1, 1, 1], heads=[2, 4, 8]),
    "small_twins": timm_model("twins_svt_small", 64, img_size=64, embed_dims=(32, 64), num_heads=(1, 2), depths=(2, 2),
                              mlp_ratios=(4, 4), sr_ratios=(4, 2), wss=(4, 4)),
    "small_twins_pcpvt": timm_model("twins_pcpvt_small", 64, img_size=64, embed_dims=(32, 64), num_heads=(1, 2), depths=(1, 1),
                                    mlp_ratios=(4, 4), sr_ratios=(4, 2)),
    "small_cait": timm_model("cait_xxs24_224", 64, img_size=64, depth=2, embed_dim=64, num_heads=4, depth_token_only=1),
    "small_xcit": timm_model("xcit_nano_12_p16_224", 64, img_size=64, depth=2, embed_dim=64, num_heads=4),
    "small_levit": timm_model("levit_128s", 96, img_size=96, embed_dim=(32, 48, 64), depth=(1, 1, 1), num_heads=(2, 3, 4)),
    "small_efficientformer": timm_model("efficientformer_l1", 224, depths=(1, 1, 1, 2), embed_dims=(16, 24, 32, 48), num_vit=1),
    "small_mvit": timm_class("mvitv2", "MultiScaleVit", 64, lambda m, _: dict(
        img_size=64, cfg=m.MultiScaleVitCfg(depths=(1, 1), embed_dim=32, num_heads=1))),
    "small_poolformer": timm_class("metaformer", "MetaFormer", 64, lambda m, layers: dict(
        depths=(1, 1, 1, 1), dims=(16, 32, 48, 64), token_mixers=m.Pooling, norm_layers=layers.GroupNorm1,
        downsample_norm=None, mlp_act=torch.nn.GELU, mlp_bias=True, use_mlp_head=False)),
    "small_caformer": timm_class("metaformer", "MetaFormer", 64, lambda m, _: dict(
        depths=(1, 1, 1, 1), dims=(16, 32, 48, 64), token_mixers=[m.SepConv, m.SepConv, m.Attention, m.Attention],
        norm_layers=[m.LayerNorm2dNoBias] * 2 + [m.LayerNormNoBias] * 2)),
    "small_convmixer": timm_class("convmixer", "ConvMixer", 56, lambda m, _: dict(dim=48, depth=2, kernel_size=7, patch_size=7)),
    "small_gmlp": timm_class("mlp_mixer", "MlpMixer", 64, lambda m, layers: dict(
        img_size=64, num_blocks=2, embed_dim=64, mlp_ratio=6, block_layer=m.SpatialGatingBlock, mlp_layer=layers.GatedMlp)),
    "small_resmlp": timm_class("mlp_mixer", "MlpMixer", 64, lambda m, _: dict(
        img_size=64, num_blocks=2, embed_dim=64, mlp_ratio=4, block_layer=m.ResBlock, norm_layer=m.Affine)),
    "small_mixer": timm_class("mlp_mixer", "MlpMixer", 64, lambda m, _: dict(img_size=64, num_blocks=2, embed_dim=64)),
    "small_deit_distilled": timm_model("deit_tiny_distilled_patch16_224", 64, img_size=64, depth=2, embed_dim=64, num_heads=4),
    "small_vit_pooled": timm_model("vit_small_patch16_224", 64, img_size=64, depth=2, embed_dim=64, num_heads=4, class_token=False,
                                   global_pool="map"),
    "small_vit_parallel": timm_model("vit_small_patch16_18x2_224", 64, img_size=64, depth=2, embed_dim=64, num_heads=4),
    "small_relative": timm_model("vit_relpos_small_patch16_224", 64, img_size=64, depth=2, embed_dim=64, num_heads=4),
    "small_relative_mlp": timm_model("vit_srelpos_small_patch16_224", 64, img_size=64, depth=2, embed_dim=64, num_heads=4),
    "small_eva": timm_model("eva02_tiny_patch14_224", 56, img_size=56, depth=2, embed_dim=64, num_heads=4),
    "small_beit": timm_model("beit_base_patch16_224", 64, img_size=64, depth=2, embed_dim=64, num_heads=4),
    "small_convit": timm_model("convit_tiny", 64, img_size=64, depth=3, local_up_to_layer=2, embed_dim=64, num_heads=4),
    "small_visformer": timm_model("visformer_tiny", 64, img_size=64, init_channels=16, embed_dim=64, depth=(1, 1, 1), num_heads=4),
    "small_volo": timm_class("volo", "VOLO", 64, lambda m, _: dict(
        img_size=64, layers=(1, 1), embed_dims=(32, 64), num_heads=(2, 4), mlp_ratio=2, outlook_attention=(True, False),
        downsamples=(True, False), post_layers=None, use_aux_head=False, global_pool="avg")),
    "small_pvt": timm_model("pvt_v2_b0", 64, depths=(1, 1), embed_dims=(16, 32), num_heads=(1, 2), sr_ratios=(4, 2),
                            mlp_ratios=(2, 2)),
    "small_davit": timm_model("davit_tiny", 56, depths=(1, 1), embed_dims=(32, 64), num_heads=(2, 4)),
    "small_coat": timm_model("coat_lite_tiny", 64, img_size=64, embed_dims=(16, 32, 48, 64), serial_depths=(1, 1, 1, 1)),
    "small_hiera": timm_model("hiera_tiny_224", 64, img_size=(64, 64), embed_dim=32, stages=(1, 1, 1, 1)),
    "small_focal": timm_class("focalnet", "FocalNet", 64, lambda m, _: dict(embed_dim=16, depths=(1, 1, 1, 1))),
    "small_nest": timm_class("nest", "Nest", 64, lambda m, _: dict(
        img_size=64, embed_dims=(16, 32, 64), num_heads=(1, 2, 4), depths=(1, 1, 1))),
    "small_edgenext": timm_model("edgenext_xx_small", 64, dims=(16, 32, 48, 64), depths=(1, 1, 2, 1)),
    "small_mobilevit": timm_model("mobilevit_xxs", 64),
    "small_mobilevit_v2": timm_model("mobilevitv2_050", 64),
    "small_tiny_vit": timm_model("tiny_vit_5m_224", 224, embed_dims=(16, 32, 48, 64), depths=(1, 1, 2, 1), num_heads=(1, 2, 3, 4)),
    "small_tnt": timm_model("tnt_s_patch16_224", 64, img_size=64, depth=2, embed_dim=64, inner_dim=16, num_heads_inner=2,
                            num_heads_outer=4),
    "torchvision_vit": ((3, 64, 64), vit_of_torchvision),
    "torchvision_swin": ((3, 32, 32), swin_of_torchvision(1)),
    "torchvision_swin_v2": ((3, 32, 32), swin_of_torchvision(2)),
    "torchvision_maxvit": ((3, 64, 64), maxvit_of_torchvision),
}
NETWORKS.update(LIBRARY)
