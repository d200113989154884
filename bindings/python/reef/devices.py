# SPDX-License-Identifier: Apache-2.0
"""The virtual Edge TPUs of this process."""

from __future__ import annotations

from ctypes import byref
from typing import List, NamedTuple, Sequence

from . import _library
from ._library import lib


class Device(NamedTuple):
    """A virtual Edge TPU. What it did counts from the start of the process."""
    selector: str         # "usb:0"
    type: str             # "usb" or "pci"
    path: str
    runs: int             # programs executed
    parameter_loads: int  # how often parameters were brought to it


def devices() -> List[Device]:
    """All there are: two on USB and two on PCIe, or what the environment variable REEF_DEVICES says ("usb,pci", "none")."""
    found, info = [], _library.DeviceInfo()
    for i in range(lib.reef_device_count()):
        _library.check(lib.reef_device_get(i, byref(info)))
        found.append(Device(info.selector.decode(), "usb" if info.is_usb else "pci", info.path.decode(), info.runs,
                            info.parameter_loads))
    return found


def set_devices(kinds: Sequence[str]) -> None:
    """Other devices from now on, such as ["usb", "pci"]. Interpreters that exist keep theirs."""
    _library.check(lib.reef_devices_set((",".join(kinds) or "none").encode()))
