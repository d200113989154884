# SPDX-License-Identifier: Apache-2.0
"""Learning on the device, as in pycoral.learn."""
