// SPDX-License-Identifier: Apache-2.0
// The end of a detector that chooses its best boxes: TOPK_V2, NON_MAX_SUPPRESSION or the peaks of a heat map, and what
// follows.
//
// Such an end has no layers, no Edge TPU runs it, and integers ruin it: it joins pixels, scores and class numbers at
// one scale, and which rows are chosen, and in which order, changes with the smallest rounding. So it is taken off
// before a model is quantized, and stays in float. The network in front of it is quantized by itself: each tensor that
// the end reads counts as an output, with its own scale, and is judged as one. Afterwards the end is put back, behind
// DEQUANTIZE.
//
// A choice with layers behind it (the queries of a DETR) is not taken off: those layers are what quantization is for.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "quantize/split_outputs.h"

namespace reef::quantize {

struct SelectionTail {
  ir::Model whole;                    // the model as it was
  std::vector<std::int32_t> ops;      // of `whole`, ascending: what was taken off
  std::vector<std::int32_t> borders;  // tensors of `whole`, one for each output of the rest

  bool empty() const { return ops.empty(); }
};

// Takes the end off the first subgraph. The rest computes the outputs that the end does not, in their order, and then
// what the end reads. Tensors keep their numbers. `model` must be verified; it is left alone where there is no such
// end.
SelectionTail take_off_selection(ir::Model& model);

// Puts it back behind a model that was made from the rest: `given` says where its outputs stand now.
Status put_back_selection(const SelectionTail& tail, const std::vector<GivenOut>& given, ir::Model& model);

}  // namespace reef::quantize
