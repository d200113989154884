// SPDX-License-Identifier: Apache-2.0
// What TFLite runs in place of neighbouring Edge TPU ops: each on the device, in order.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "runtime/edge_tpu.h"
#include "runtime/edge_tpu_call.h"
#include "tflite_abi.h"

namespace reef::delegate {

class Partition {
 public:
  explicit Partition(std::shared_ptr<runtime::EdgeTpu> device) : device_(std::move(device)) {}

  // Takes what it needs of the nodes, which are replaced after this. TFLite's memory is used only in the calls below.
  Status read(tflite_abi::Context* context, const tflite_abi::DelegateParams& params);
  // The same for one node that stays in its place: all its tensors have memory of TFLite's.
  Status add(tflite_abi::Context* context, const tflite_abi::Node& node, Bytes options);
  // Reads the programs, and ties them to tensors of the sizes that these have now.
  Status prepare(tflite_abi::Context* context);
  Status invoke(tflite_abi::Context* context);

 private:
  struct Op {
    Bytes options;
    std::vector<int> inputs, outputs;  // tensors; -1: left out
    std::vector<std::size_t> bytes;    // of inputs, then outputs, when the call was made
    std::unique_ptr<runtime::EdgeTpuCall> call;
  };
  Status prepare(tflite_abi::Context* context, Op& op);
  Status invoke(tflite_abi::Context* context, const Op& op);
  Result<std::byte*> data_of(tflite_abi::Context* context, int tensor, std::size_t bytes);

  std::shared_ptr<runtime::EdgeTpu> device_;
  std::vector<Op> ops_;
  // Tensors that only ops of this partition know: TFLite gives them no memory.
  std::map<int, std::vector<std::byte>> internal_;
};

}  // namespace reef::delegate
