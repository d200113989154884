// SPDX-License-Identifier: Apache-2.0
// The last layers of an imprinted model, in Coral's form, so that Coral's own engine can go on training uint8 ones:
//
//   [RESHAPE] -> L2_NORMALIZATION -> CONV_2D (cosines) -> MUL (by a factor) -> RESHAPE -> SOFTMAX
//
// 8-bit numbers: normalized embeddings have TFLite's fixed scale of 1/128. uint8 heads have one scale for all weights,
// as Coral's; it is chosen with room and then stays, so that classes added later change no byte of earlier ones
// (weights beyond it are clipped, and that is said). int8 heads have a scale for each class. Cosines of networks that
// end in RELU are much alike, so [-1, 1] in 8 bits (Coral's choice) wastes most of the range: here the middle of the
// cosines seen in training is subtracted through the bias, from every class alike, which SOFTMAX does not see.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "learn/embeddings.h"
#include "learn/head.h"
#include "learn/imprinting.h"

namespace reef::learn {

// The part of a head that stays when it is trained further.
struct ImprintingHeadState {
  double factor = 0;       // 0: to be chosen
  float weight_scale = 0;  // uint8; 0: to be chosen
  std::int32_t weight_zero_point = 0;
  bool has_range = false;        // of cosines
  double middle = 0, reach = 0;  // middle +- reach
};

struct ReadImprinting {
  std::vector<ImprintedClass> classes;
  ImprintingHeadState state;
};

// The classes of a model whose head is of kind kImprinting, or kLinear on normalized embeddings. Of the latter, weights
// count by their direction alone and cannot be trained. (Classes of other linear heads are no directions of embeddings:
// beside them an imprinted class wins nearly always.)
Result<ReadImprinting> read_classes(const ir::Model& model, const Head& head);

// Cosines of all rows with all classes (those of zero rows left out).
struct CosineRange {
  double low = 0, high = 0;
};
CosineRange cosine_range(const std::vector<ImprintedClass>& classes, const Embeddings& embeddings);

// The factor with which softmax fits best what each row says when it is left out of its own class's sum (maximum
// likelihood, between 1 and 100). Without a class of two rows: kUsualFactor.
double fitted_factor(const std::vector<ImprintedClass>& classes, const Embeddings& embeddings);
inline constexpr double kUsualFactor = 20;

struct MadeHead {
  ir::Model model;  // its input is the embedding
  ImprintingHeadState state;
  std::vector<std::string> notes;
};
// `embedding`: the tensor that the head reads. `embeddings`: what it was trained with, for the range of cosines.
Result<MadeHead> imprinting_head(const ir::Tensor& embedding, bool is_normalized,
                                 const std::vector<ImprintedClass>& classes, const Embeddings& embeddings,
                                 const ImprintingHeadState& state);

}  // namespace reef::learn
