// SPDX-License-Identifier: Apache-2.0
// Networks whose latency on an Edge TPU was published, as graphs of 8-bit operators: the right shapes, weights all
// zero. For tests of what depends on shapes alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/model.h"

namespace reef::testing {

struct Kernel {
  Kernel(std::int32_t side) : height(side), width(side) {}
  Kernel(std::int32_t rows, std::int32_t columns) : height(rows), width(columns) {}
  std::int32_t height, width;
};

// Builds a graph operator by operator; maps are NHWC with a batch of 1. Each call returns the new tensor.
class NetworkBuilder {
 public:
  NetworkBuilder(std::int32_t height, std::int32_t width, std::int32_t channels);

  std::int32_t input() const { return 0; }
  // "SAME" keeps ceil(size / stride); "VALID" does without a border.
  std::int32_t conv(std::int32_t from, std::int32_t channels, Kernel kernel = 1, std::int32_t stride = 1,
                    const std::string& padding = "SAME");
  std::int32_t depthwise(std::int32_t from, std::int32_t kernel, std::int32_t stride);
  std::int32_t pool(const char* type, std::int32_t from, std::int32_t kernel, std::int32_t stride,
                    const std::string& padding = "SAME");
  std::int32_t global_average(std::int32_t from);
  std::int32_t fully_connected(std::int32_t from, std::int32_t outputs);  // of all elements
  std::int32_t add(std::int32_t a, std::int32_t b);
  std::int32_t concat(const std::vector<std::int32_t>& parts);
  std::int32_t scale_and_shift(std::int32_t from);  // a MUL and an ADD with constants per channel, as batch norms leave
  std::int32_t softmax(std::int32_t from);
  std::int32_t channels(std::int32_t tensor) const { return model_.subgraphs[0].tensors[index(tensor)].shape.last(); }

  ir::Model finish(std::int32_t output);

 private:
  static std::size_t index(std::int32_t tensor) { return static_cast<std::size_t>(tensor); }
  const ir::Shape& shape(std::int32_t tensor) const { return model_.subgraphs[0].tensors[index(tensor)].shape; }
  std::int32_t computed(ir::Shape shape);
  std::int32_t constant(ir::DataType type, ir::Shape shape);
  ir::Operator& emit(const char* type, std::int32_t builtin_code, std::vector<std::int32_t> inputs,
                     std::int32_t output);

  ir::Model model_;
};

struct PublishedNetwork {
  std::string name;
  ir::Model (*build)();
  double usb3_ms;  // desktop with USB 3; 0: none
  double pcie_ms;  // Coral's Dev Board; 0: none
};
// Published by Coral (benchmarks and models pages). Only networks that run wholly on the chip.
const std::vector<PublishedNetwork>& published_networks();

}  // namespace reef::testing
