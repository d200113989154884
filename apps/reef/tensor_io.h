// SPDX-License-Identifier: Apache-2.0
// Getting values into input tensors and results out: raw files, pictures, generated numbers, top-k.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "ops/op_context.h"

namespace reef::app {

// A raw little-endian file of exactly the tensor's size.
Status fill_from_file(const std::string& path, const ops::Tensor& tensor, std::span<std::byte> target);

// How pixels become numbers. real = (sample - mean) / std. Unset: 8-bit tensors take samples as they are (int8: minus
// 128), which is what their quantization expects by convention; floating-point tensors take sample / 255.
struct PixelScaling {
  bool is_set = false;
  double mean = 0;
  double std = 1;
};

// Decodes a picture, resizes it to the tensor's height and width ([1, h, w, c] or [1, c, h, w]) and stores it.
Status fill_from_image(const std::string& path, const PixelScaling& scaling, const ops::Tensor& tensor,
                       std::span<std::byte> target);

// Elements as real numbers (dequantized where the tensor is quantized). Fails for types that are not numbers.
Result<std::vector<double>> as_reals(const ops::Tensor& tensor);

// One label per line; a line "12  cat" or "12,cat" gives label 12 the name "cat".
Result<std::vector<std::string>> load_labels(const std::string& path);

}  // namespace reef::app
