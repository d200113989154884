// SPDX-License-Identifier: Apache-2.0
// Other functions of one 8-bit tensor: single operators (ABS, EXP, LOG, SQRT, NEG ...) and groups of them that some
// converter wrote for one function (Mish, softplus, a GELU spelled out), also through floating point.
#include "passes/chip/unary_cone.h"
#include "passes/chip/unary_function.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::size_t kMostLargeCones = 8, kMostSmallCones = 4;

// They have rewrites of their own, which can be switched off.
bool has_its_own(const ChipGraph& edit, const Cone& cone) {
  const std::string& type = edit.op(cone.ops[0]).type;
  return cone.ops.size() == 1 &&
         (type == Op::HARD_SWISH || type == Op::LEAKY_RELU || type == Op::ELU || type == Op::GELU);
}

bool unary_at(ChipGraph& edit, std::int32_t index) {
  const std::vector<Cone> cones = cones_ending_at(edit, index);
  for (std::size_t i = 0; i < cones.size(); ++i) {
    // The largest first, and the smallest of a long chain: a chain of thousands would be computed dozens of times.
    if (i >= kMostLargeCones && i + kMostSmallCones < cones.size()) continue;
    const Cone& cone = cones[i];
    // An end whose beginning stays on the CPU has nothing to gain, and hides what errors in the beginning grow to.
    if (!rest_fits(edit, cones.front(), cone)) continue;
    const auto in = edit.affine(cone.x), out = edit.affine(cone.y);
    if (!in || !out || in->type != out->type || has_its_own(edit, cone)) continue;
    const auto table = tabulate(edit, cone.ops, cone.x, cone.y);
    if (!table) continue;
    if (const auto whole = continuation(edit, cone)) {
      if (unary_at(edit, whole->ops.back())) return true;
      if (!is_tame(edit, cone, *whole, *table)) continue;
    }
    const std::vector<Candidate> candidates = {
        line_candidate(*in, *out, *table), logistic_candidate(*out),  tanh_candidate(*out),
        hard_swish_candidate(*out),        gelu_candidate(*in, *out), kinked_gelu_candidate(*in, *out)};
    if (replace_function(edit, index, cone.x, cone.y, *table, candidates)) return true;
  }
  return false;
}

}  // namespace

constinit const Pass unary_chip_pass = {
    .name = "unary",
    .summary =
        "Operators that together compute a function of one 8-bit tensor (ABS, EXP, softplus, Mish ...) "
        "become a few that the chip has, found by trying all 256 values.",
    .safety = Safety::kRounding,
    .at_on_chip = unary_at};

}  // namespace reef::passes
