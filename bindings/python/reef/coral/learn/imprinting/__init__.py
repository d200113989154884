# SPDX-License-Identifier: Apache-2.0
"""pycoral.learn.imprinting"""
