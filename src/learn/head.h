// SPDX-License-Identifier: Apache-2.0
// Where a classifier's last layer begins, and taking a model apart there: extractor (picture -> embedding) and head
// (embedding -> scores). Only the extractor needs to be compiled for the chip; the head stays on the CPU, where it can
// be trained. Put together again they are the model they were.
//
// Heads that are recognised, from the output backwards:
//   imprinting  ... L2_NORMALIZATION -> [QUANTIZE] -> CONV_2D -> MUL -> RESHAPE -> SOFTMAX  (Coral's form)
//   linear      ... FULLY_CONNECTED or 1x1 CONV_2D -> [RESHAPE, SQUEEZE, ...] -> SOFTMAX or LOGISTIC -> [...]
// A model that ends in neither counts as an extractor. A head inside an Edge TPU custom op cannot be seen.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ir/model.h"

namespace reef::learn {

enum class HeadKind { kNone, kImprinting, kLinear };

struct Head {
  HeadKind kind = HeadKind::kNone;
  // Tensor of subgraph 0 that the last layer reads (kImprinting: that L2_NORMALIZATION reads, whose 8-bit results are
  // coarser); kNone: the model's output.
  std::int32_t embedding = -1;
  std::int32_t layer = -1;     // operator with the weights
  std::int32_t factor = -1;    // kImprinting: MUL
  std::int32_t dimension = 0;  // of the embedding
  std::int32_t classes = 0;
  // kNone: what a dense layer at the model's end reads, if that is longer than the output. Classifiers of PyTorch end
  // so, in scores without SOFTMAX, and what they read is the better embedding; embeddings may end so, too. -1: no such
  // layer.
  std::int32_t behind = -1;
  bool is_normalized = false;     // the embedding is computed by L2_NORMALIZATION
  bool reads_normalized = false;  // the layer reads what L2_NORMALIZATION computes
};

std::string_view to_string(HeadKind kind);

// `model` must be verified. `embedding`: the name of the tensor to cut at instead; then kind is kNone. Fails if there
// are several outputs, or if the embedding is not one vector of a type that learning can work with.
Result<Head> find_head(const ir::Model& model, std::string_view embedding = {});

struct SplitModel {
  ir::Model extractor;
  ir::Model head;  // no operators: the model was an extractor already
};
Result<SplitModel> split(const ir::Model& model, const Head& head);
// The extractor alone.
Result<ir::Model> extractor_of(const ir::Model& model, const Head& head);

// `head` continues where `extractor` ends: each of its inputs becomes the extractor's output of the same name, or,
// where names differ, the one in the same place. Type, shape and quantization must be the same. Edge TPU custom ops of
// the extractor are taken over byte for byte. Descriptions and metadata of the head win.
Result<ir::Model> join(const ir::Model& extractor, const ir::Model& head);

}  // namespace reef::learn
