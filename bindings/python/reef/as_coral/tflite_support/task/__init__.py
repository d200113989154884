# SPDX-License-Identifier: Apache-2.0
"""Tasks: core, processor, vision."""

from . import core, processor, vision  # noqa: F401
