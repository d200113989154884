# SPDX-License-Identifier: Apache-2.0
"""Pipelines of model segments."""
