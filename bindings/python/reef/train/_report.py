# SPDX-License-Identifier: Apache-2.0
"""What training leaves behind for people: a curve as SVG, a report as JSON."""

from __future__ import annotations

import html
import json
import os
import tempfile
from typing import Any, Dict, List, Sequence, Tuple

_WIDTH, _HEIGHT, _MARGIN = 640, 320, 48
_COLOURS = ("#1565c0", "#c62828", "#2e7d32", "#6a1b9a")


def write_whole(path: str, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), prefix=".report_")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)


def write_json(path: str, content: Dict[str, Any]) -> None:
    write_whole(path, json.dumps(content, indent=2) + "\n")


def _points(values: Sequence[float], low: float, high: float, longest: int) -> str:
    def place(i: int, value: float) -> str:
        x = _MARGIN + i * (_WIDTH - 2 * _MARGIN) / max(longest - 1, 1)
        y = _HEIGHT - _MARGIN - (value - low) / ((high - low) or 1.0) * (_HEIGHT - 2 * _MARGIN)
        return f"{x:.1f},{y:.1f}"
    return " ".join(place(i, value) for i, value in enumerate(values))


def curve_svg(title: str, curves: List[Tuple[str, Sequence[float]]]) -> str:
    """Curves over epochs, each scaled to its own smallest and largest value, which its label tells."""
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="100%" height="100%" fill="white"/><text x="{_MARGIN}" y="20" font-size="14">{html.escape(title)}</text>']
    longest = max((len(values) for _, values in curves), default=1)
    for i, (name, values) in enumerate(curves):
        if not values:
            continue
        colour, low, high = _COLOURS[i % len(_COLOURS)], min(values), max(values)
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{_points(values, low, high, longest)}"/>')
        label = f"{name}: {low:.4g} to {high:.4g}, last {values[-1]:.4g}"
        parts.append(f'<text x="{_MARGIN + 20}" y="{38 + 14 * i}" fill="{colour}">{html.escape(label)}</text>')
    parts.append(f'<text x="{_WIDTH // 2}" y="{_HEIGHT - 12}" text-anchor="middle">epochs, 1 to {longest}</text></svg>\n')
    return "\n".join(parts)
