// SPDX-License-Identifier: Apache-2.0
// Why a model was not compiled, in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "partition/check.h"

namespace reef::compiler {

// One try of a search (-d). Without one, the only try.
struct Attempt {
  std::int32_t ops = 0;              // how many operators may be on the chip
  std::vector<std::string> tensors;  // that end the part; empty for the whole model
  Status status;
  bool is_late = false;  // given up for its time
};

struct Refusal {
  enum class Kind : std::uint8_t {
    kNotParsed,
    kNotQuantized,
    kAlreadyCompiled,
    kFailed,   // no code for what was chosen
    kTimeout,  // the time ran out
    kRequest,  // what was asked for cannot be
  };
  Kind kind = Kind::kRequest;
  std::string model;              // the file; empty: all of them
  std::string explanation;        // whole sentences, what to do included
  std::vector<Attempt> attempts;  // with -d: all that were tried
};

Refusal not_parsed(const std::string& path, const Status& status);
// The model is for CPUs: its activations are float, or have 16 bits.
bool must_be_quantized(const ir::Model& model, const partition::Assessment& assessment);
Refusal not_quantized(const std::string& path, const ir::Model& model, const partition::Assessment& assessment);
Refusal already_compiled(const std::string& path);
// `why`: what the budget says (Budget::check).
Refusal timed_out(const std::string& path, const Status& why);

}  // namespace reef::compiler
