// SPDX-License-Identifier: Apache-2.0
#include "chip/links.h"

#include <algorithm>
#include <array>

#include "chip/machine.h"

namespace reef::chip {
namespace {

constexpr std::array<LinkProfile, 9> kLinks = {{
    {"usb3", "USB 3, desktop host", 256, kUsb3InBytesPerSecond, kUsb3OutBytesPerSecond,
     "fitted by others to Coral's published latencies"},
    {"usb3-jetson", "USB 3, Jetson Nano", 276, 357e6, 1e9 / 19.9,
     "fitted by others to published series and USB traces"},
    {"usb2", "USB 2, Jetson Nano", 340, kUsb2InBytesPerSecond, 1e9 / 85, "fitted by others to published series"},
    {"usb3-rpi4", "USB 3, Raspberry Pi 4", 1500, 275e6, 1e9 / 25, "rough: few published values"},
    {"pcie", "PCIe or M.2, PC", 110, kPcieInBytesPerSecond, 1e9 / 12,
     "fitted by others to published series; output chosen on one of them"},
    {"pcie-devboard", "PCIe, Coral Dev Board", 110, kPcieInBytesPerSecond, 1e9 / 12,
     "as pcie; only the host's CPU differs"},
    {"usb3-rpi5", "USB 3, Raspberry Pi 5", 600, 300e6, 1e9 / 22, "a guess between Raspberry Pi 4 and desktop", true},
    {"usb3-n100", "USB 3, N100-class NAS", 300, kUsb3InBytesPerSecond, kUsb3OutBytesPerSecond,
     "a guess: as a desktop, with a slower CPU", true},
    {"usb2-mini", "Coral Dev Board Mini", 600, kUsb2InBytesPerSecond, 1e9 / 85,
     "a guess: its Edge TPU hangs on USB 2, with a slower CPU than the Jetson Nano's", true},
}};

}  // namespace

std::span<const LinkProfile> link_profiles() { return kLinks; }

const LinkProfile* find_link(std::string_view name) {
  const auto* at = std::find_if(kLinks.begin(), kLinks.end(), [&](const LinkProfile& l) { return l.name == name; });
  return at == kLinks.end() ? nullptr : at;
}

}  // namespace reef::chip
