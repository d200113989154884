// SPDX-License-Identifier: Apache-2.0
// Tokens whose number cannot be cut over the tiles get a few more, which nobody reads.
//
// Problem: tokens are the pixels of an image, which is cut over 4 x 4 tiles. 196 tokens are 14 x 14 pixels; the 197 of
// a vision transformer with its class token are a prime, one row of pixels, and a single row of tiles computes.
// Approach: where the axis of tokens begins (the PAD that makes room for the class token, or one that is added), it
// gets so many more that the rows and columns of an image can be cut: 198 = 11 x 18. Operators that treat tokens one by
// one compute some that nothing depends on. Who looks at several (keys and values of attention, a mean over tokens)
// gets a SLICE of those that there were, so that all results are the same bytes.
#include <algorithm>

#include "passes/chip/token_axis.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::int32_t kFewestTokens = 17, kMostTokens = 4096;  // fewer are a pixel for each tile
constexpr int kTilesPerAxis = 4;

// Pixels of the busiest tile: the image is as square as it can be, as lowering has it.
std::int32_t share_of(std::int32_t tokens) {
  std::int32_t height = 1;
  for (std::int32_t h = 2; std::int64_t{h} * h <= tokens; ++h) {
    if (tokens % h == 0) height = h;
  }
  const auto cut = [](std::int32_t size) { return (size + kTilesPerAxis - 1) / kTilesPerAxis; };
  return cut(height) * cut(tokens / height);
}

// The number of tokens to compute with; the same where a few more would not save three tenths.
std::int32_t even_number(std::int32_t tokens) {
  std::int32_t best = tokens, least = share_of(tokens) * 7 / 10 + 1;
  for (std::int32_t more = tokens + 1; more <= tokens + tokens / 8 + kTilesPerAxis; ++more) {
    if (share_of(more) >= least) continue;
    least = share_of(more);
    best = more;
  }
  return best;
}

class Padding {
 public:
  Padding(ChipGraph& edit, const TokenRegion& region, std::int32_t entry, std::int32_t wanted)
      : edit_(edit), region_(region), entry_(entry), more_(wanted - region.tokens), list_(edit, "tokens") {}

  std::vector<ir::Operator> run(std::vector<std::int32_t>& origins) {
    ops_ = edit_.graph().operators;
    const std::int32_t entry_op = edit_.producer(entry_);
    for (const OperandOf& end : region_.cut) needs_cut_.push_back(operand(end));
    for (const auto& [tensor, axis] : region_.axis) {
      if (edit_.is_graph_output(tensor)) needs_cut_.push_back(tensor);
    }
    make_tensors();
    change_operands();
    std::vector<ir::Operator> result;
    if (entry_op < 0) begin(result, origins, 0);
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(ops_.size()); ++i) {
      const std::vector<std::int32_t> outputs = edit_.op(i).outputs;
      const bool extends = i == entry_op && extends_pad();
      if (extends) extend_pad(ops_[at(i)]);
      result.push_back(ops_[at(i)]);
      origins.push_back(edit_.origin(i));
      if (i == entry_op && !extends) begin(result, origins, i);
      if (i == entry_op && !extends) continue;
      for (const std::int32_t output : outputs) {
        if (padded_.contains(output) && padded_[output] != output) cut(output, result, origins, i);
      }
    }
    return result;
  }

 private:
  std::int32_t operand(const OperandOf& of) const { return edit_.op(of.op).inputs[of.k]; }
  bool is_cut(std::int32_t op, std::size_t k) const {
    return std::any_of(region_.cut.begin(), region_.cut.end(),
                       [&](const OperandOf& end) { return end.op == op && end.k == k; });
  }
  ir::Shape longer(std::int32_t tensor) const {
    ir::Shape shape = edit_.shape(tensor);
    shape[region_.axis.at(tensor)] += more_;
    return shape;
  }

  // A tensor that somebody needs as it was stays, and is cut from a new one.
  void make_tensors() {
    for (const auto& [tensor, axis] : region_.axis) {
      const bool stays = std::find(needs_cut_.begin(), needs_cut_.end(), tensor) != needs_cut_.end() ||
                         (tensor == entry_ && !extends_pad());
      if (stays) {
        padded_[tensor] = list_.tensor_like(tensor, longer(tensor));
        continue;
      }
      padded_[tensor] = tensor;
      changed_shapes_.emplace_back(tensor, longer(tensor));
    }
    for (const auto& [tensor, shape] : changed_shapes_) {
      ir::Tensor& it = edit_.change_tensor(tensor);
      it.shape = shape;
      it.shape_signature.clear();
    }
  }

  void change_operands() {
    const bool entry_stays = !extends_pad();
    const std::int32_t entry_op = edit_.producer(entry_);
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const auto index = static_cast<std::int32_t>(i);
      for (std::size_t k = 0; k < ops_[i].inputs.size(); ++k) {
        const auto found = padded_.find(ops_[i].inputs[k]);
        if (found != padded_.end() && !is_cut(index, k)) ops_[i].inputs[k] = found->second;
      }
      if (index == entry_op && entry_stays) continue;
      for (std::int32_t& output : ops_[i].outputs) {
        const auto found = padded_.find(output);
        if (found != padded_.end()) output = found->second;
      }
    }
    for (std::size_t i = 0; i < region_.constants.size(); ++i) {
      const OperandOf& of = region_.constants[i];
      ops_[at(of.op)].inputs[of.k] = longer_constant(operand(of), region_.constant_axes[i]);
    }
    for (const std::int32_t index : region_.reshapes) {
      ir::Operator& op = ops_[at(index)];
      const ir::Shape shape = edit_.shape(op.outputs[0]);
      if (op.type == Op::RESHAPE) {
        list_.reshape(op.inputs[0], shape, op.outputs[0]);
      } else {
        list_.slice_box(op.inputs[0], *edit_.ints(op.inputs[1]), shape, op.outputs[0]);
      }
      op = list_.take().front();
    }
  }

  // Zeros for the tokens that are new.
  std::int32_t longer_constant(std::int32_t constant, int axis) {
    ir::Tensor tensor = edit_.tensor(constant);
    const ir::Shape from = tensor.shape;
    tensor.shape[axis] += more_;
    tensor.shape_signature.clear();
    const std::span<const std::uint8_t> data = ir::constant_data(edit_.model(), edit_.tensor(constant)).span();
    std::vector<std::uint8_t> values;
    const auto block = static_cast<std::size_t>(from.product(axis, from.rank()));
    const auto added = static_cast<std::size_t>(more_ * from.product(axis + 1, from.rank()));
    const auto zero = static_cast<std::uint8_t>(edit_.affine(constant)->zero_point);
    for (std::size_t at = 0; at + block <= data.size(); at += block) {
      values.insert(values.end(), data.begin() + static_cast<std::ptrdiff_t>(at),
                    data.begin() + static_cast<std::ptrdiff_t>(at + block));
      values.insert(values.end(), added, zero);
    }
    return edit_.add_constant(std::move(tensor), std::move(values));
  }

  // The tokens begin with a PAD along their axis, whose result nobody needs as it was.
  bool extends_pad() const {
    const std::int32_t producer = edit_.producer(entry_);
    if (producer < 0 || edit_.op(producer).type != Op::PAD || !edit_.is_sound(producer)) return false;
    const auto amounts = edit_.ints(edit_.op(producer).inputs[1]);
    return amounts && static_cast<int>(amounts->size()) == 2 * edit_.shape(entry_).rank();
  }
  void extend_pad(ir::Operator& pad) {
    std::vector<std::int64_t> amounts = *edit_.ints(pad.inputs[1]);
    amounts[at(2 * region_.axis.at(entry_) + 1)] += more_;
    pad.inputs[1] = list_.int_matrix(amounts, 2);
  }

  void begin(std::vector<ir::Operator>& result, std::vector<std::int32_t>& origins, std::int32_t origin) {
    const int rank = edit_.shape(entry_).rank();
    std::vector<std::int64_t> amounts(static_cast<std::size_t>(2 * rank), 0);
    amounts[at(2 * region_.axis.at(entry_) + 1)] = more_;
    list_.add(Op::PAD, "PadOptions", {}, {entry_, list_.int_matrix(amounts, 2)}, {padded_[entry_]},
              edit_.tensor(entry_).type);
    take(result, origins, origin);
  }
  void cut(std::int32_t tensor, std::vector<ir::Operator>& result, std::vector<std::int32_t>& origins,
           std::int32_t origin) {
    const ir::Shape shape = edit_.shape(tensor);
    const std::vector<std::int64_t> begins(static_cast<std::size_t>(shape.rank()), 0);
    list_.slice_box(padded_[tensor], begins, shape, tensor);
    take(result, origins, origin);
  }
  void take(std::vector<ir::Operator>& result, std::vector<std::int32_t>& origins, std::int32_t origin) {
    for (ir::Operator& op : list_.take()) {
      result.push_back(std::move(op));
      origins.push_back(edit_.origin(origin));
    }
  }

  ChipGraph& edit_;
  const TokenRegion& region_;
  const std::int32_t entry_, more_;
  OpList list_;
  std::vector<ir::Operator> ops_;
  std::vector<std::int32_t> needs_cut_;
  std::map<std::int32_t, std::int32_t> padded_;  // of a tensor with tokens: the one with more
  std::vector<std::pair<std::int32_t, ir::Shape>> changed_shapes_;
};

// Several layers for each place at which the tokens that there were are needed.
bool is_worthwhile(const TokenRegion& region) { return region.layers >= 2 && region.layers >= 3 * region.ends; }

bool apply(ChipGraph& edit, const TokenRegion& region, std::int32_t entry, std::int32_t wanted) {
  const ir::Subgraph before = edit.graph();
  const std::vector<std::int32_t> old_origins = edit.origins();
  const std::int32_t misfits_before = edit.op_count() - edit.count_fitting();
  const std::string name = edit.tensor(entry).name;
  std::vector<std::int32_t> origins;
  std::vector<ir::Operator> ops = Padding(edit, region, entry, wanted).run(origins);
  edit.replace_operators(std::move(ops), origins);
  if (edit.op_count() - edit.count_fitting() > misfits_before) {
    for (std::size_t i = 0; i < before.tensors.size(); ++i) {
      edit.change_tensor(static_cast<std::int32_t>(i)) = before.tensors[i];
    }
    edit.replace_operators(before.operators, old_origins);
    return false;
  }
  edit.note_change(-1,
                   fmt::format("{} tokens from '{}' on {} computed as {}, which all tiles share", region.tokens, name,
                               edit.is_trial() ? "could be" : "are", wanted),
                   name);
  return true;
}

bool even_tokens_whole(ChipGraph& edit) {
  std::vector<std::int32_t> candidates = edit.graph().inputs;
  for (const ir::Operator& op : edit.graph().operators) {
    candidates.insert(candidates.end(), op.outputs.begin(), op.outputs.end());
  }
  std::map<std::int32_t, int> seen;
  for (const std::int32_t tensor : candidates) {
    if (tensor < 0 || seen.contains(tensor)) continue;
    const ir::Shape shape = edit.shape(tensor);
    if (shape.rank() != 3 || shape[0] != 1 || shape[1] < kFewestTokens || shape[1] > kMostTokens) continue;
    if (!edit.affine(tensor) || edit.is_constant(tensor) || !edit.is_static(tensor)) continue;
    const std::int32_t wanted = even_number(shape[1]);
    if (wanted == shape[1]) continue;
    const TokenRegion region = follow_tokens(edit, tensor, 1);
    seen.insert(region.axis.begin(), region.axis.end());
    if (is_worthwhile(region) && apply(edit, region, tensor, wanted)) return true;
  }
  return false;
}

}  // namespace

constinit const Pass even_tokens_chip_pass = {
    .name = "even-tokens",
    .summary =
        "Tokens whose number cannot be cut over the tiles (197, a prime) get a few more, which nobody "
        "reads.",
    .whole_on_chip = even_tokens_whole};

}  // namespace reef::passes
