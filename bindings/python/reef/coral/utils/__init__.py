# SPDX-License-Identifier: Apache-2.0
"""Devices, interpreters, label files."""
