// SPDX-License-Identifier: Apache-2.0
// Computes what an Edge TPU would for a quantized model: every op by plain loops over whole tensors, with
// the chip's numerics. It shares no code with the virtual device (src/execute/device, src/isa) beyond the definitions
// of requantization and of the function tables in src/numeric; nothing here knows of tiles, memories or instructions.
// Where Google's binary on the virtual device gives the same bytes, both have the whole path right.
//
//   sum of products (64 bits) + bias -> saturate to 32 bits -> float32 * multiplier -> clamp -> round half to even
//   -> + zero point
//
// How it is known: docs/hardware; each op says what differs from that line. An op, operand or option of which it is not
// known how Google's compilers express it is an error that says so: nothing is guessed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "ir/model.h"

namespace reef::reference {

// Contents of tensors by name, as TFLite holds them.
using NamedBytes = std::map<std::string, std::vector<std::uint8_t>>;

inline constexpr int kReefGeneration = 17;  // Reef's own programs: one more than the last of Google's
inline constexpr int kOldestGeneration = 1;

struct ChipReferenceOptions {
  // The number in the compiler's version. What depends on it: the weights of ADD's operands in the oldest one, average
  // pooling over whole maps divides in another order before 15, softmax is computed in floating point by the scalar
  // core before 15, and gates of an LSTM saturate up to 16 (numeric::LstmArguments).
  int compiler_generation = kReefGeneration;
  Budget budget = {};  // of time, and of memory for tensors, which take 4 bytes for each element here
};

// A variable that an op changes (an LSTM's state) is a tensor of this name to the compiled model.
inline constexpr char kVariableOutputSuffix[] = "_variable_output";

// Contents of the first graph's tensors by number, as TFLite holds them.
using TensorBytes = std::map<std::int32_t, std::vector<std::uint8_t>>;

// The values of `wanted`, from those of `given` and of constants. Ops that they do not depend on are not looked at.
// Numbers are of tensors; -1 - n is what variable n is after the run. Shapes are inferred again and must be those that
// the model declares. Beyond that the model must be one that the CPU runtime prepares (execute/cpu/interpreter.h):
// attributes are not checked again.
Result<TensorBytes> evaluate_tensors_as_chip(const ir::Model& model, const TensorBytes& given,
                                             const std::vector<std::int32_t>& wanted,
                                             const ChipReferenceOptions& options = {});

// The same by names, for tests and for packages, which know tensors by name. Ops that they do not depend on are not
// looked at.
Result<NamedBytes> evaluate_as_chip(const ir::Model& model, const NamedBytes& given,
                                    const std::vector<std::string>& wanted, const ChipReferenceOptions& options);

}  // namespace reef::reference
