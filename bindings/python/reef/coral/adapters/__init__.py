# SPDX-License-Identifier: Apache-2.0
"""From pictures to input tensors, and from output tensors to classes, objects and masks."""
