// SPDX-License-Identifier: Apache-2.0
// VFIO of the machine's own kernel. Not tried with a card yet.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "driver/vfio.h"

namespace reef::driver {

// PCI addresses ("0000:03:00.0") of all Edge TPUs that the kernel shows, in order.
std::vector<std::string> list_pci_edge_tpus(const std::string& devices = "/sys/bus/pci/devices");

// To whom the kernel has given a card. Empty: to nobody; the machine's IOMMU is off.
struct CardBinding {
  std::string driver;       // "vfio-pci", "apex"
  std::string iommu_group;  // number of the file in /dev/vfio
};
CardBinding binding_of(const std::string& address, const std::string& devices = "/sys/bus/pci/devices");

// `address` as list_pci_edge_tpus() gives it.
std::unique_ptr<VfioKernel> make_system_vfio(const std::string& address);

}  // namespace reef::driver
