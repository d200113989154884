// SPDX-License-Identifier: Apache-2.0
// Getting values into input tensors: raw files, pictures, text.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "data/preprocess.h"
#include "data/vocabulary.h"
#include "ops/op_context.h"

namespace reef::app {

// A raw little-endian file of exactly the tensor's size.
Status fill_from_file(const std::string& path, const ops::Tensor& tensor, std::span<std::byte> target);

// Decodes a picture and stores it as the model's input `index`, preprocessed.
Status fill_from_image(const std::string& path, const data::Preprocess& preprocess, const ops::Tensor& tensor,
                       int index, std::span<std::byte> target);

// Text as the numbers of its tokens. The tensor's name says what it takes: "mask" gets 1 for every token that is no
// filling, "segment" or "type" 0, everything else the tokens; [length] or [1, length], of int32, int64 or float32.
Status fill_from_text(std::string_view text, const data::Vocabulary& vocabulary, const ops::Tensor& tensor,
                      std::span<std::byte> target);

}  // namespace reef::app
