// SPDX-License-Identifier: Apache-2.0
// Sums and products that a converter left in floating point between DEQUANTIZE and QUANTIZE, for want of an 8-bit
// kernel (ADD_N, with which EfficientDet joins its feature maps): the same on 8 bits.
//
// The real result is rounded once in both. A sum of three or more goes through sums of two, each of which is rounded to
// a scale that holds all of its values: half a step of that scale more.
#include <algorithm>
#include <array>
#include <cmath>

#include "rewrite/op_list.h"
#include "rewrite/rewrite_def.h"

namespace reef::rewrite {
namespace {

constexpr std::array<std::string_view, 4> kTypes = {"ADD", "ADD_N", "MUL", "SUB"};
constexpr std::size_t kMostTerms = 8;

// The 8-bit tensor that a float one was made from; -1: none.
std::int32_t source_of(const GraphEdit& edit, std::int32_t tensor, const ir::Shape& shape) {
  if (tensor < 0 || edit.tensor(tensor).type != ir::DataType::kFloat32) return -1;
  const std::int32_t producer = edit.producer(tensor);
  if (producer < 0 || edit.op(producer).type != "DEQUANTIZE" || !edit.is_sound(producer)) return -1;
  const std::int32_t source = edit.op(producer).inputs[0];
  return edit.affine(source) && edit.shape(source) == shape ? source : -1;
}

// Holds every sum of numbers stored like these.
Affine8 sum_affine(const Affine8& a, const Affine8& b) {
  const auto lowest = [](const Affine8& x) { return static_cast<double>(x.scale) * (x.lowest() - x.zero_point); };
  const double low = std::min(0.0, lowest(a) + lowest(b));
  const double high = std::max(0.0, lowest(a) + lowest(b) + 255.0 * (static_cast<double>(a.scale) + b.scale));
  Affine8 result{a.type, static_cast<float>((high - low) / 255), 0};
  result.zero_point = std::clamp(result.lowest() - static_cast<std::int32_t>(std::lround(low * 255 / (high - low))),
                                 result.lowest(), result.highest());
  return result;
}

bool at(GraphEdit& edit, std::int32_t index) {
  const ir::Operator& quantize = edit.op(index);
  if (quantize.type != "QUANTIZE" || !edit.is_sound(index)) return false;
  const std::int32_t y = quantize.outputs[0], real = quantize.inputs[0], producer = edit.producer(real);
  const auto out = edit.affine(y);
  if (!out || producer < 0 || edit.shape(real) != edit.shape(y) || !edit.is_sound(producer)) return false;
  const ir::Operator op = edit.op(producer);
  if (std::find(kTypes.begin(), kTypes.end(), op.type) == kTypes.end() || op.inputs.size() < 2) return false;
  if (op.inputs.size() > kMostTerms || op.attributes.get_enum("fused_activation_function", "NONE") != "NONE")
    return false;
  std::vector<std::int32_t> terms;
  for (const std::int32_t input : op.inputs) {
    terms.push_back(source_of(edit, input, edit.shape(y)));
    if (terms.back() < 0 || edit.affine(terms.back())->type != out->type) return false;
  }
  const std::string_view type = op.type == "ADD_N" ? std::string_view("ADD") : std::string_view(op.type);
  OpList list(edit, edit.tensor(y).name);
  double more = 0;  // rounding of sums in between, in steps of the output
  std::int32_t sum = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    const bool is_last = i + 1 == terms.size();
    const Affine8 affine = is_last ? *out : sum_affine(*edit.affine(sum), *edit.affine(terms[i]));
    if (!is_last) more += 0.5 * static_cast<double>(affine.scale) / static_cast<double>(out->scale);
    sum = list.binary(type, sum, terms[i], affine, is_last ? y : kNew);
  }
  const int difference = more < 255 ? static_cast<int>(std::floor(1 + more)) : 256;
  const std::string into = terms.size() == 2 ? fmt::format("{} of 8-bit numbers", type)
                                             : fmt::format("{} {} of 8-bit numbers", terms.size() - 1, type);
  return edit.accepts(index, into, difference) && edit.commit(index, list.take(), into, difference);
}

}  // namespace

extern const Rewrite float_arithmetic_rewrite;
constinit const Rewrite float_arithmetic_rewrite = {
    .info = {.name = "float-arithmetic",
             .summary = "ADD, ADD_N, SUB and MUL between DEQUANTIZE and QUANTIZE become their 8-bit forms.",
             .safety = Safety::kRounding,
             .on_by_default = true},
    .at = at};

}  // namespace reef::rewrite
