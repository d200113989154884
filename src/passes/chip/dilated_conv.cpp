// SPDX-License-Identifier: Apache-2.0
// SPACE_TO_BATCH_ND, a convolution of stride 1 and BATCH_TO_SPACE_ND: the dilated convolution as TensorFlow 1 writes
// it. The same sums are those of one convolution with a dilation, on an image padded by what was padded less what was
// cropped. Signals of one dimension (Conv1D of Keras) become images of one row in between, by reshapes.
#include <algorithm>

#include "ops/registry.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::int64_t kMostMargin = 1 << 20;  // pixels

struct Side {
  std::int64_t before = 0, after = 0;  // padding that is left, in pixels
};

struct Found {
  std::int32_t space_to_batch = -1, convolution = -1;
  std::int64_t dilation = 0;
  Side rows, columns;
};

// Four numbers for two dimensions, and the same block size in both.
std::optional<std::vector<std::int64_t>> margins(const ChipGraph& edit, const ir::Operator& op, std::int64_t& block) {
  const auto blocks = edit.ints(op.inputs[1]), values = edit.ints(op.inputs[2]);
  if (!blocks || !values || blocks->size() != 2 || values->size() != 4) return {};
  if ((*blocks)[0] != (*blocks)[1] || (*blocks)[0] < 2) return {};
  if (std::any_of(values->begin(), values->end(), [](std::int64_t v) { return v < 0 || v > kMostMargin; })) return {};
  if (block != 0 && block != (*blocks)[0]) return {};
  block = (*blocks)[0];
  return values;
}

// Without stride, dilation and padding of its own.
bool is_plain_convolution(const ChipGraph& edit, std::int32_t index) {
  if (index < 0 || !edit.is_sound(index)) return false;
  const ir::Operator& op = edit.op(index);
  if (op.type != Op::CONV_2D && op.type != Op::DEPTHWISE_CONV_2D) return false;
  for (const char* name : {"stride_w", "stride_h", "dilation_w_factor", "dilation_h_factor"}) {
    if (op.attributes.get_int(name, 1) != 1) return false;
  }
  return op.attributes.get_enum("padding") == "VALID";
}

std::optional<Found> find(const ChipGraph& edit, std::int32_t last) {
  const ir::Operator& to_space = edit.op(last);
  if (to_space.type != Op::BATCH_TO_SPACE_ND || !edit.is_sound(last)) return {};
  Found found;
  found.convolution = edit.producer(to_space.inputs[0]);
  if (!is_plain_convolution(edit, found.convolution) || !edit.has_one_user(to_space.inputs[0])) return {};
  const ir::Operator& convolution = edit.op(found.convolution);
  found.space_to_batch = edit.producer(convolution.inputs[0]);
  if (found.space_to_batch < 0) return {};  // others may read it too: converters compute it once for several
  const ir::Operator& to_batch = edit.op(found.space_to_batch);
  if (to_batch.type != Op::SPACE_TO_BATCH_ND || !edit.is_sound(found.space_to_batch)) return {};
  const auto padding = margins(edit, to_batch, found.dilation), cropping = margins(edit, to_space, found.dilation);
  if (!padding || !cropping) return {};
  found.rows = {(*padding)[0] - (*cropping)[0], (*padding)[1] - (*cropping)[1]};
  found.columns = {(*padding)[2] - (*cropping)[2], (*padding)[3] - (*cropping)[3]};
  return found;
}

// Whether the sizes agree with what a convolution of this dilation gives; `same` if padding SAME does.
bool sizes_agree(std::int32_t in, std::int32_t out, std::int32_t filter, std::int64_t dilation, const Side& side,
                 bool& same) {
  const std::int64_t reach = (filter - 1) * dilation;
  if (side.before < 0 || side.after < 0 || side.before > in + reach || side.after > in + reach) return false;
  same = same && side.before == reach / 2 && side.before + side.after == reach;
  return in + side.before + side.after - reach == out;
}

// The tensor that a reshape makes `tensor` of; -1: no reshape makes it.
std::int32_t before_reshape(const ChipGraph& edit, std::int32_t tensor) {
  const std::int32_t maker = edit.producer(tensor);
  if (maker < 0 || !edit.is_sound(maker)) return -1;
  const ir::Operator& op = edit.op(maker);
  const bool is_reshape = ops::has_same_bytes(op);
  return is_reshape && edit.same_quantization(op.inputs[0], tensor) ? op.inputs[0] : -1;
}

// On signals [1, w, c].
bool at_signal(ChipGraph& edit, std::int32_t index) {
  const ir::Operator to_space = edit.op(index);
  if (to_space.type != Op::BATCH_TO_SPACE_ND || !edit.is_sound(index)) return false;
  const std::int32_t sums = before_reshape(edit, to_space.inputs[0]), y = to_space.outputs[0];
  if (sums < 0 || !is_plain_convolution(edit, edit.producer(sums))) return false;
  ir::Operator convolution = edit.op(edit.producer(sums));
  const std::int32_t image = convolution.inputs[0], apart = before_reshape(edit, image);
  const std::int32_t first = apart < 0 ? -1 : edit.producer(apart);
  if (first < 0 || edit.op(first).type != Op::SPACE_TO_BATCH_ND || !edit.is_sound(first)) return false;
  const ir::Operator to_batch = edit.op(first);
  const std::int32_t x = to_batch.inputs[0];
  const auto block = edit.ints(to_batch.inputs[1]), again = edit.ints(to_space.inputs[1]);
  const auto padding = edit.ints(to_batch.inputs[2]), cropping = edit.ints(to_space.inputs[2]);
  if (!block || !again || !padding || !cropping || *block != *again || block->size() != 1) return false;
  if (padding->size() != 2 || cropping->size() != 2 || (*block)[0] < 2 || (*block)[0] > 1024) return false;
  if (!edit.affine(x) || !edit.same_quantization(x, image) || !edit.affine(y) || !edit.same_quantization(y, sums)) {
    return false;
  }
  const ir::Shape in = edit.shape(x), out = edit.shape(y), rows = edit.shape(image);
  const ir::Shape filter = edit.shape(convolution.inputs[1]);
  if (in.rank() != 3 || out.rank() != 3 || rows.rank() != 4 || filter.rank() != 4) return false;
  if (in[0] != 1 || rows[1] != 1 || filter[1] != 1 || rows.last() != in.last()) return false;
  const Side side = {(*padding)[0] - (*cropping)[0], (*padding)[1] - (*cropping)[1]};
  bool same = true;
  if (!sizes_agree(in[1], out[1], filter[2], (*block)[0], side, same)) return false;
  OpList list(edit, edit.tensor(y).name);
  std::int32_t source = list.reshape(x, {1, 1, in[1], in[2]});
  if (!same && side.before + side.after > 0) {
    const std::int64_t values[] = {0, 0, 0, 0, side.before, side.after, 0, 0};
    const auto width = static_cast<std::int32_t>(in[1] + side.before + side.after);
    const std::int32_t padded = list.tensor_like(x, {1, 1, width, in[2]}), paddings = list.int_matrix(values, 2);
    list.add(Op::PAD, "PadOptions", {}, {source, paddings}, {padded}, edit.tensor(x).type);
    source = padded;
  }
  convolution.attributes.set("padding", ir::EnumName{same ? "SAME" : "VALID"});
  convolution.attributes.set("dilation_w_factor", (*block)[0]);
  convolution.inputs[0] = source;
  const std::int32_t result = list.tensor_like(y, {1, 1, out[1], out[2]});
  list.add(convolution.type, convolution.options_type, convolution.attributes, convolution.inputs, {result},
           edit.tensor(x).type);
  list.last().version = std::max(convolution.version, convolution.type == Op::DEPTHWISE_CONV_2D ? 2 : 1);
  list.reshape(result, out, y);
  return edit.commit(index, list.take(), fmt::format("a {} with dilation {}", convolution.type, (*block)[0]));
}

bool dilated_conv_at(ChipGraph& edit, std::int32_t index) {
  const auto found = find(edit, index);
  if (!found) return at_signal(edit, index);
  const std::int32_t x = edit.op(found->space_to_batch).inputs[0], y = edit.op(index).outputs[0];
  ir::Operator convolution = edit.op(found->convolution);
  if (!edit.affine(x) || !edit.same_quantization(x, convolution.inputs[0])) return false;
  if (!edit.affine(y) || !edit.same_quantization(y, convolution.outputs[0])) return false;
  const ir::Shape in = edit.shape(x), out = edit.shape(y), filter = edit.shape(convolution.inputs[1]);
  if (in.rank() != 4 || out.rank() != 4 || filter.rank() != 4 || found->dilation > 1024) return false;
  bool same = true;
  if (!sizes_agree(in[1], out[1], filter[1], found->dilation, found->rows, same)) return false;
  if (!sizes_agree(in[2], out[2], filter[2], found->dilation, found->columns, same)) return false;
  OpList list(edit, edit.tensor(y).name);
  std::int32_t source = x;
  const Side &rows = found->rows, &columns = found->columns;
  if (!same && rows.before + rows.after + columns.before + columns.after > 0) {
    const std::int64_t values[] = {0, 0, rows.before, rows.after, columns.before, columns.after, 0, 0};
    const std::int32_t paddings = list.int_matrix(values, 2);
    const auto padded = [](std::int32_t size, const Side& side) {
      return static_cast<std::int32_t>(size + side.before + side.after);
    };
    source = list.tensor_like(x, {in[0], padded(in[1], rows), padded(in[2], columns), in[3]});
    list.add(Op::PAD, "PadOptions", {}, {x, paddings}, {source}, edit.tensor(x).type);
  }
  convolution.attributes.set("padding", ir::EnumName{same ? "SAME" : "VALID"});
  convolution.attributes.set("dilation_w_factor", found->dilation);
  convolution.attributes.set("dilation_h_factor", found->dilation);
  std::vector<std::int32_t> inputs = convolution.inputs;
  inputs[0] = source;
  list.add(convolution.type, convolution.options_type, convolution.attributes, inputs, {y}, edit.tensor(x).type);
  const std::int32_t least = convolution.type == Op::DEPTHWISE_CONV_2D ? 2 : 1;
  list.last().version = std::max(convolution.version, least);
  return edit.commit(index, list.take(), fmt::format("a {} with dilation {}", convolution.type, found->dilation));
}

}  // namespace

constinit const Pass dilated_conv_chip_pass = {
    .name = "dilated-conv",
    .summary = "A convolution between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND becomes one with a dilation.",
    .at_on_chip = dilated_conv_at};

}  // namespace reef::passes
