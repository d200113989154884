# SPDX-License-Identifier: Apache-2.0
"""As pycoral.utils.dataset."""

from __future__ import annotations

import re
from typing import Dict


def read_label_file(file_path: str) -> Dict[int, str]:
    """{number: label} of a file with a label a line, or with lines such as "12  cat" and "12:cat"."""
    labels: Dict[int, str] = {}
    with open(file_path, encoding="utf-8") as file:
        for row, line in enumerate(file):
            numbered = re.match(r"^\s*(\d+)[:,\s]+(.*)$", line)
            labels[int(numbered[1]) if numbered else row] = (numbered[2] if numbered else line).strip()
    return labels
