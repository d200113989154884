# SPDX-License-Identifier: Apache-2.0
"""pycoral.learn.imprinting.engine: Coral's ImprintingEngine, for any classifier or embedding extractor."""

from ....learn import ImprintingEngine

__all__ = ["ImprintingEngine"]
