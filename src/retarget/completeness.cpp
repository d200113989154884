// SPDX-License-Identifier: Apache-2.0
#include "retarget/completeness.h"

#include <algorithm>
#include <optional>

#include "formats/darwinn/parameters/from_operator.h"
#include "ir/describe.h"
#include "ir/op.h"
#include "retarget/layer_match.h"

namespace reef::retarget {

namespace {

// Where an output layer's first pixel starts, in elements; nothing where the tables do not say.
std::optional<std::int64_t> first_pixel(const darwinn::Layer& layer) {
  const auto* info = std::get_if<darwinn::OutputInfo>(&layer.info);
  if (info == nullptr || !info->layout || info->layout->y_to_tile.empty()) return 0;
  return info->layout->index_of(0, 0);
}

class Checker {
 public:
  Checker(const Template& compiled, const Network& network, const SearchState& state,
          std::span<const Choice* const> choices)
      : compiled_(compiled), network_(network), state_(state), choices_(choices) {}

  std::vector<std::string> run();

 private:
  std::int32_t softmax_input_of(std::int32_t output) const;
  bool is_new_state(std::int32_t tensor, std::int32_t state) const;
  void check_operators();
  void check_outputs();
  void check_order(const darwinn::Layer& layer, const OutputTrace& output, std::int32_t wanted);
  void check_chunks();
  void check_results();
  bool counts_results(const Choice& choice) const;

  const Template& compiled_;
  const Network& network_;
  const SearchState& state_;
  std::span<const Choice* const> choices_;
  std::vector<std::string> problems_;
};

// Softmax of old compilers runs on the scalar core: what leaves the tiles is its input.
std::int32_t Checker::softmax_input_of(std::int32_t output) const {
  for (const std::int32_t k : network_.chip_ops()) {
    const ir::Operator& op = network_.op(k);
    const bool is_it = op.type == Op::SOFTMAX && state_.used_ops.count(k) == 0 && op.inputs[0] >= 0 &&
                       network_.is_also(op.outputs[0]).count(output) > 0;
    if (is_it) return op.inputs[0];
  }
  return -1;
}

// An output that carries a state to the next invocation: the operator that has the state makes its new value.
bool Checker::is_new_state(std::int32_t tensor, std::int32_t state) const {
  if (!network_.tensor(state).is_variable) return false;
  const auto holds = [](const std::vector<std::int32_t>& list, std::int32_t t) {
    return std::find(list.begin(), list.end(), t) != list.end();
  };
  const auto& ops = network_.chip_ops();
  return std::any_of(ops.begin(), ops.end(), [&](std::int32_t k) {
    return holds(network_.op(k).inputs, state) && holds(network_.op(k).outputs, tensor);
  });
}

void Checker::check_outputs() {
  const auto& layers = compiled_.execution.executable->output_layers;
  for (const OutputTrace& output : compiled_.trace.outputs) {
    const auto at = std::find_if(layers.begin(), layers.end(), [&](const auto& l) { return l.name == output.layer; });
    const auto layer = static_cast<std::size_t>(at - layers.begin());
    if (at == layers.end() || layer >= compiled_.output_tensors.size() || compiled_.output_tensors[layer] < 0) continue;
    const std::int32_t softmax = softmax_input_of(compiled_.output_tensors[layer]);
    const std::int32_t wanted = softmax >= 0 ? softmax : compiled_.output_tensors[layer];
    const std::size_t before = problems_.size();
    for (const std::int32_t t : operand_of(compiled_, state_, output.sources).tensors) {
      if (network_.is_also(t).count(wanted) > 0 || is_new_state(t, wanted)) continue;
      problems_.push_back(fmt::format("output '{}' of the template is '{}' in the model, not '{}'",
                                      ir::describe_name(output.layer), ir::describe_name(network_.tensor(t).name),
                                      ir::describe_name(network_.tensor(wanted).name)));
    }
    // The model has no operator between a state and its new value: there is no order of channels to compare.
    const bool is_state = network_.tensor(wanted).is_variable;
    if (problems_.size() == before && !is_state) check_order(*at, output, wanted);
  }
}

// Where each channel of the first pixel comes from.
void Checker::check_order(const darwinn::Layer& layer, const OutputTrace& output, std::int32_t wanted) {
  const auto first = first_pixel(layer);
  const bool is_bytes = layer.data_type == darwinn::DataType::kUint8 || layer.data_type == darwinn::DataType::kInt8;
  if (!first || !is_bytes) return;
  for (std::int64_t z = 0; z < layer.z_dim; ++z) {
    const std::int64_t offset = *first + z;
    if (offset < 0 || offset >= static_cast<std::int64_t>(output.bytes.size())) return;
    for (const std::int32_t t : operand_of(compiled_, state_, output.bytes[reef::at(offset)]).tensors) {
      if (network_.may_supply(t, wanted, z)) continue;
      problems_.push_back(
          fmt::format("channel {} of the template's output '{}' is '{}' in the model, which belongs elsewhere", z,
                      ir::describe_name(output.layer), ir::describe_name(network_.tensor(t).name)));
      return;
    }
  }
}

// Every weight of a layer must be read by some op.
void Checker::check_chunks() {
  std::vector<OffsetSet> read(state_.chunks.size());
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = *choices_[i];
    if (choice.chunk < 0) continue;
    const TensorOpTrace& trace = *compiled_.ops[i].trace;
    for (const Sources* sources : {&trace.parameters, &trace.biases, &trace.multipliers, &trace.zero_points}) {
      for (const auto& [first, end] : RoleContext::offsets_of(*sources).runs()) {
        for (std::uint32_t word = first / 4; word < (end + 3) / 4; ++word) {
          read[reef::at(choice.chunk)].add(word);
        }
      }
    }
  }
  for (std::size_t c = 0; c < read.size(); ++c) {
    const LayerChunk& chunk = state_.chunks[c];
    if (!chunk.parameters) continue;
    read[c].finish();
    const std::uint64_t words = read[c].size();
    const std::uint64_t needed = words_needed(*chunk.parameters);
    if (words >= needed) continue;
    problems_.push_back(fmt::format("the template reads {} of the {} parameter words of {}", words, needed,
                                    network_.describe(chunk.op)));
  }
}

// Layers and pools: one result is a pixel of up to 64 channels (depthwise: 4).
bool Checker::counts_results(const Choice& choice) const {
  if (choice.op < 0) return false;
  const std::string& type = network_.op(choice.op).type;
  if (type == Op::AVERAGE_POOL_2D || type == Op::MAX_POOL_2D || type == Op::MEAN) return true;
  if (choice.chunk < 0) return false;
  const LayerChunk& chunk = state_.chunks[reef::at(choice.chunk)];
  return chunk.parameters != nullptr && chunk.part.empty();
}

// A layer must make as many results as its output has. More only where the network is cut into pieces, which compute
// the seams twice: then some tile runs the layer more than once.
void Checker::check_results() {
  struct Work {
    std::uint64_t results = 0;
    std::uint32_t tiles = 0;
    bool in_pieces = false;
  };
  std::map<std::int32_t, Work> work;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = *choices_[i];
    if (!counts_results(choice)) continue;
    Work& done = work[choice.op];
    const TensorOpTrace& trace = *compiled_.ops[i].trace;
    done.in_pieces = done.in_pieces || (done.tiles & trace.tiles) != 0;
    done.tiles |= trace.tiles;
    done.results += trace.results;
  }
  for (const auto& [k, done] : work) {
    const ir::Shape& shape = network_.tensor(network_.op(k).outputs[0]).shape;
    // A MEAN of everything may have an output without dimensions: one number.
    const std::int64_t channels = shape.rank() == 0 ? 1 : shape.last();
    const bool by_words = darwinn::has_layer_parameters(network_.op(k)) &&
                          layer_shape_of(network_, k).kind == darwinn::LayerKind::kDepthwise;
    const std::int64_t groups = by_words ? (channels + 3) / 4 : (channels + 63) / 64;
    const auto needed = static_cast<std::uint64_t>(shape.elements() / std::max<std::int64_t>(channels, 1) * groups);
    if (done.results == needed || (done.in_pieces && done.results > needed)) continue;
    problems_.push_back(fmt::format("{} has an output of {}, for which {} results are needed; the template makes {}",
                                    network_.describe(k), shape.to_string(), needed, done.results));
  }
}

void Checker::check_operators() {
  for (const std::int32_t k : network_.chip_ops()) {
    const ir::Operator& op = network_.op(k);
    if (state_.used_ops.count(k) > 0 || network_.is_free(k) || op.type == Op::SOFTMAX) continue;
    if (Network::only_moves(op)) {
      problems_.push_back(fmt::format("{} changes the quantization, but the template has no instruction for that",
                                      network_.describe(k)));
    } else {
      problems_.push_back(fmt::format("{} has no instruction in the template", network_.describe(k)));
    }
  }
}

std::vector<std::string> Checker::run() {
  check_operators();
  check_outputs();
  check_chunks();
  check_results();
  return std::move(problems_);
}

}  // namespace

std::vector<std::string> what_is_missing(const Template& compiled, const Network& network, const SearchState& state,
                                         std::span<const Choice* const> choices) {
  return Checker(compiled, network, state, choices).run();
}

}  // namespace reef::retarget
