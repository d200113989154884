// SPDX-License-Identifier: Apache-2.0
// Chains of RESHAPE and TRANSPOSE of five or six dimensions (the pixel shuffle as PyTorch's exporters write it, channel
// shuffles, space to depth) and DEPTH_TO_SPACE, in operators of at most four dimensions of which the first is 1.
//
// The chain's effect is found as strides (view.h). Three factors or fewer are one RESHAPE, TRANSPOSE and RESHAPE. With
// more, the source is cut along a short factor; each piece is a simpler chain, and the pieces are joined along the
// place where the factor ends up: for a pixel shuffle of block b these are b slices that need no transposition. Where
// the channels lie in PyTorch's order (outer: channel, inner: place in the block), they are first put in the chip's, in
// the weights of the convolution that computes them or by a 1x1 convolution with weights 0 and 1.
#include <algorithm>

#include "passes/chip/channel_order.h"
#include "passes/chip/view.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::int64_t kMostShuffled = 16;
constexpr std::size_t kMostFactors = 3;
constexpr std::string_view kInto = "slices, reshapes and transpositions of up to four dimensions";

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

std::vector<Factor> in_source_order(std::vector<Factor> factors) {
  std::sort(factors.begin(), factors.end(), [](const Factor& a, const Factor& b) { return a.stride > b.stride; });
  return factors;
}

// Elements `factors` (in the order wanted) of x, in their order: at most three factors. The result has shape
// `shape` and is `into`, if given.
std::int32_t small_view(OpList& list, std::int32_t x, const std::vector<Factor>& factors, const ir::Shape& shape,
                        std::int32_t into = kNew) {
  if (factors.size() <= 1) return list.reshape(x, shape, into);
  const std::vector<Factor> source = in_source_order(factors);
  ir::Shape dims = {1};
  std::vector<int> permutation = {0};
  for (const Factor& factor : source) dims.push_back(narrow(factor.size));
  for (const Factor& factor : factors) {
    permutation.push_back(1 + narrow(std::find(source.begin(), source.end(), factor) - source.begin()));
  }
  return list.reshape(list.transpose(list.reshape(x, dims), permutation), shape, into);
}

// Cuts along factor `cut` of `factors`.
bool cut_view(OpList& list, std::int32_t x, const std::vector<Factor>& factors, std::size_t cut, const ir::Shape& shape,
              std::int32_t into) {
  const Factor& along = factors[cut];
  const std::int64_t total = list.shape(x).elements();
  const std::int64_t inner = along.stride, outer = total / (inner * along.size);
  // Strides of the others once the cut dimension is gone.
  std::vector<Factor> rest;
  std::int64_t result_outer = 1, result_inner = 1;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (i == cut) continue;
    (i < cut ? result_outer : result_inner) *= factors[i].size;
    Factor factor = factors[i];
    if (factor.stride > along.stride) factor.stride /= along.size;
    // Across the cut nothing merges in the result, but the piece has nothing there.
    if (!rest.empty() && rest.back().stride == factor.stride * factor.size) {
      rest.back() = {rest.back().size * factor.size, factor.stride};
    } else {
      rest.push_back(factor);
    }
  }
  if (rest.size() > kMostFactors) return false;
  const std::int32_t source = list.reshape(x, {1, narrow(outer), narrow(along.size), narrow(inner)});
  std::vector<std::int32_t> pieces;
  for (std::int64_t i = 0; i < along.size; ++i) {
    const std::int32_t piece = list.slice(source, 2, narrow(i), 1);
    pieces.push_back(small_view(list, piece, rest, {1, narrow(result_outer), 1, narrow(result_inner)}));
  }
  list.reshape(list.concatenation(pieces, 2), shape, into);
  return true;
}

// The factor whose cut leaves the fewest factors, and then the fewest pieces.
std::optional<std::size_t> best_cut(const std::vector<Factor>& factors) {
  std::optional<std::size_t> best;
  std::pair<std::size_t, std::int64_t> least;
  for (std::size_t cut = 0; cut < factors.size(); ++cut) {
    if (factors[cut].size > kMostShuffled) continue;
    std::vector<Factor> rest;
    for (std::size_t i = 0; i < factors.size(); ++i) {
      if (i == cut) continue;
      Factor factor = factors[i];
      if (factor.stride > factors[cut].stride) factor.stride /= factors[cut].size;
      if (!rest.empty() && rest.back().stride == factor.stride * factor.size) {
        rest.back() = {rest.back().size * factor.size, factor.stride};
      } else {
        rest.push_back(factor);
      }
    }
    const std::pair<std::size_t, std::int64_t> cost = {rest.size(), factors[cut].size};
    if (best && cost >= least) continue;
    best = cut;
    least = cost;
  }
  return best;
}

bool lower(OpList& list, std::int32_t x, const std::vector<Factor>& factors, std::int32_t y) {
  const ir::Shape shape = list.shape(y);
  if (factors.size() <= kMostFactors) {
    small_view(list, x, factors, shape, y);
    return true;
  }
  const auto cut = best_cut(factors);
  return cut && cut_view(list, x, factors, *cut, shape, y);
}

// More than three dimensions that count, or an operator that the chip does not have. Others may be too large to map,
// but that is nothing that another form would mend.
bool is_out_of_form(const ChipGraph& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  const auto is_deep = [&](std::int32_t tensor) {
    const ir::Shape& shape = edit.shape(tensor);
    return shape.rank() > 4 || (shape.rank() == 4 && shape[0] != 1);
  };
  return op.type == Op::DEPTH_TO_SPACE || op.type == Op::SPACE_TO_DEPTH || is_deep(op.inputs[0]) ||
         is_deep(op.outputs[0]);
}

// The chain of views that ends at `last`, first operator first. Empty: `last` is not the end of one that needs help.
std::vector<std::int32_t> chain_ending_at(const ChipGraph& edit, std::int32_t last) {
  if (!is_view_op(edit, last)) return {};
  const std::int32_t y = edit.op(last).outputs[0];
  if (edit.has_one_user(y) && is_view_op(edit, edit.consumers(y)[0])) return {};
  std::vector<std::int32_t> chain = {last};
  bool needs_help = is_out_of_form(edit, last) && !edit.fits(last);
  while (chain.size() < 16) {
    const std::int32_t input = edit.op(chain.back()).inputs[0];
    const std::int32_t producer = edit.producer(input);
    if (producer < 0 || !edit.has_one_user(input) || !is_view_op(edit, producer)) break;
    chain.push_back(producer);
    needs_help = needs_help || (is_out_of_form(edit, producer) && !edit.fits(producer));
  }
  if (!needs_help) chain.clear();
  std::reverse(chain.begin(), chain.end());
  return chain;
}

std::optional<View> view_of(const ChipGraph& edit, const std::vector<std::int32_t>& chain) {
  View view(edit.shape(edit.op(chain[0]).inputs[0]));
  for (const std::int32_t op : chain) {
    if (!view.apply(edit, op)) return {};
  }
  return view;
}

bool pixel_shuffle_at(ChipGraph& edit, std::int32_t index) {
  const std::vector<std::int32_t> chain = chain_ending_at(edit, index);
  if (chain.empty()) return false;
  const std::int32_t x = edit.op(chain[0]).inputs[0], y = edit.op(index).outputs[0];
  const auto view = view_of(edit, chain);
  if (!view || !ir::is_integer_8(edit.tensor(x).type)) return false;
  const std::vector<Factor> factors = view->factors();
  if (factors.size() == 1 && chain.size() == 1 && edit.op(index).type == Op::RESHAPE) return false;  // its own result
  if (chain.size() == 1 && edit.op(index).type == Op::TRANSPOSE && edit.shape(x).rank() <= 4 &&
      factors.size() <= kMostFactors) {
    return false;  // too large or too new: no other form of it is smaller
  }
  const std::int32_t channels = edit.shape(x).rank() == 4 ? edit.shape(x)[3] : 0;
  const auto order = channel_order(factors, channels);
  const auto lower_as_is = [&] {
    OpList list(edit, edit.tensor(y).name);
    return lower(list, x, factors, y) && edit.commit(index, list.take(), kInto);
  };
  const auto lower_reordered = [&] {
    OpList list(edit, edit.tensor(y).name);
    const std::int32_t source = reordered(edit, list, x, order->channels);
    return source >= 0 && lower(list, source, order->factors, y) && edit.commit(index, list.take(), kInto);
  };
  // In the weights of a convolution the other order costs nothing, and saves transpositions.
  if (order && is_ordered_for_free(edit, x)) return lower_reordered() || lower_as_is();
  return lower_as_is() || (order && lower_reordered());
}

}  // namespace

constinit const Pass pixel_shuffle_chip_pass = {
    .name = "pixel-shuffle",
    .summary =
        "DEPTH_TO_SPACE and chains of RESHAPE and TRANSPOSE of five or six dimensions become slices, "
        "reshapes and transpositions of up to four.",
    .at_on_chip = pixel_shuffle_at};

}  // namespace reef::passes
