// SPDX-License-Identifier: Apache-2.0
// SOFTMAX as old compilers generate it: code for the scalar core behind the outfeed of the logits.
//
// For each class the code takes (value - zero point) * scale, three times: for the maximum, for the sum and for the
// result. Zero point and scale are immediates. The rest (a factor of log2(e), 256 and 255) does not depend on the
// model.
//
// How it is known: the code of seven packages of the collection, whose immediates are the sources' scale and zero
// point.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "isa/program.h"
#include "retarget/network.h"

namespace reef::retarget {

struct ScalarSoftmax {
  std::vector<std::uint32_t> zero_points;  // instructions whose immediate is the zero point
  std::vector<std::uint32_t> scales;       // the scale
  std::int32_t zero_point = 0;             // the template's
  float scale = 0;
};

// Refuses where the program has no such code, or it is not what is known.
Result<ScalarSoftmax> find_scalar_softmax(const isa::Program& program);

}  // namespace reef::retarget
