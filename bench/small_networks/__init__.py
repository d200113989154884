# SPDX-License-Identifier: Apache-2.0
"""Small networks of kinds that torchvision, timm and Ultralytics do not have: sound, time series, tables, points, pictures from
numbers, super-resolution, segmentation, faces, text in pictures, and detectors whose boxes are decoded and chosen in the graph.

Each follows a published design in small; the weights are random.
"""

# Each module adds its networks to NETWORKS.
from . import attention_blocks, detectors, images, library_transformers, series, spellings, transformers, vision  # noqa: F401
from .parts import NETWORKS  # noqa: F401
