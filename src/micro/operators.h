// SPDX-License-Identifier: Apache-2.0
// The operators of TFLite Micro: which there are, the function of its resolver that registers each, and the types of
// operands that it runs. operators.def is made by tools/oracle/make_micro_ops.py, which asks the runtime itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"

namespace reef::micro {

// Releases of TFLite Micro, as a set of bits.
using Releases = unsigned;
inline constexpr Releases kTflm = 1;   // the package `tflite-micro` that the table was made from
inline constexpr Releases kCoral = 2;  // the one that Coral's SDK for the Dev Board Micro contains (July 2022)

struct MicroOp {
  std::string_view name;      // as in ir::Operator::type
  std::string_view function;  // "AddConv2D"
  Releases releases = 0;
};

struct AcceptedTypes {
  std::string_view op;
  std::string_view types;  // "int8+,int32>int8": a plus means several in a row
  Releases releases = 0;
};

struct TriedVersions {
  std::string_view op;
  int lowest = 1, highest = 1;  // that ran
};

std::string_view table_release();  // "tflite-micro 0.dev20261023182759"
std::span<const MicroOp> micro_ops();
std::span<const AcceptedTypes> accepted_types();
std::span<const TriedVersions> tried_versions();

// Null where no release has it.
const MicroOp* find_micro_op(std::string_view type);

// The operand types of an operator in the table's form.
std::string operand_types(const ir::Subgraph& graph, const ir::Operator& op);
// Whether all of `releases` ran the operator with such operands. How many stand in a row does not matter.
bool accepts_types(std::string_view op, std::string_view types, Releases releases);
// The types that these releases run the operator with, for a message.
std::vector<std::string_view> types_of(std::string_view op, Releases releases);

}  // namespace reef::micro
