# SPDX-License-Identifier: Apache-2.0
"""The Edge TPUs of this process, real and virtual."""

from __future__ import annotations

from ctypes import byref
from typing import List, NamedTuple, Sequence

from . import _library
from ._library import lib


class Device(NamedTuple):
    """An Edge TPU. What it did counts from the start of the process."""
    selector: str         # "usb:0"
    type: str             # "usb" or "pci"
    path: str
    runs: int             # programs executed
    parameter_loads: int  # how often parameters were brought to it
    is_real: bool = False
    state: str = ""       # of a real one: "running", "waiting for firmware", "in use", "no permission", ...
    detail: str = ""      # what is wrong with a real one, and what to do


def devices() -> List[Device]:
    """All that programs find. The environment variable REEF_DEVICES says which: "auto", the default, real ones if the
    machine has any, else two virtual ones on USB and two on PCIe; "real"; "usb,pci" for virtual ones; "none"."""
    found, info = [], _library.DeviceInfo()
    for i in range(lib.reef_device_count()):
        _library.check(lib.reef_device_get(i, byref(info)))
        found.append(Device(info.selector.decode(), "usb" if info.is_usb else "pci", info.path.decode(), info.runs,
                            info.parameter_loads, bool(info.is_real), (info.state or b"").decode(),
                            (info.detail or b"").decode()))
    return found


def set_devices(kinds: Sequence[str]) -> None:
    """Other devices from now on: virtual ones such as ["usb", "pci"], ["real"], ["auto"]. Interpreters keep theirs."""
    _library.check(lib.reef_devices_set((",".join(kinds) or "none").encode()))
