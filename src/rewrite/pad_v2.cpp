// SPDX-License-Identifier: Apache-2.0
// PADV2 that fills with the number that stores zero is a PAD, which fills with just that.
#include "rewrite/op_list.h"
#include "rewrite/rewrite_def.h"

namespace reef::rewrite {
namespace {

bool at(GraphEdit& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if (op.type != "PADV2" || !edit.is_sound(index) || op.inputs.size() != 3 || edit.fits(index)) return false;
  const std::int32_t y = op.outputs[0], filling = op.inputs[2];
  const auto in = edit.affine(op.inputs[0]), out = edit.affine(y);
  if (!in || !out || *in != *out || !edit.is_constant(op.inputs[1]) || !edit.is_constant(filling)) return false;
  const Bytes& value = ir::constant_data(edit.model(), edit.tensor(filling));
  if (value.size() != 1 || edit.tensor(filling).type != out->type) return false;
  const std::int32_t q = out->type == ir::DataType::kInt8 ? static_cast<std::int8_t>(value.data()[0]) : value.data()[0];
  if (q != out->zero_point) {
    edit.note_left(index,
                   fmt::format("{} fills with {}, not with zero (stored as {}), which the chip cannot do",
                               edit.describe(index), q, out->zero_point),
                   edit.tensor(y).name, 0, "pad with 0 in the model");
    return false;
  }
  OpList list(edit, edit.tensor(y).name);
  list.add("PAD", "PadOptions", {}, {op.inputs[0], op.inputs[1]}, {y}, out->type);
  return edit.commit(index, list.take(), "PAD");
}

}  // namespace

extern const Rewrite pad_v2_rewrite;
constinit const Rewrite pad_v2_rewrite = {.info = {.name = "pad-v2",
                                                   .summary = "PADV2 that fills with zero becomes PAD.",
                                                   .safety = Safety::kExact,
                                                   .on_by_default = true},
                                          .at = at};

}  // namespace reef::rewrite
