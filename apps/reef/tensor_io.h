// SPDX-License-Identifier: Apache-2.0
// Getting values into input tensors: raw files, pictures.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "data/preprocess.h"
#include "ops/op_context.h"

namespace reef::app {

// A raw little-endian file of exactly the tensor's size.
Status fill_from_file(const std::string& path, const ops::Tensor& tensor, std::span<std::byte> target);

// Decodes a picture and stores it as the model's input `index`, preprocessed.
Status fill_from_image(const std::string& path, const data::Preprocess& preprocess, const ops::Tensor& tensor,
                       int index, std::span<std::byte> target);

}  // namespace reef::app
