// SPDX-License-Identifier: Apache-2.0
// From a compiled file to a template whose tensor ops can be matched with a model.
#pragma once

#include <cstdint>
#include <memory>

#include "base/budget.h"
#include "base/status.h"
#include "formats/darwinn/package.h"
#include "ir/model.h"
#include "retarget/alignment.h"
#include "retarget/matching.h"
#include "retarget/network.h"

namespace reef::retarget {

// `package` must outlive the template. `max_steps`: 0 for more than any known network takes.
Result<Template> open_template(const darwinn::Package& package, std::int64_t max_steps, const Budget& budget = {});

// Views point into the template: to be made when it has its final place.
void make_views(Template& compiled);

// Says which tensors of the model the layers of the template's program are. `graph` and `custom_op` are the compiled
// file's.
Status bind_layers(const ir::Subgraph& graph, const ir::Operator& custom_op, const Alignment& alignment,
                   Template& compiled);

// The matching with the model that the template was compiled from: refuses unless every constant and every parameter
// that follows from it is what the template has.
Result<Matching> match_source(const Template& compiled, const Network& network);

// A compiled file together with the model that it was compiled from.
struct Explanation {
  Alignment alignment;
  darwinn::CustomOptions custom;
  Template compiled;
  std::unique_ptr<Network> network;
  Matching matching;
};
// Both models must be verified; `source` must outlive the explanation. Refuses where the file was not compiled from it.
Result<std::unique_ptr<Explanation>> explain(const ir::Model& compiled, const ir::Model& source,
                                             std::int64_t max_steps = 0, const Budget& budget = {});

}  // namespace reef::retarget
