# SPDX-License-Identifier: Apache-2.0
"""tflite_runtime's interface, by Reef."""

import reef as _reef

__version__ = _reef.__version__
