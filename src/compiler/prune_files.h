// SPDX-License-Identifier: Apache-2.0
// What `reef prune` writes beside the model: which channels stayed, under the names that the training framework knows,
// and a page with the table and a drawing of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/front_end.h"
#include "compiler/prune_driver.h"
#include "ir/model.h"
#include "prune/remove_units.h"

namespace reef::compiler {

// The layers that have fewer inputs or outputs than in `prepared`, with their names in the ONNX file `path` that
// `loaded` was read from (no such names for other formats). Of a model that has lost nothing, all layers.
std::vector<PrunedLayer> pruned_layers(const ir::Model& prepared, const prune::KeptIndices& kept,
                                       const FrontEndResult& loaded, const std::string& path);

// An .npz with, for each layer, "<name>.keep_out" and "<name>.keep_in": booleans over the original's channels; with
// `zeros` "<name>.mask" instead: a boolean for each weight, in the layout of the .tflite file. <name> is the ONNX
// initializer's where it is known, else the weights tensor's.
Result<std::vector<std::uint8_t>> masks_file(const PruneOutcome& outcome, bool zeros);

// JSON: for each layer its names and the indices that stay, for cutting the training framework's own weights.
std::string map_text(const std::string& model, const std::string& output, const PruneOutcome& outcome);

// A page (HTML with inline SVG, no scripts): the table, accuracy against time and against size.
std::string plot_page(const std::string& model, const PruneOutcome& outcome);

}  // namespace reef::compiler
