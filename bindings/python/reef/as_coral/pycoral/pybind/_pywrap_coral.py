# SPDX-License-Identifier: Apache-2.0
"""The functions of PyCoral's extension under the names that it gives them."""

from reef.coral.learn.backprop.softmax_regression import SoftmaxRegression  # noqa: F401
from pycoral._imprinting_engine import ImprintingEngine as ImprintingEnginePythonWrapper  # noqa: F401
from reef.coral.pipeline.pipelined_model_runner import PipelinedModelRunner as PipelinedModelRunnerWrapper  # noqa: F401
from reef.coral.utils.edgetpu import get_runtime_version as GetRuntimeVersion  # noqa: F401
from reef.coral.utils.edgetpu import invoke_with_bytes as InvokeWithBytes  # noqa: F401
from reef.coral.utils.edgetpu import invoke_with_dmabuffer as InvokeWithDmaBuffer  # noqa: F401
from reef.coral.utils.edgetpu import invoke_with_membuffer as InvokeWithMemBuffer  # noqa: F401
from reef.coral.utils.edgetpu import list_edge_tpus as ListEdgeTpus  # noqa: F401
from reef.coral.utils.edgetpu import set_verbosity as SetVerbosity  # noqa: F401
from reef.coral.utils.edgetpu import supports_dmabuf as SupportsDmabuf  # noqa: F401
