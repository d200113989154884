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
#include "runtime/edge_tpu.h"

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
  // Fails on options that are no package, on a package that the device cannot execute, and where names or sizes do not
  // meet.
  static Result<EdgeTpuCall> create(std::shared_ptr<EdgeTpu> device, const Bytes& custom_options,
                                    std::span<const CallTensor> inputs, std::span<const CallTensor> outputs);

  // The op's tensors as in create(), by position; null for inputs that were left out. Variables are written.
  Status run(std::span<std::byte* const> inputs, std::span<std::byte* const> outputs) const;

 private:
  struct TensorRef {
    std::size_t index = 0;
    bool is_variable = false;  // an input that the op changes; else an input or an output
    std::size_t bytes = 0;
  };
  static Result<TensorRef> find_input(std::span<const CallTensor> inputs, const darwinn::Layer& layer);
  static Result<TensorRef> find_output(std::span<const CallTensor> inputs, std::span<const CallTensor> outputs,
                                       const darwinn::Layer& layer);

  std::shared_ptr<EdgeTpu> device_;
  EdgeTpu::Loaded package_;
  std::vector<TensorRef> inputs_, outputs_;  // by layer
};

}  // namespace reef::runtime
