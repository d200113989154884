// SPDX-License-Identifier: Apache-2.0
// The rules for what the tensor ops of each kind of operator look like and contain.
#pragma once

#include <bit>
#include <string>
#include <vector>

#include "retarget/matching.h"

namespace reef::retarget {

// Real bounds of the arguments of the two tables that stand for a whole function.
inline constexpr float kLogisticBound = 10.3967323f, kTanhBound = 6.87480688f;

// The choices so far, as far as rules may look at them.
struct SearchState {
  std::map<std::uint32_t, Labels> labels;                    // of values, by instruction
  std::map<std::uint32_t, std::vector<Labels>> cell_labels;  // the same by cell, where cells differ
  std::vector<LayerChunk> chunks;
  std::map<std::uint32_t, std::uint32_t> fills;
  std::multiset<std::int32_t> used_ops;
  std::multiset<std::pair<std::int32_t, std::string>> used_parts;
  std::map<std::int32_t, std::uint32_t> zero_points;             // the template's, by model tensor
  std::vector<std::pair<std::int32_t, std::string>> used_words;  // Choice::words_part, in order
  // Layers packed before, by operator and form: backtracking asks for the same ones again.
  std::shared_ptr<std::map<std::string, std::shared_ptr<const darwinn::LayerParameters>>> packed_layers =
      std::make_shared<std::map<std::string, std::shared_ptr<const darwinn::LayerParameters>>>();
};

// Describes the parts of an operand, as far as they are known.
Operand operand_of(const Template& compiled, const SearchState& state, const Sources& sources);

// The same for one byte.
Operand operand_of(const Template& compiled, const SearchState& state, Tag tag);

// 32-bit words that the ops of a layer must read for it to be complete.
std::uint64_t words_needed(const darwinn::LayerParameters& layer);

// One tensor op, the candidates for it, and why others are none.
class RoleContext {
 public:
  RoleContext(const Template& compiled, const Network& network, const SearchState& state, const OpView& op)
      : compiled(compiled), network(network), state(state), op(op) {
    input = operand_of(compiled, state, op.trace->input);
    parameters = operand_of(compiled, state, op.trace->parameters);
  }

  const Template& compiled;
  const Network& network;
  const SearchState& state;
  const OpView& op;
  Operand input, parameters;
  std::vector<Choice> offers;
  std::vector<std::string> reasons;  // sentences

  void offer(Choice choice) { offers.push_back(std::move(choice)); }
  template <typename... Args>
  void reject(std::int32_t model_op, fmt::format_string<Args...> format, Args&&... args) {
    reasons.push_back(network.describe(model_op) + ": " + fmt::format(format, std::forward<Args>(args)...));
  }
  // The blob that a source reads from; the smallest offset in it.
  static Origin blob_of(const Sources& sources) { return sources.cached.empty() ? Origin::kStreamed : Origin::kCached; }
  static const OffsetSet& offsets_of(const Sources& sources) {
    return sources.cached.empty() ? sources.streamed : sources.cached;
  }
};

// Everything a requantizing op holds: clamp, zero points, factor.
struct Requantization {
  std::int32_t param_zero = 0, in_zero = 0, out_zero = 0;
  float scale = 1;
  numeric::ChipClamp clamp;
  std::int32_t addend = 0;
};
void set_all(Choice& choice, const Requantization& constants);
inline std::uint32_t float_bits(float value) { return std::bit_cast<std::uint32_t>(value); }
// Four bytes of a tensor's zero point, for every fill: what padding holds.
void fill_with_zero_point(Choice& choice, const std::vector<std::uint32_t>& fills, const ChipTensor& tensor);

// The constants an op of an element-wise operator has: input and output tensor, no parameters of their own.
Requantization elementwise(const ChipTensor& input, const ChipTensor& output, numeric::ChipActivation activation);

void offer_constants(RoleContext& context);
void offer_layers(RoleContext& context);
void offer_selections(RoleContext& context);
void offer_additions(RoleContext& context);
void offer_elementwise(RoleContext& context);
void offer_products(RoleContext& context);
void offer_pools(RoleContext& context);
void offer_resamplings(RoleContext& context);
void offer_softmax(RoleContext& context);
void offer_lstm(RoleContext& context);
void offer_lstm_gates(RoleContext& context);
void offer_maximum(RoleContext& context);
void offer_prelu(RoleContext& context);

// Rejects an offer's table unless it is that function: logistic x 256, tanh x 128, exp x 65535, 46340 / sqrt(x).
enum class Table { kLogistic, kTanh, kExp, kInverseRoot };
// Tables of the recurrent network hold other factors.
bool tables_are(const RoleContext& context, Table table, double factor);

}  // namespace reef::retarget
