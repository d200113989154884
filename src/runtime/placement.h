// SPDX-License-Identifier: Apache-2.0
// Where the Edge TPU ops of a model run, as a command or a request names it in one word.
//
//   cpu               nowhere: a model that has such ops is refused
//   virtual           on emulated chips, one for each thread
//   auto              on a real Edge TPU if there is one, else as "virtual"
//   usb, usb:1, pci, pci:0, :2, or a path: on that device
//
// A word that names a bus means a real device, unless $REEF_DEVICES says that the process's devices are virtual.
// Several devices at work on one model (find_placements): as many virtual ones as are wanted, or that many of the real
// ones that the word fits.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "driver/attachment.h"
#include "runtime/edge_tpu.h"

namespace reef::runtime {

struct Placement {
  std::string name = "cpu";         // "cpu", "virtual", or the device's selector
  bool is_emulated = false;         // on emulated chips
  std::shared_ptr<EdgeTpu> device;  // a real one, open, shared by all threads; null: none
  // Of several at work on the same model: all of them, open, `device` being the first; virtual ones too. Empty: one.
  DeviceList replicas;
  std::vector<std::string> notes;  // what a person should know about the choice; sentences

  bool has_edge_tpu() const { return is_emulated || device != nullptr; }
  // "the CPU", "the virtual Edge TPU", "Edge TPU usb:0 (/sys/bus/usb/devices/2-1.4)".
  std::string description() const;
};

// Opens a real device. An error says what there is, and what to do.
Result<Placement> find_placement(std::string_view word, const driver::SessionSettings& settings = {});

// `count` devices. Of a bus ("usb") or "auto" the first that can be opened; a word that names one device is refused.
Result<Placement> find_placements(std::string_view word, int count, const driver::SessionSettings& settings = {});

// Whether the word can be understood, without looking for a device.
Status check_placement(std::string_view word);

}  // namespace reef::runtime
