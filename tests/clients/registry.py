# SPDX-License-Identifier: Apache-2.0
"""Clients out of a registry: installed into the build folder, once, by the tests that need them."""

import subprocess
import sys


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, timeout=600, **options)


def environment(folder, modules, *packages):
    """Python of a virtual environment that has these modules ("numpy, PIL"); None, with a message, where it cannot be had."""
    python = folder / "bin" / "python"
    try:
        if not python.exists():
            run(sys.executable, "-m", "venv", folder)
        if subprocess.run([python, "-c", f"import {modules}"], capture_output=True).returncode != 0:
            run(python, "-m", "pip", "install", "-q", *packages)
        run(python, "-c", f"import {modules}")
        return python
    except (OSError, subprocess.SubprocessError) as error:
        text = getattr(error, "stderr", "") or str(error)
        print(f"skipped: {modules} cannot be had: {text.strip().splitlines()[-1] if text.strip() else error}")
        return None
