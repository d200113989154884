# SPDX-License-Identifier: Apache-2.0
"""As pycoral.utils.dataset."""

from __future__ import annotations

import re
from typing import Dict


def read_label_file(file_path: str) -> Dict[int, str]:
    """{number: label} of a file with a label a line, or with lines such as "12  cat" and "12:cat".

    A line that is a number and nothing else is a label (digits are classes too). Lines count from 0, blank ones as well.
    """
    labels: Dict[int, str] = {}
    with open(file_path, encoding="utf-8") as file:
        for row, line in enumerate(file):
            text = line.strip()
            numbered = re.fullmatch(r"(\d+)[:\s]+(.*)", text)
            if numbered:
                labels[int(numbered[1])] = numbered[2]
            else:
                labels[row] = text
    return labels
