// SPDX-License-Identifier: Apache-2.0
// From a matching to new bytes: instructions, blobs, layers.
#pragma once

#include <map>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/package.h"
#include "retarget/matching.h"
#include "retarget/retarget.h"

namespace reef::retarget {

struct NewContent {
  isa::Program program;  // of the execution program
  std::vector<std::uint8_t> cached, streamed;
};

// Everything that follows from the matching and, for old packages, the softmax code of the scalar core.
Result<NewContent> new_content(const Template& compiled, const Network& network, const Matching& matching,
                               Report& report);

// The first difference to the template, in words; empty if there is none.
std::string difference_to_template(const Template& compiled, const NewContent& content);

}  // namespace reef::retarget
