# SPDX-License-Identifier: Apache-2.0
"""A stick as pyusb (PyPI) sees it: found, described, given firmware, found again, its registers read.

Runs under `reef virtual-usb`, and with a real stick that waits for firmware. Exit code 77: pyusb is not installed.
"""

import sys
import time

try:
    import usb.core
    import usb.util
except ImportError:
    print("pyusb is not installed")
    sys.exit(77)


def wait_for(vendor, product):
    for _ in range(100):
        device = usb.core.find(idVendor=vendor, idProduct=product)
        if device is not None:
            return device
        time.sleep(0.05)
    raise SystemExit(f"there is no {vendor:04x}:{product:04x}")


def main():
    device = wait_for(0x1A6E, 0x089A)
    device.set_configuration()
    assert not device.is_kernel_driver_active(0)
    assert device.get_active_configuration()[(0, 0)].bInterfaceClass == 0xFE
    for block in range(3):
        assert device.ctrl_transfer(0x21, 1, block, 0, bytes([block] * 256)) == 256
        assert device.ctrl_transfer(0xA1, 3, 0, 0, 6)[4] == 5
    assert device.ctrl_transfer(0x21, 1, 3, 0, b"") == 0
    try:
        device.reset()
    except usb.core.USBError as error:  # it has come back as another device
        print("reset:", error)
    usb.util.dispose_resources(device)

    device = wait_for(0x18D1, 0x9302)
    endpoints = [endpoint.bEndpointAddress for endpoint in device.get_active_configuration()[(0, 0)]]
    assert endpoints == [1, 2, 3, 0x81, 0x82, 0x83], endpoints
    assert device.ctrl_transfer(0xC0, 1, 0xA30C, 1, 4)[0] == 0x59
    try:
        device.read(0x82, 16, timeout=100)
    except usb.core.USBTimeoutError as error:
        print("nothing to read:", error)
    else:
        raise SystemExit("an event out of nothing")
    print("done")


main()
