# SPDX-License-Identifier: Apache-2.0
"""PyCoral's compiled extension, as far as programs reach into it."""
