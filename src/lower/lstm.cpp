// SPDX-License-Identifier: Apache-2.0
// UNIDIRECTIONAL_SEQUENCE_LSTM: time steps one after the other (tiled/lstm.h), in loops where all cells are on one
// tile, else all of them written out.
//
// The sequence that comes in is on all tiles with cells, a pixel for each time step; so is the one that goes out, whose
// pixels are the output of the step before for the next one. States come from the host and go back to it.
//
// How it is known: what is computed is what Google's program for one model computes (numeric/chip_lstm.h), but for the
// units of the gates' arguments, which saturate near 1 there. How is our own: Google's program has a loop, too, but
// fetches each time step from the host and sends its result there.
//
// What is refused: peepholes, projection, layer normalization, coupled gates, batches, other functions than tanh,
// floating point and hybrid forms.
#include <algorithm>
#include <memory>

#include "formats/darwinn/parameters/lstm_gates.h"
#include "ir/describe.h"
#include "lower/lowerings.h"
#include "lower/ring_copies.h"

namespace reef::lower {
namespace {

using tiled::kLstmGates;
using tiled::LstmPlace;

constexpr std::size_t kCellGate = 2;  // of input, forget, cell and output gate
constexpr std::size_t kInput = 0, kInputWeights = 1, kRecurrentWeights = 5, kHidden = 18, kCell = 19;
// A loop of fewer is longer than they are. Words that a pass of a loop may move: a word takes a cycle, and the
// instructions of a step 8,000 on their way over USB.
constexpr std::int32_t kLeastLoopSteps = 3, kMostMovedWords = 2048;
constexpr std::int32_t kMinGateLineWords = 16;  // as in fully_connected.cpp
constexpr std::int32_t kMostPartLines = chip::kWideLines - 256;
constexpr std::int32_t kMostLoops = 1 << 14;

// The operator's operands and sizes.
struct Form {
  std::int32_t input = -1, hidden = -1, cell = -1, output = -1;  // the model's tensors
  std::int32_t time_steps = 0, inputs = 0, cells = 0;
  float cell_clip = 0;
};

// What steps need when they are finished; the chunk is made by the first.
struct Shared {
  std::vector<darwinn::LstmLayer> gates;
  LstmPlace place;
  std::int32_t part_lines = 0, line_words = chip::kCells;
};

Status require_state(const Builder& builder, std::int32_t tensor, ir::DataType type, std::int32_t cells) {
  const ir::Tensor& state = builder.source(tensor);
  if (!state.is_variable || state.type != type || state.quantization.scale.size() != 1 || !state.shape.is_usable() ||
      state.shape.elements() != cells) {
    return unsupported("the state '{}' is {}{} with {} scales; a variable {}[1, {}] with one is needed",
                       ir::describe_name(state.name), ir::type_name(state.type), state.shape.to_string(),
                       state.quantization.scale.size(), ir::type_name(type), cells);
  }
  return ok_status();
}

Status require_known_options(const ir::Operator& op) {
  const std::string_view function = op.attributes.get_enum("fused_activation_function");
  if (function != "TANH") return unsupported("the function of the LSTM is {}; only TANH is generated", function);
  if (op.attributes.get_bool("diagonal_recurrent_tensors")) {
    return unsupported("an LSTM with diagonal recurrent weights is not generated");
  }
  return ok_status();
}

Result<Form> form_of(const Builder& builder, std::int32_t index, std::int32_t cells) {
  const ir::Operator& op = builder.op(index);
  REEF_RETURN_IF_ERROR(require_known_options(op));
  Form form;
  form.cells = cells;
  form.cell_clip = static_cast<float>(op.attributes.get_float("cell_clip"));
  REEF_ASSIGN_OR_RETURN(form.input, builder.operand(index, kInput));
  REEF_ASSIGN_OR_RETURN(form.hidden, builder.operand(index, kHidden));
  REEF_ASSIGN_OR_RETURN(form.cell, builder.operand(index, kCell));
  form.output = op.outputs[0];
  const ir::Shape& shape = builder.source(form.input).shape;  // of rank 3, as the weights say
  const bool time_major = op.attributes.get_bool("time_major");
  const std::int32_t batch = shape[time_major ? 1 : 0];
  form.time_steps = shape[time_major ? 0 : 1];
  form.inputs = shape[2];
  if (!shape.is_usable() || batch != 1 || form.time_steps < 1 || form.inputs < 1) {
    return unsupported("the LSTM's input is {}; a batch of one is generated", shape.to_string());
  }
  REEF_REQUIRE(builder.source(form.output).shape.is_usable() &&
                   builder.source(form.output).shape.elements() == std::int64_t{form.time_steps} * cells &&
                   builder.source(form.output).shape.last() == cells,
               "the LSTM's output is {}, which is not {} steps of {} cells",
               builder.source(form.output).shape.to_string(), form.time_steps, cells);
  REEF_RETURN_IF_ERROR(require_state(builder, form.hidden, ir::DataType::kInt8, cells));
  REEF_RETURN_IF_ERROR(require_state(builder, form.cell, ir::DataType::kInt16, cells));
  const auto& zero = builder.source(form.cell).quantization.zero_point;
  if (!zero.empty() && zero[0] != 0) return unsupported("the zero point of the LSTM's cells is {}, not 0", zero[0]);
  REEF_ASSIGN_OR_RETURN(const bool same, same_quantization(builder.source(form.hidden), builder.source(form.output)));
  if (!same) return unsupported("output and output state of the LSTM are quantized differently");
  return form;
}

// ---- Parameters ----

std::size_t layer_index(std::size_t gate, bool is_recurrent) { return 2 * gate + (is_recurrent ? 1 : 0); }

// All layers of a tile's cells, one behind the other: those of the input, then the recurrent ones.
Result<tiled::ParameterChunk> chunk_of(const Shared& shared) {
  const std::size_t line_bytes = static_cast<std::size_t>(shared.line_words) * kWord;
  const std::int32_t groups = (shared.place.cells + chip::kCells - 1) / chip::kCells;
  std::vector<std::vector<std::uint8_t>> parts(static_cast<std::size_t>(groups));
  for (const bool is_recurrent : {false, true}) {
    for (const std::size_t gate : tiled::kLstmGateOrder) {
      darwinn::LayerParameters layer = shared.gates[layer_index(gate, is_recurrent)].layer;
      layer.shape.cells = shared.line_words == chip::kCells ? 0 : shared.line_words;
      REEF_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> bytes, darwinn::pack(layer));
      const auto lines =
          static_cast<std::size_t>(layer.presence().arrays() + (layer.shape.input_channels + kWord - 1) / kWord);
      if (bytes.size() < parts.size() * lines * line_bytes) {
        return internal_error("{} bytes of parameters for {} lines", bytes.size(), parts.size() * lines);
      }
      for (std::size_t group = 0; group < parts.size(); ++group) {
        const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(group * lines * line_bytes);
        parts[group].insert(parts[group].end(), begin, begin + static_cast<std::ptrdiff_t>(lines * line_bytes));
      }
    }
  }
  tiled::ParameterChunk chunk;
  std::vector<std::uint8_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  chunk.line_words = shared.line_words;
  chunk.part_lines = shared.part_lines;
  chunk.lines = groups * shared.part_lines;
  chunk.bytes = Bytes(std::move(all));
  return chunk;
}

// The layers of one kind, from line `first_line` on; gives each of them its multipliers, and biases to all or none.
Result<tiled::LstmLayers> layers_of(const Builder& builder, std::int32_t op, const Form& form, Shared& shared,
                                    bool is_recurrent, std::int32_t first_line) {
  const ir::Tensor& vector = builder.source(is_recurrent ? form.hidden : form.input);
  const ir::Tensor& hidden = builder.source(form.hidden);
  REEF_ASSIGN_OR_RETURN(const std::int32_t hidden_zero, chip_zero_point(hidden));
  const auto argument = [&](std::size_t gate) {
    return numeric::chip_lstm_argument(builder.lstm_arguments(), gate == kCellGate, hidden.quantization.scale[0],
                                       hidden_zero);
  };
  tiled::LstmLayers layers;
  layers.first_line = first_line;
  for (std::size_t gate = 0; gate < kLstmGates; ++gate) {
    layers.has_biases = layers.has_biases || !shared.gates[layer_index(gate, is_recurrent)].layer.biases.empty();
  }
  for (std::size_t gate = 0; gate < kLstmGates; ++gate) {
    darwinn::LayerParameters& layer = shared.gates[layer_index(gate, is_recurrent)].layer;
    REEF_ASSIGN_OR_RETURN(const std::int32_t weights,
                          builder.operand(op, (is_recurrent ? kRecurrentWeights : kInputWeights) + gate));
    const float weight_scale = builder.source(weights).quantization.scale[0];
    layer.multipliers.assign(
        static_cast<std::size_t>(form.cells),
        numeric::chip_layer_multiplier(vector.quantization.scale[0], weight_scale, argument(gate).unit));
    if (layers.has_biases) layer.biases.resize(static_cast<std::size_t>(form.cells));
    layers.words = (layer.shape.input_channels + kWord - 1) / kWord;
    layers.constants.weight_zero_point = layer.weight_zero_point.value_or(0);
  }
  REEF_ASSIGN_OR_RETURN(layers.constants.input_zero_point, chip_zero_point(vector));
  // In steps from the zero point, which is that of all gates.
  layers.constants.output_zero_point = argument(0).zero;
  layers.constants.clamp = numeric::chip_clamp(argument(0).unit, argument(0).zero, numeric::ChipActivation::kNone);
  return layers;
}

// ---- Tensors ----

// The sequence of outputs, everything on all tiles with cells.
Result<std::int32_t> new_sequence(Builder& builder, const Form& form, tiled::TileMask tiles) {
  const ir::Tensor& source = builder.source(form.output);
  TiledTensor sequence;
  sequence.source = form.output;
  sequence.spread = tiled::Spread::kCopies;
  sequence.tiles = tiles;
  sequence.width = form.time_steps;
  sequence.channels = form.cells;
  sequence.pitch = sequence.pixel_words() * kWord;
  REEF_ASSIGN_OR_RETURN(sequence.zero_point, chip_zero_point(source));
  sequence.scale = source.quantization.scale[0];
  return builder.add_tensor(std::move(sequence));
}

// The last pixel of the sequence, in its place.
std::int32_t new_last_output(Builder& builder, std::int32_t sequence, const Form& form) {
  TiledTensor last = builder.tensor(sequence);
  const std::int32_t object = last.object, pitch = last.pitch;
  last.source = form.hidden;
  last.width = 1;
  const std::int32_t made = builder.add_tensor(std::move(last));
  builder.program().tensor(made).object = object;
  builder.program().tensor(made).offset = (form.time_steps - 1) * pitch;
  return made;
}

// ---- Steps ----

class LstmLowering {
 public:
  LstmLowering(Builder& builder, std::int32_t op, const Form& form, std::shared_ptr<Shared> shared)
      : builder_(builder), op_(op), form_(form), shared_(std::move(shared)) {}

  Status lower() {
    LstmPlace& place = shared_->place;
    REEF_RETURN_IF_ERROR(find_layers());
    REEF_ASSIGN_OR_RETURN(const std::int32_t input, builder_.row_copies(form_.input, place.tiles()));
    REEF_ASSIGN_OR_RETURN(const std::int32_t hidden, builder_.copies(form_.hidden, place.tiles()));
    REEF_ASSIGN_OR_RETURN(const Value state, builder_.value(form_.cell));
    const TiledTensor& cells = builder_.tensor(state.tensor);
    if (cells.spread != tiled::Spread::kVector || cells.run != 2 * tiled::kVectorRun) {
      return unsupported("the cells of the LSTM are used by other operators");
    }
    input_ = input;
    hidden_ = hidden;
    state_before_ = state.tensor;
    REEF_ASSIGN_OR_RETURN(sequence_, new_sequence(builder_, form_, place.tiles()));
    TiledTensor after = cells;
    state_after_ = builder_.add_tensor(std::move(after));
    own_ = is_spread() ? new_own() : sequence_;
    place.scratch = builder_.new_narrow(tiled::LstmScratch::kBytes);
    const bool loops = form_.time_steps >= kLeastLoopSteps;
    place.inputs = builder_.new_narrow(std::int64_t{loops ? 1 : form_.time_steps} * tiled::kLstmInputBytes);
    place.lines = builder_.new_wide(tiled::LstmLines::kCount);
    if (loops) {
      add_loops();
    } else {
      add_time_steps();
    }
    builder_.set_value(form_.output, {sequence_, {}});
    builder_.set_state(form_.hidden, new_last_output(builder_, sequence_, form_));
    builder_.set_state(form_.cell, state_after_);
    return ok_status();
  }

 private:
  bool is_spread() const { return form_.cells > chip::kCells; }

  Status find_layers() {
    REEF_ASSIGN_OR_RETURN(of_input_, layers_of(builder_, op_, form_, *shared_, false, 0));
    REEF_ASSIGN_OR_RETURN(recurrent_, layers_of(builder_, op_, form_, *shared_, true, of_input_.end_line()));
    const std::int32_t lines = recurrent_.end_line();
    if (lines > kMostPartLines || of_input_.words > kMostLoops) {
      return unsupported("an LSTM of {} inputs and {} cells takes {} lines of a tile for its weights; {} are there",
                         form_.inputs, form_.cells, lines, kMostPartLines);
    }
    shared_->part_lines = lines;
    shared_->line_words = std::max(kMinGateLineWords, darwinn::cells_per_line(shared_->gates[0].layer.shape));
    const ir::Tensor& hidden = builder_.source(form_.hidden);
    REEF_ASSIGN_OR_RETURN(const std::int32_t zero, chip_zero_point(hidden));
    const auto numbers = numeric::chip_lstm_step(builder_.source(form_.cell).quantization.scale[0],
                                                 hidden.quantization.scale[0], zero, form_.cell_clip);
    if (!numbers) return unsupported("the scales of the LSTM's states are no positive numbers");
    const auto argument = [&](bool is_tanh) {
      return numeric::chip_lstm_argument(builder_.lstm_arguments(), is_tanh, hidden.quantization.scale[0], zero);
    };
    numbers_ = {zero, argument(false), argument(true), *numbers};
    return ok_status();
  }

  // What a tile computes of an output, before all tiles get it.
  std::int32_t new_own() {
    TiledTensor own = builder_.tensor(sequence_);
    own.spread = tiled::Spread::kVector;
    own.tiles = 0;
    own.width = 1;
    return builder_.add_tensor(std::move(own));
  }

  // The chunk is in the order of first use: made when the first step is finished.
  static Status use_memory(Builder& builder, tiled::Step& step, Shared& shared, LstmPlace& place) {
    if (shared.place.parameters == tiled::kNowhere) {
      REEF_ASSIGN_OR_RETURN(tiled::ParameterChunk chunk, chunk_of(shared));
      shared.place.parameters = builder.new_parameters(std::move(chunk));
      shared.gates.clear();
    }
    place = shared.place;
    step.parameters_used = {place.parameters};
    step.narrow_used = {place.scratch, place.inputs};
    step.wide_used = {place.lines};
    return ok_status();
  }

  void add_time_steps() {
    add_inputs();
    for (std::int32_t t = 0; t < form_.time_steps; ++t) {
      add_time_step(t);
      if (is_spread()) add_gather(t);
    }
  }

  // Each of as many steps as can be moved in little time.
  void add_loops() {
    const std::int32_t words_of_step = of_input_.words + recurrent_.words;
    const std::int32_t most = std::max(kMostMovedWords / words_of_step, kLeastLoopSteps);
    const std::int32_t loops = (form_.time_steps + most - 1) / most;
    const std::int32_t steps = (form_.time_steps + loops - 1) / loops;
    const std::int32_t moving = builder_.new_narrow(std::int64_t{steps} * of_input_.words * kWord);
    for (std::int32_t first = 0; first < form_.time_steps; first += steps) {
      add_loop(first, std::min(steps, form_.time_steps - first), moving);
    }
  }

  void add_loop(std::int32_t first, std::int32_t steps, std::int32_t moving) {
    tiled::LstmLoop loop;
    loop.is_first = first == 0;
    loop.of_input = of_input_;
    loop.recurrent = recurrent_;
    loop.input = input_;
    loop.first_step = first;
    loop.steps = steps;
    loop.moving_input = moving;
    loop.hidden = first == 0 ? hidden_ : sequence_;
    loop.hidden_pixel = first == 0 ? 0 : first - 1;
    loop.output = sequence_;
    loop.numbers = numbers_;
    std::vector<Read> reads = {Read{input_}, Read{loop.hidden}};
    std::vector<std::int32_t> writes = {sequence_};
    use_states(loop, first == 0, first + steps == form_.time_steps, reads, writes);
    if (is_spread()) {
      loop.own = own_;
      writes.push_back(own_);
    }
    builder_.add_step(
        op_, std::move(loop), reads, writes, [shared = shared_, moving](Builder& builder, tiled::Step& step) -> Status {
          REEF_RETURN_IF_ERROR(use_memory(builder, step, *shared, std::get<tiled::LstmLoop>(step.work).place));
          step.narrow_used.push_back(moving);
          return finish_gather(builder, step);
        });
  }

  static Status finish_gather(Builder& builder, tiled::Step& step) {
    auto loop = std::get<tiled::LstmLoop>(step.work);
    if (loop.own == tiled::kNowhere) return ok_status();
    const std::int32_t last = loop.first_step + loop.steps - 1;
    REEF_RETURN_IF_ERROR(set_ring_copies(builder, step, gather(builder, loop.own, loop.output, last)));
    loop.gather = std::get<tiled::RingCopies>(step.work);
    step.work = std::move(loop);
    return ok_status();
  }

  // Of the first and of the last step.
  template <typename Work>
  void use_states(Work& work, bool is_first, bool is_last, std::vector<Read>& reads,
                  std::vector<std::int32_t>& writes) const {
    if (is_first) {
      work.state_before = state_before_;
      reads.push_back(Read{state_before_});
    }
    if (is_last) {
      work.state_after = state_after_;
      writes.push_back(state_after_);
    }
  }

  void add_inputs() {
    tiled::LstmInputs inputs;
    inputs.numbers = numbers_;
    inputs.input = input_;
    inputs.steps = form_.time_steps;
    inputs.layers = of_input_;
    builder_.add_step(op_, std::move(inputs), {Read{input_}}, {},
                      [shared = shared_](Builder& builder, tiled::Step& step) -> Status {
                        return use_memory(builder, step, *shared, std::get<tiled::LstmInputs>(step.work).place);
                      });
  }

  void add_time_step(std::int32_t t) {
    tiled::LstmStep step;
    step.layers = recurrent_;
    step.number = t;
    step.hidden = t == 0 ? hidden_ : sequence_;
    step.hidden_pixel = t == 0 ? 0 : t - 1;
    step.output = own_;
    step.output_pixel = is_spread() ? 0 : t;
    step.numbers = numbers_;
    std::vector<Read> reads = {Read{step.hidden}};
    std::vector<std::int32_t> writes = {step.output};
    use_states(step, t == 0, t == form_.time_steps - 1, reads, writes);
    builder_.add_step(op_, std::move(step), reads, writes,
                      [shared = shared_](Builder& builder, tiled::Step& work) -> Status {
                        return use_memory(builder, work, *shared, std::get<tiled::LstmStep>(work.work).place);
                      });
  }

  // The cells of all tiles to all of them, as output `t`.
  static tiled::RingCopies gather(const Builder& builder, std::int32_t own, std::int32_t sequence, std::int32_t t) {
    const TiledTensor &from = builder.tensor(own), &to = builder.tensor(sequence);
    tiled::RingCopies work;
    for (int tile = 0; tile < from.vector_tiles(); ++tile) {
      const std::int32_t words = (from.run_of(tile) + kWord - 1) / kWord;
      work.copies.push_back({tile,
                             to.tiles,
                             {from.object, from.offset, {{1, words}}},
                             {to.object, to.offset + t * to.pitch + tile * from.run, {{1, words}}}});
    }
    return work;
  }

  void add_gather(std::int32_t t) {
    builder_.add_step(op_, tiled::RingCopies{}, {Read{own_}}, {sequence_},
                      [own = own_, sequence = sequence_, t](Builder& builder, tiled::Step& step) -> Status {
                        return set_ring_copies(builder, step, gather(builder, own, sequence, t));
                      });
  }

  Builder& builder_;
  const std::int32_t op_;
  const Form form_;
  const std::shared_ptr<Shared> shared_;
  tiled::LstmLayers of_input_, recurrent_;
  tiled::LstmNumbers numbers_;
  std::int32_t input_ = -1, hidden_ = -1, state_before_ = -1, state_after_ = -1, sequence_ = -1, own_ = -1;
};

}  // namespace

Status lower_lstm(Builder& builder, std::int32_t op) {
  auto shared = std::make_shared<Shared>();
  REEF_ASSIGN_OR_RETURN(shared->gates, darwinn::lstm_gate_layers(builder.model(), builder.graph(), builder.op(op)));
  const std::int32_t cells = shared->gates[0].layer.shape.output_channels;
  if (cells > chip::kTiles * chip::kCells) {
    return unsupported("an LSTM of {} cells; up to {} are generated", cells, chip::kTiles * chip::kCells);
  }
  REEF_ASSIGN_OR_RETURN(const Form form, form_of(builder, op, cells));
  shared->place.cells = cells;
  return LstmLowering(builder, op, form, std::move(shared)).lower();
}

}  // namespace reef::lower
