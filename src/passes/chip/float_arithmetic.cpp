// SPDX-License-Identifier: Apache-2.0
// Sums and products that a converter left in floating point between DEQUANTIZE and QUANTIZE, for want of an 8-bit
// kernel (ADD_N, with which EfficientDet joins its feature maps): the same on 8 bits.
//
// The real result is rounded once in both. A sum of three or more goes through sums of two, each of which is rounded to
// a scale that holds its values: half a step of that scale more. As long as that is less than a step of the result's,
// results differ by one at most.
#include <algorithm>
#include <cmath>

#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr Op kTypes[] = {Op::ADD, Op::ADD_N, Op::MUL, Op::SUB};
constexpr std::size_t kMostTerms = 8;

// The 8-bit tensor that a float one was made from; -1: none.
std::int32_t source_of(const ChipGraph& edit, std::int32_t tensor, const ir::Shape& shape) {
  if (tensor < 0 || edit.tensor(tensor).type != ir::DataType::kFloat32) return -1;
  const std::int32_t producer = edit.producer(tensor);
  if (producer < 0 || edit.op(producer).type != Op::DEQUANTIZE || !edit.is_sound(producer)) return -1;
  const std::int32_t source = edit.op(producer).inputs[0];
  return edit.affine(source) && edit.shape(source) == shape ? source : -1;
}

struct Interval {
  double low = 0, high = 0;
};

Interval values_of(const Affine8& affine) {
  const double low = static_cast<double>(affine.scale) * (affine.lowest() - affine.zero_point);
  return {low, low + 255.0 * static_cast<double>(affine.scale)};
}

// Holds every sum of numbers stored as `a` and `b` that matters: what lies so far out that the result saturates
// whatever is still to be added (`rest`) may saturate at once.
Affine8 sum_affine(const Affine8& a, const Affine8& b, const Affine8& out, const Interval& rest) {
  const Interval first = values_of(a), second = values_of(b), result = values_of(out);
  const double low = std::min(0.0, std::max(first.low + second.low, result.low - rest.high));
  const double high = std::max(0.0, std::min(first.high + second.high, result.high - rest.low));
  if (high <= low) return out;
  Affine8 sum{a.type, static_cast<float>((high - low) / 255), 0};
  sum.zero_point = std::clamp(sum.lowest() - static_cast<std::int32_t>(std::lround(low * 255 / (high - low))),
                              sum.lowest(), sum.highest());
  return sum;
}

bool float_arithmetic_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator& quantize = edit.op(index);
  if (quantize.type != Op::QUANTIZE || !edit.is_sound(index)) return false;
  const std::int32_t y = quantize.outputs[0], real = quantize.inputs[0], producer = edit.producer(real);
  const auto out = edit.affine(y);
  if (!out || producer < 0 || edit.shape(real) != edit.shape(y) || !edit.is_sound(producer)) return false;
  const ir::Operator op = edit.op(producer);
  if (!is_one_of(op.type, kTypes) || op.inputs.size() < 2) return false;
  if (op.inputs.size() > kMostTerms || op.attributes.get_enum("fused_activation_function", "NONE") != "NONE")
    return false;
  std::vector<std::int32_t> terms;
  for (const std::int32_t input : op.inputs) {
    terms.push_back(source_of(edit, input, edit.shape(y)));
    if (terms.back() < 0 || edit.affine(terms.back())->type != out->type) return false;
  }
  const OpName type = op.type == Op::ADD_N ? Op::ADD : OpName(op.type);
  // The finest first: what is rounded twice is then rounded finely.
  const auto is_finer = [&](std::int32_t a, std::int32_t b) { return edit.affine(a)->scale < edit.affine(b)->scale; };
  if (type == Op::ADD) std::stable_sort(terms.begin(), terms.end(), is_finer);
  Interval rest;
  for (const std::int32_t term : terms) {
    rest.low += values_of(*edit.affine(term)).low;
    rest.high += values_of(*edit.affine(term)).high;
  }
  const auto take = [&](std::int32_t term) {
    rest.low -= values_of(*edit.affine(term)).low;
    rest.high -= values_of(*edit.affine(term)).high;
  };
  take(terms[0]);
  OpList list(edit, edit.tensor(y).name);
  double more = 0;  // rounding of sums in between, in steps of the output
  std::int32_t sum = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    const bool is_last = i + 1 == terms.size();
    take(terms[i]);
    const Affine8 affine = is_last ? *out : sum_affine(*edit.affine(sum), *edit.affine(terms[i]), *out, rest);
    if (!is_last) more += 0.5 * static_cast<double>(affine.scale) / static_cast<double>(out->scale);
    sum = list.binary(type, sum, terms[i], affine, is_last ? y : kNew);
  }
  const int difference = more < 255 ? static_cast<int>(std::floor(1 + more)) : 256;
  const std::string into = terms.size() == 2 ? fmt::format("{} of 8-bit numbers", type)
                                             : fmt::format("{} {} of 8-bit numbers", terms.size() - 1, type);
  return edit.accepts(index, into, difference) && edit.commit(index, list.take(), into, difference);
}

}  // namespace

constinit const Pass float_arithmetic_chip_pass = {
    .name = "float-arithmetic",
    .summary = "ADD, ADD_N, SUB and MUL between DEQUANTIZE and QUANTIZE become their 8-bit forms.",
    .safety = Safety::kRounding,
    .at_on_chip = float_arithmetic_at};

}  // namespace reef::passes
