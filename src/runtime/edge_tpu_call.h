// SPDX-License-Identifier: Apache-2.0
// One Edge TPU custom op, tied to the tensors around it, whoever owns those: Reef's interpreter or TFLite's.
//
// The package in the op's options names its inputs and outputs; they belong to the op's tensors by name. A state of a
// recurrent network is a variable tensor that the op reads, and that the package returns a new value for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "execute/device/device.h"

namespace reef::runtime {

// A tensor of the op. Left-out optional inputs have is_present == false.
struct CallTensor {
  std::string_view name;
  std::int64_t bytes = 0;
  bool is_variable = false;
  bool is_present = true;
};

class EdgeTpuCall {
 public:
  // Fails on options that are no package, on a package without code, and where names or sizes do not meet.
  static Result<EdgeTpuCall> create(const Bytes& custom_options, std::span<const CallTensor> inputs,
                                    std::span<const CallTensor> outputs);

  // The op's tensors as in create(), by position; null for inputs that were left out. Variables are written.
  Status run(device::Device& device, std::span<std::byte* const> inputs, std::span<std::byte* const> outputs) const;

  const device::LoadedPackage& package() const { return *package_; }

 private:
  struct TensorRef {
    std::size_t index = 0;
    bool is_variable = false;  // an input that the op changes; else an input or an output
  };
  static Result<TensorRef> find_input(std::span<const CallTensor> inputs, const darwinn::Layer& layer);
  static Result<TensorRef> find_output(std::span<const CallTensor> inputs, std::span<const CallTensor> outputs,
                                       const darwinn::Layer& layer);

  std::shared_ptr<const device::LoadedPackage> package_;
  std::vector<TensorRef> inputs_, outputs_;  // by layer
};

}  // namespace reef::runtime
