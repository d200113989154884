// SPDX-License-Identifier: Apache-2.0
// Other functions of one 8-bit tensor: single operators (ABS, EXP, LOG, SQRT, NEG ...) and groups of them that some
// converter wrote for one function (Mish, softplus, a GELU spelled out), also through floating point.
#include "rewrite/rewrite_def.h"
#include "rewrite/unary_cone.h"
#include "rewrite/unary_function.h"

namespace reef::rewrite {
namespace {

// They have rewrites of their own, which can be switched off.
bool has_its_own(const GraphEdit& edit, const Cone& cone) {
  const std::string& type = edit.op(cone.ops[0]).type;
  return cone.ops.size() == 1 && (type == "HARD_SWISH" || type == "LEAKY_RELU" || type == "ELU" || type == "GELU");
}

bool at(GraphEdit& edit, std::int32_t index) {
  for (const Cone& cone : cones_ending_at(edit, index)) {
    const auto in = edit.affine(cone.x), out = edit.affine(cone.y);
    if (!in || !out || in->type != out->type || has_its_own(edit, cone)) continue;
    const auto table = tabulate(edit, cone.ops, cone.x, cone.y);
    if (!table) continue;
    const std::vector<Candidate> candidates = {
        line_candidate(*in, *out, *table), logistic_candidate(*out),  tanh_candidate(*out),
        hard_swish_candidate(*out),        gelu_candidate(*in, *out), kinked_gelu_candidate(*in, *out)};
    if (replace_function(edit, index, cone.x, cone.y, *table, candidates)) return true;
  }
  return false;
}

}  // namespace

extern const Rewrite unary_rewrite;
constinit const Rewrite unary_rewrite = {
    .info = {.name = "unary",
             .summary = "Operators that together compute a function of one 8-bit tensor (ABS, EXP, softplus, Mish ...) "
                        "become a few that the chip has, found by trying all 256 values.",
             .safety = Safety::kRounding,
             .on_by_default = true},
    .at = at};

}  // namespace reef::rewrite
