// SPDX-License-Identifier: Apache-2.0
// The last layers of softmax regression: FULLY_CONNECTED -> SOFTMAX, in the embedding's type. 8-bit weights have one
// scale (uint8: with a zero point, as Coral's; int8: symmetric, which every release of TFLite computes alike).
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "learn/embeddings.h"
#include "learn/linear_classifier.h"

namespace reef::learn {

// `embeddings`: what it was trained with; the range of the scores before SOFTMAX comes from them.
Result<ir::Model> softmax_head(const ir::Tensor& embedding, const LinearClassifier& classifier,
                               const std::vector<std::string>& class_names, const Embeddings& embeddings);

}  // namespace reef::learn
