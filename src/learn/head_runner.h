// SPDX-License-Identifier: Apache-2.0
// Scores of a head for given embeddings, by the interpreter: what the written model answers, quantization included.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "learn/embeddings.h"

namespace reef::learn {

// A tensor's bytes as real numbers and back; the way back gives the same bytes.
Result<std::vector<float>> real_values(const ir::Tensor& tensor, std::span<const std::byte> bytes);
Status store_values(const ir::Tensor& tensor, std::span<const float> values, std::span<std::byte> bytes);

// For each row the scores, as real numbers. `head` must be verified.
Result<std::vector<std::vector<float>>> run_head(const ir::Model& head, const Embeddings& embeddings);

}  // namespace reef::learn
