// SPDX-License-Identifier: Apache-2.0
// From a part of a model to work for tiles (tiled/program.h), without addresses.
//
// Each operator is lowered by its own file (lowerings.def); builder.h says how they work together.
//
// What there is no code for is answered with kUnsupported and the reason; nothing is approximated.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "ir/model.h"
#include "lower/row_slices.h"
#include "numeric/chip_lstm.h"
#include "tiled/program.h"

namespace reef::lower {

// An operator that there is no code for, and why.
struct RefusedOp {
  std::int32_t op = -1;  // of subgraph 0
  std::string reason;
};

struct SketchSizes;        // builder.h
class RearrangementCache;  // rearrangement_cache.h

struct LowerOptions {
  tiled::Level level = tiled::Level::kAsGoogle;
  // Gets all operators that are known to stand in the way when lowering fails with kUnsupported; empty if the reason
  // lies in no single operator. Operators that only read the results of such ones are not listed.
  std::vector<RefusedOp>* refused = nullptr;
  numeric::LstmArguments lstm_arguments = numeric::LstmArguments::kWide;
  // What is done in slices: groups that do not overlap, in order, which SlicedOps takes.
  std::vector<SliceGroup> groups = {};
  // Tensors of the model, images on the grid, that the host keeps while nothing uses them. Inputs of the part among
  // them come in anew with each use.
  std::set<std::int32_t> hosted = {};
  // Several pixels of thin convolutions at a time (pixel_patches.h), which takes more memory for parameters.
  bool patches = false;
  // Leaves out parameters and what only they decide: for the sizes of activations, quickly.
  bool sketch = false;
  SketchSizes* sizes = nullptr;  // of the same part, if several sketches are made of it
  // Plans of movements, of any part and model; null: only those of this part.
  RearrangementCache* movements = nullptr;
  Budget budget = {};  // looked at before each operator: kResourceExhausted when it is over
};

// `model` must be verified; `ops` ascending operators of subgraph 0; `inputs` and `outputs` the tensors at the border.
Result<tiled::TiledProgram> lower(const ir::Model& model, const std::vector<std::int32_t>& ops,
                                  const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs,
                                  const LowerOptions& options = {});

}  // namespace reef::lower
