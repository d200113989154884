// SPDX-License-Identifier: Apache-2.0
#include "retarget/matching.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "ir/describe.h"
#include "isa/mesh.h"
#include "retarget/completeness.h"
#include "retarget/roles.h"

namespace reef::retarget {

namespace {

// Tensor ops tried, with repetition. A network without ambiguity takes as many as it has; beyond this the deepest
// contradiction found is reported.
constexpr int kMaxTries = 20000;

}  // namespace

bool Operand::is_stage(std::int32_t op, int stage) const {
  return tensors.empty() && !stages.empty() &&
         std::all_of(stages.begin(), stages.end(), [&](const Label& s) { return s == Label::of_stage(op, stage); });
}

std::span<const std::uint8_t> Template::blob(Origin origin) const {
  if (origin == Origin::kStreamed) return execution.executable->parameters.span();
  return caching ? caching->executable->parameters.span() : std::span<const std::uint8_t>();
}

std::uint32_t Template::fill_value(std::uint32_t instruction) const {
  return execution.program[instruction].bits(isa::mesh::kFillValue);
}

namespace {

Operand split(const Labels& labels) {
  Operand operand;
  for (const Label& label : labels) {
    if (label.kind == Label::Kind::kTensor) operand.tensors.push_back(label.number);
    if (label.kind == Label::Kind::kStage) operand.stages.push_back(label);
    if (label.kind == Label::Kind::kFill) operand.fills.push_back(static_cast<std::uint32_t>(label.number));
  }
  return operand;
}

}  // namespace

Operand operand_of(const Template& compiled, const SearchState& state, const Sources& sources) {
  Labels labels;
  for (const std::uint32_t layer : sources.inputs) {
    if (layer < compiled.input_tensors.size()) labels.insert(Label::tensor(compiled.input_tensors[layer]));
  }
  for (const std::uint32_t value : sources.values) {
    const auto known = state.labels.find(value);
    if (known != state.labels.end()) labels.insert(known->second.begin(), known->second.end());
  }
  for (const std::uint32_t fill : sources.fills) labels.insert(Label::fill(fill));
  return split(labels);
}

Operand operand_of(const Template& compiled, const SearchState& state, Tag tag) {
  if (tag_origin(tag) == Origin::kValue) {
    const auto known = state.cell_labels.find(value_instruction(tag));
    if (known != state.cell_labels.end()) {
      const auto cell = static_cast<std::size_t>(value_cell(tag));
      return cell < known->second.size() ? split(known->second[cell]) : Operand();
    }
  }
  Sources sources;
  sources.add(tag);
  return operand_of(compiled, state, sources);
}

void set_all(Choice& choice, const Requantization& constants) {
  choice.set(Constant::kParamZero, static_cast<std::uint32_t>(constants.param_zero));
  choice.set(Constant::kInZero, static_cast<std::uint32_t>(constants.in_zero));
  choice.set(Constant::kOutZero, static_cast<std::uint32_t>(constants.out_zero));
  choice.set(Constant::kScale, float_bits(constants.scale));
  choice.set(Constant::kMax, float_bits(constants.clamp.max));
  choice.set(Constant::kMin, float_bits(constants.clamp.min));
  choice.set(Constant::kAddend, static_cast<std::uint32_t>(constants.addend));
}

void fill_with_zero_point(Choice& choice, const std::vector<std::uint32_t>& fills, const ChipTensor& tensor) {
  const std::uint32_t word = static_cast<std::uint32_t>(tensor.zero_point & 0xff) * 0x01010101u;
  for (const std::uint32_t fill : fills) choice.fills.push_back({fill, word});
}

namespace {

class Search {
 public:
  Search(const Template& compiled, const Network& network, const MatchOptions& options)
      : compiled_(compiled), network_(network), options_(options) {}

  Result<Matching> run();

 private:
  struct Frame {
    std::vector<Choice> choices;
    std::size_t next = 0;
    // To take the current choice back.
    std::vector<std::uint32_t> added_fills;
    std::optional<std::int32_t> added_zero;
    bool is_applied = false;
  };

  std::vector<Choice> candidates(std::size_t index, std::vector<std::string>& reasons);
  void add_missing_requantizations(const RoleContext& context, std::vector<std::string>& reasons) const;
  void add_readers(const RoleContext& context, std::vector<std::string>& reasons) const;
  bool agrees(std::size_t index, const Choice& choice, std::string& reason) const;
  bool zero_points_agree(std::size_t index, const Choice& choice, std::string& reason) const;
  bool equals_template(std::size_t index, const Choice& choice, std::string& reason) const;
  void apply(std::size_t index, Frame& frame);
  void take_back(std::size_t index, Frame& frame);
  Status failure() const;

  const Template& compiled_;
  const Network& network_;
  const MatchOptions& options_;
  SearchState state_;
  std::vector<Frame> frames_;
  std::size_t deepest_ = 0;
  bool has_failure_ = false;
  std::vector<std::string> reasons_;  // at the deepest point
  Operand deepest_input_;
};

std::vector<Choice> Search::candidates(std::size_t index, std::vector<std::string>& reasons) {
  const OpView& op = compiled_.ops[index];
  RoleContext context(compiled_, network_, state_, op);
  if (op.is_copy() && op.trace->input.from_blob()) {
    offer_constants(context);
  } else if (op.is_copy()) {
    Choice copy;
    copy.role = "copy";
    copy.writes_zero = false;
    for (const std::int32_t t : context.input.tensors) copy.label.insert(Label::tensor(t));
    for (const Label& stage : context.input.stages) copy.label.insert(stage);
    for (const std::uint32_t fill : context.input.fills) copy.label.insert(Label::fill(fill));
    context.offer(std::move(copy));
  } else {
    offer_layers(context);
    offer_lstm_gates(context);
    offer_selections(context);
    offer_additions(context);
    offer_elementwise(context);
    offer_products(context);
    offer_pools(context);
    offer_resamplings(context);
    offer_softmax(context);
    offer_maximum(context);
    offer_prelu(context);
    offer_lstm(context);
  }
  std::vector<Choice> agreeing;
  for (Choice& choice : context.offers) {
    std::string reason;
    if (agrees(index, choice, reason)) {
      agreeing.push_back(std::move(choice));
    } else {
      const std::string what = choice.op < 0 ? choice.role : network_.describe(choice.op) + ", " + choice.role;
      reasons.push_back(what + ": " + reason);
    }
  }
  reasons.insert(reasons.end(), context.reasons.begin(), context.reasons.end());
  if (agreeing.empty()) add_missing_requantizations(context, reasons);
  if (agreeing.empty() && reasons.empty()) add_readers(context, reasons);
  return agreeing;
}

// Operators that move bytes are free while they do not change the quantization.
void Search::add_missing_requantizations(const RoleContext& context, std::vector<std::string>& reasons) const {
  std::vector<std::int32_t> read = context.input.tensors;
  read.insert(read.end(), context.parameters.tensors.begin(), context.parameters.tensors.end());
  for (const std::int32_t k : network_.chip_ops()) {
    if (!Network::only_moves(network_.op(k)) || network_.is_free(k)) continue;
    for (const std::int32_t input : network_.op(k).inputs) {
      const bool is_read = std::any_of(
          read.begin(), read.end(), [&](std::int32_t t) { return input >= 0 && network_.is_also(t).count(input) > 0; });
      if (!is_read) continue;
      reasons.push_back(network_.describe(k) +
                        ": it changes the quantization, but the template has no instruction for it");
      break;
    }
  }
}

// Operators that read what the op reads, of which none has a rule that fits.
void Search::add_readers(const RoleContext& context, std::vector<std::string>& reasons) const {
  std::vector<std::int32_t> read = context.input.tensors;
  read.insert(read.end(), context.parameters.tensors.begin(), context.parameters.tensors.end());
  for (const std::int32_t k : network_.chip_ops()) {
    const ir::Operator& op = network_.op(k);
    const bool reads = std::any_of(op.inputs.begin(), op.inputs.end(), [&](std::int32_t input) {
      return std::any_of(read.begin(), read.end(),
                         [&](std::int32_t t) { return input >= 0 && network_.is_also(t).count(input) > 0; });
    });
    if (reads && !network_.is_free(k)) {
      reasons.push_back(network_.describe(k) + ": the template's instruction is none of those known for it");
    }
  }
}

// The template's own zero points: what is written with one must be read with the same.
bool Search::zero_points_agree(std::size_t index, const Choice& choice, std::string& reason) const {
  const OpView& op = compiled_.ops[index];
  RoleContext context(compiled_, network_, state_, op);
  const std::pair<std::optional<Constant>, const Operand*> kUses[] = {{choice.input_zero, &context.input},
                                                                      {choice.parameter_zero, &context.parameters}};
  for (const auto& [constant, operand] : kUses) {
    if (!constant) continue;
    for (const std::int32_t t : operand->tensors) {
      const auto known = state_.zero_points.find(t);
      if (known == state_.zero_points.end() || known->second == op.bits(*constant)) continue;
      reason = fmt::format("the template writes '{}' with zero point {} and reads it here with {}",
                           ir::describe_name(network_.tensor(t).name), known->second, op.bits(*constant));
      return false;
    }
  }
  if (!choice.writes_zero) return true;
  for (const Label& label : choice.label) {
    if (label.kind != Label::Kind::kTensor) continue;
    const auto known = state_.zero_points.find(label.number);
    if (known == state_.zero_points.end() || known->second == op.bits(Constant::kOutZero)) continue;
    reason =
        fmt::format("the template writes '{}' with zero points {} and {}",
                    ir::describe_name(network_.tensor(label.number).name), known->second, op.bits(Constant::kOutZero));
    return false;
  }
  return true;
}

bool Search::equals_template(std::size_t index, const Choice& choice, std::string& reason) const {
  const OpView& op = compiled_.ops[index];
  for (int k = 0; k < kConstants; ++k) {
    const auto& value = choice.constants[reef::at(k)];
    if (!value || *value == op.constants[reef::at(k)]) continue;
    reason = fmt::format("its {} would be {:#x}, the template has {:#x}", constant_field(static_cast<Constant>(k)).name,
                         *value, op.constants[reef::at(k)]);
    return false;
  }
  for (const FillValue& fill : choice.fills) {
    if (compiled_.fill_value(fill.instruction) == fill.value) continue;
    reason = fmt::format("the constant of instruction {} would be {:#x}, the template has {:#x}", fill.instruction,
                         fill.value, compiled_.fill_value(fill.instruction));
    return false;
  }
  return true;
}

bool Search::agrees(std::size_t index, const Choice& choice, std::string& reason) const {
  if (!options_.ops.empty() && options_.ops[index] != choice.op) {
    reason = "another operator with the template's source";
    return false;
  }
  std::map<std::uint32_t, std::uint32_t> own;
  for (const FillValue& fill : choice.fills) {
    const auto known = state_.fills.find(fill.instruction);
    const auto [at, is_new] = own.emplace(fill.instruction, fill.value);
    const std::uint32_t other = known != state_.fills.end() ? known->second : at->second;
    if (other == fill.value) continue;
    reason = fmt::format("instruction {} stores one constant where {:#x} and {:#x} are needed", fill.instruction, other,
                         fill.value);
    return false;
  }
  if (!choice.part.empty() && state_.used_parts.count({choice.op, choice.part}) > 0) {
    reason = "has been found already";
    return false;
  }
  if (!zero_points_agree(index, choice, reason)) return false;
  return !options_.must_be_equal || equals_template(index, choice, reason);
}

void Search::apply(std::size_t index, Frame& frame) {
  Choice& choice = frame.choices[frame.next];
  const OpView& op = compiled_.ops[index];
  state_.labels[op.instruction] = choice.label;
  if (!choice.cell_labels.empty()) state_.cell_labels[op.instruction] = choice.cell_labels;
  if (choice.new_chunk) {
    choice.chunk = static_cast<std::int32_t>(state_.chunks.size());
    state_.chunks.push_back(*choice.new_chunk);
  }
  if (choice.op >= 0) state_.used_ops.insert(choice.op);
  if (!choice.part.empty()) state_.used_parts.insert({choice.op, choice.part});
  if (!choice.words_part.empty()) state_.used_words.emplace_back(choice.op, choice.words_part);
  frame.added_fills.clear();
  for (const FillValue& fill : choice.fills) {
    if (state_.fills.emplace(fill.instruction, fill.value).second) frame.added_fills.push_back(fill.instruction);
  }
  frame.added_zero.reset();
  if (choice.writes_zero && choice.label.size() == 1 && choice.label.begin()->kind == Label::Kind::kTensor) {
    const std::int32_t t = choice.label.begin()->number;
    if (state_.zero_points.emplace(t, op.bits(Constant::kOutZero)).second) frame.added_zero = t;
  }
  frame.is_applied = true;
}

void Search::take_back(std::size_t index, Frame& frame) {
  const Choice& choice = frame.choices[frame.next];
  state_.labels.erase(compiled_.ops[index].instruction);
  state_.cell_labels.erase(compiled_.ops[index].instruction);
  if (choice.new_chunk) state_.chunks.pop_back();
  if (choice.op >= 0) state_.used_ops.erase(state_.used_ops.find(choice.op));
  if (!choice.part.empty()) state_.used_parts.erase(state_.used_parts.find({choice.op, choice.part}));
  if (!choice.words_part.empty()) state_.used_words.pop_back();
  for (const std::uint32_t fill : frame.added_fills) state_.fills.erase(fill);
  if (frame.added_zero) state_.zero_points.erase(*frame.added_zero);
  frame.is_applied = false;
  ++frame.next;
}

Status Search::failure() const {
  std::vector<std::string> shown(
      reasons_.begin(), reasons_.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(reasons_.size(), 6)));
  if (reasons_.size() > shown.size()) shown.push_back(fmt::format("and {} more", reasons_.size() - shown.size()));
  if (deepest_ >= compiled_.ops.size()) {
    return invalid_input("the model does not fit the template: {}", fmt::join(shown, "; "));
  }
  std::vector<std::string> read;
  for (const std::int32_t t : deepest_input_.tensors) {
    read.push_back(fmt::format("'{}'", ir::describe_name(network_.tensor(t).name)));
  }
  return invalid_input("the model does not fit the template at its {}, which reads {}: {}",
                       describe(compiled_.ops[deepest_]),
                       read.empty() ? "nothing known" : fmt::format("{}", fmt::join(read, ", ")),
                       shown.empty() ? std::string("no operator of the model looks like it")
                                     : fmt::format("{}", fmt::join(shown, "; ")));
}

Result<Matching> Search::run() {
  const std::size_t count = compiled_.ops.size();
  for (std::size_t layer = 0; layer < compiled_.input_tensors.size(); ++layer) {
    const auto& numerics = compiled_.execution.executable->input_layers[layer].numerics;
    if (numerics && compiled_.input_tensors[layer] >= 0) {
      state_.zero_points[compiled_.input_tensors[layer]] = static_cast<std::uint32_t>(numerics->zero_point);
    }
  }
  int tries = 0;
  while (true) {
    const std::size_t index = frames_.size();
    std::vector<std::string> reasons;
    bool is_dead_end = false;
    if (index == count) {
      std::vector<const Choice*> choices;
      for (const Frame& frame : frames_) choices.push_back(&frame.choices[frame.next]);
      reasons = what_is_missing(compiled_, network_, state_, choices);
      if (reasons.empty()) break;
      is_dead_end = true;
    } else {
      Frame frame;
      frame.choices = candidates(index, reasons);
      is_dead_end = frame.choices.empty();
      if (!is_dead_end) {
        frames_.push_back(std::move(frame));
        apply(index, frames_.back());
      }
    }
    if (is_dead_end) {
      if (!has_failure_ || index > deepest_) {
        deepest_ = index;
        reasons_ = std::move(reasons);
        has_failure_ = true;
        if (index < count) deepest_input_ = RoleContext(compiled_, network_, state_, compiled_.ops[index]).input;
      }
      // Back to the last tensor op that has another candidate.
      while (!frames_.empty()) {
        take_back(frames_.size() - 1, frames_.back());
        if (frames_.back().next < frames_.back().choices.size()) break;
        frames_.pop_back();
      }
      if (frames_.empty()) return failure();
      apply(frames_.size() - 1, frames_.back());
    }
    if (++tries > kMaxTries) return failure();
  }
  Matching matching;
  for (Frame& frame : frames_) matching.choices.push_back(std::move(frame.choices[frame.next]));
  matching.chunks = std::move(state_.chunks);
  matching.fills = std::move(state_.fills);
  return matching;
}

}  // namespace

Result<Matching> match(const Template& compiled, const Network& network, const MatchOptions& options) {
  return Search(compiled, network, options).run();
}

}  // namespace reef::retarget
