// SPDX-License-Identifier: Apache-2.0
#include "micro/operators.h"

#include <algorithm>

namespace reef::micro {
namespace {

// The table, once for each kind of row.
#define MICRO_RELEASE(name)
#define MICRO_OP(op, function, releases)
#define MICRO_TYPES(op, types, releases)
#define MICRO_VERSIONS(op, lowest, highest)

#undef MICRO_RELEASE
#define MICRO_RELEASE(name) constexpr std::string_view kRelease = name;
#include "base/at.h"
#include "micro/operators.def"
#undef MICRO_RELEASE
#define MICRO_RELEASE(name)

constexpr MicroOp kOps[] = {
#undef MICRO_OP
#define MICRO_OP(op, function, releases) {op, function, releases},
#include "micro/operators.def"
#undef MICRO_OP
#define MICRO_OP(op, function, releases)
};
constexpr AcceptedTypes kTypes[] = {
#undef MICRO_TYPES
#define MICRO_TYPES(op, types, releases) {op, types, releases},
#include "micro/operators.def"
#undef MICRO_TYPES
#define MICRO_TYPES(op, types, releases)
};
constexpr TriedVersions kVersions[] = {
#undef MICRO_VERSIONS
#define MICRO_VERSIONS(op, lowest, highest) {op, lowest, highest},
#include "micro/operators.def"
#undef MICRO_VERSIONS
};
#undef MICRO_RELEASE
#undef MICRO_OP
#undef MICRO_TYPES

std::string without_counts(std::string_view types) {
  std::string result(types);
  result.erase(std::remove(result.begin(), result.end(), '+'), result.end());
  return result;
}

void append_types(const ir::Subgraph& graph, const std::vector<std::int32_t>& tensors, std::string& text) {
  std::string last;
  bool several = false;
  const auto finish = [&] {
    if (!last.empty() && several) text += '+';
  };
  for (const std::int32_t index : tensors) {
    if (index < 0) continue;
    const std::string name = ir::type_name(graph.tensors[reef::at(index)].type);
    if (name == last) {
      several = true;
      continue;
    }
    finish();
    if (!last.empty()) text += ',';
    text += name;
    last = name;
    several = false;
  }
  finish();
}

}  // namespace

std::string_view table_release() { return kRelease; }
std::span<const MicroOp> micro_ops() { return kOps; }
std::span<const AcceptedTypes> accepted_types() { return kTypes; }
std::span<const TriedVersions> tried_versions() { return kVersions; }

const MicroOp* find_micro_op(std::string_view type) {
  const auto* at =
      std::find_if(std::begin(kOps), std::end(kOps), [&](const MicroOp& candidate) { return candidate.name == type; });
  return at == std::end(kOps) ? nullptr : at;
}

std::string operand_types(const ir::Subgraph& graph, const ir::Operator& op) {
  std::string text;
  append_types(graph, op.inputs, text);
  text += '>';
  append_types(graph, op.outputs, text);
  return text;
}

bool accepts_types(std::string_view op, std::string_view types, Releases releases) {
  const std::string wanted = without_counts(types);
  Releases found = 0;
  for (const AcceptedTypes& row : kTypes) {
    if (row.op == op && without_counts(row.types) == wanted) found |= row.releases;
  }
  return (found & releases) == releases;
}

std::vector<std::string_view> types_of(std::string_view op, Releases releases) {
  std::vector<std::string_view> result;
  for (const AcceptedTypes& row : kTypes) {
    if (row.op == op && (row.releases & releases) == releases) result.push_back(row.types);
  }
  return result;
}

}  // namespace reef::micro
