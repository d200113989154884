# SPDX-License-Identifier: Apache-2.0
"""PyCoral's modules on Reef: replace `pycoral` by `reef.coral` in imports and a program runs without an Edge TPU."""
