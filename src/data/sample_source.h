// SPDX-License-Identifier: Apache-2.0
// Where calibration, comparison and evaluation get a model's inputs from: samples by number, read when they are asked
// for, so that memory does not grow with their count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/model.h"

namespace reef::data {

// A model's input as whoever fills it must know it.
struct InputSpec {
  int index = 0;  // among the model's inputs
  std::string name;
  ir::DataType type = ir::DataType::kFloat32;
  ir::Shape shape;                // with its batch dimension, which is 1
  ir::Quantization quantization;  // of an 8- or 16-bit tensor: real values are stored with it
};

class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual std::int64_t size() const = 0;  // number of samples
  // Writes input `input` of sample `sample`, preprocessed, in the input's type and quantization. `target` has exactly
  // the tensor's bytes. May be called from several threads at once. Errors name the file or array and the sample.
  virtual Status read(std::int64_t sample, const InputSpec& input, std::span<std::byte> target) const = 0;
};

// Describes input `index` of a model's first graph.
InputSpec input_spec(const ir::Model& model, int index);

}  // namespace reef::data
