// SPDX-License-Identifier: Apache-2.0
// The proof walks from the tensor to its producers. Operators fall into four kinds: those whose result is never
// negative, those that pass on their first operand's values, those that need all operands, and those of which one
// operand is enough. The walk is bounded, so that a graph made for it cannot keep it busy.
#include "passes/float/never_negative.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "passes/float/patterns.h"

namespace reef::passes {
namespace {

constexpr int kMostVisits = 256;

template <std::size_t N>
bool is_one_of(const std::string_view (&list)[N], std::string_view type) {
  return std::find(std::begin(list), std::end(list), type) != std::end(list);
}

constexpr std::string_view kNeverNegative[] = {"RELU", "RELU6", "RELU_0_TO_1", "LOGISTIC", "SOFTMAX",           "EXP",
                                               "ABS",  "SQRT",  "RSQRT",       "SQUARE",   "SQUARED_DIFFERENCE"};
// Elements of the result are elements of operand 0, or averages of them, or 0.
constexpr std::string_view kPassOn[] = {"RESHAPE",
                                        "TRANSPOSE",
                                        "SQUEEZE",
                                        "EXPAND_DIMS",
                                        "SLICE",
                                        "STRIDED_SLICE",
                                        "GATHER",
                                        "GATHER_ND",
                                        "UNPACK",
                                        "SPLIT_V",
                                        "MAX_POOL_2D",
                                        "AVERAGE_POOL_2D",
                                        "MEAN",
                                        "SUM",
                                        "REDUCE_MAX",
                                        "REDUCE_MIN",
                                        "REDUCE_PROD",
                                        "PAD",
                                        "MIRROR_PAD",
                                        "RESIZE_NEAREST_NEIGHBOR",
                                        "RESIZE_BILINEAR",
                                        "BROADCAST_TO",
                                        "TILE",
                                        "REVERSE_V2",
                                        "SPACE_TO_DEPTH",
                                        "DEPTH_TO_SPACE",
                                        "SPACE_TO_BATCH_ND",
                                        "BATCH_TO_SPACE_ND",
                                        "LEAKY_RELU",
                                        "ELU",
                                        "HARD_SWISH",
                                        "GELU",
                                        "TANH",
                                        "L2_NORMALIZATION",
                                        "RELU_N1_TO_1",
                                        "CEIL",
                                        "FLOOR",
                                        "ROUND"};
constexpr std::string_view kNeedAll[] = {"ADD", "MUL", "DIV", "MINIMUM", "CONCATENATION", "PACK", "ADD_N"};

class Proof {
 public:
  explicit Proof(const Graph& graph) : graph_(graph) {}

  bool of(TensorId tensor) {
    if (tensor == kNone || --visits_left_ < 0) return false;
    if (graph_.is_constant(tensor)) {
      const auto values = graph_.floats(tensor);
      return values && std::all_of(values->begin(), values->end(), [](float v) { return v >= 0; });
    }
    const OpId id = graph_.producer(tensor);
    if (id == kNone || !graph_.is_sound(id) || !is_float(graph_, tensor)) return false;
    return of_result(graph_.op(id));
  }

 private:
  bool of_result(const ir::Operator& op) {
    const std::string_view activation = op.attributes.get_enum("fused_activation_function", "NONE");
    if (activation == "RELU" || activation == "RELU6" || activation == "RELU_0_TO_1") return true;
    if (is_one_of(kNeverNegative, op.type)) return true;
    const auto operand = [&](std::size_t i) { return i < op.inputs.size() ? op.inputs[i] : kNone; };
    if (is_one_of(kPassOn, op.type)) return of(operand(0));
    if (op.type == "MUL" && operand(0) == operand(1)) return true;
    if (is_one_of(kNeedAll, op.type)) {
      return std::all_of(op.inputs.begin(), op.inputs.end(), [&](TensorId t) { return of(t); });
    }
    if (op.type == "SPLIT") return of(operand(1));
    if (op.type == "PADV2") return of(operand(0)) && of(operand(2));
    if (op.type == "SELECT" || op.type == "SELECT_V2") return of(operand(1)) && of(operand(2));
    if (op.type == "MAXIMUM") return of(operand(0)) || of(operand(1));
    if (op.type == "POW") {
      const auto exponent = graph_.uniform(operand(1));
      return (exponent && std::fmod(*exponent, 2.0f) == 0) || of(operand(0));
    }
    return false;
  }

  const Graph& graph_;
  int visits_left_ = kMostVisits;
};

}  // namespace

bool is_never_negative(const Graph& graph, TensorId tensor) { return Proof(graph).of(tensor); }

}  // namespace reef::passes
