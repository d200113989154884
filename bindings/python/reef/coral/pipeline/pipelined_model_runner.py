# SPDX-License-Identifier: Apache-2.0
"""As pycoral.pipeline.pipelined_model_runner."""

from reef.pipeline import PipelinedModelRunner

__all__ = ["PipelinedModelRunner"]
