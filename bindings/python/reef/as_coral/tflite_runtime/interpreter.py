# SPDX-License-Identifier: Apache-2.0
"""As tflite_runtime.interpreter."""

from reef.interpreter import Delegate, Interpreter, OpResolverType, SignatureRunner, load_delegate  # noqa: F401
