// SPDX-License-Identifier: Apache-2.0
// Convolution, depthwise convolution, fully connected: tensor ops whose parameters lie in a blob. Also matrices of
// zeros and ones that only move bytes, and constant tensors that are stored as they are.
#include <algorithm>

#include "formats/darwinn/parameters/from_operator.h"
#include "formats/darwinn/parameters/layer_geometry.h"
#include "formats/darwinn/parameters/lstm_gates.h"
#include "ir/describe.h"
#include "ir/op.h"
#include "retarget/layer_match.h"
#include "retarget/roles.h"

namespace reef::retarget {

std::uint64_t words_needed(const darwinn::LayerParameters& layer) {
  const darwinn::LayerGeometry geometry(layer.shape, layer.presence(), layer.order);
  std::uint64_t words = 0;
  for (std::int32_t g = 0; g < geometry.groups(); ++g) {
    const std::uint64_t cells = static_cast<std::uint64_t>(geometry.channels_in(g) + 3) / 4 * 4;
    words += cells * static_cast<std::uint64_t>(geometry.lines() + layer.presence().arrays());
  }
  return words;
}

namespace {

// The operands that may come from a layer's chunk.
std::array<const Sources*, 4> chunk_sources(const TensorOpTrace& trace) {
  return {&trace.parameters, &trace.biases, &trace.multipliers, &trace.zero_points};
}

struct ChunkReads {
  Origin blob = Origin::kCached;
  std::uint32_t first = 0, end = 0;
  bool is_one_blob = true;
};

ChunkReads chunk_reads(const TensorOpTrace& trace) {
  ChunkReads reads;
  reads.blob = RoleContext::blob_of(trace.parameters);
  reads.first = ~0u;
  for (const Sources* sources : chunk_sources(trace)) {
    if (!sources->from_blob()) continue;
    if (RoleContext::blob_of(*sources) != reads.blob || (!sources->cached.empty() && !sources->streamed.empty())) {
      reads.is_one_blob = false;
    }
    reads.first = std::min(reads.first, RoleContext::offsets_of(*sources).first());
    reads.end = std::max(reads.end, RoleContext::offsets_of(*sources).end());
  }
  return reads;
}

const LayerChunk* chunk_at(const SearchState& state, Origin blob, std::uint32_t offset, std::int32_t& index) {
  for (std::size_t c = 0; c < state.chunks.size(); ++c) {
    const BlobRange& range = state.chunks[c].range;
    if (range.blob == blob && offset >= range.offset && offset < range.offset + range.bytes) {
      index = static_cast<std::int32_t>(c);
      return &state.chunks[c];
    }
  }
  return nullptr;
}

bool is_layer_like(const RoleContext& context) {
  const OpView& op = context.op;
  return op.is_multiply_add() && op.trace->parameters.from_blob() && !op.has_activation &&
         (op.arithmetic == Arithmetic::kWeights || op.arithmetic == Arithmetic::kElements);
}

Requantization requantization_of(const darwinn::LayerRequantization& layer) {
  return {layer.weight_zero_point, layer.input_zero_point, layer.output_zero_point, layer.multiplier, layer.clamp, 0};
}

bool has_chunk(const SearchState& state, std::int32_t op, Origin blob) {
  return std::any_of(state.chunks.begin(), state.chunks.end(), [&](const LayerChunk& chunk) {
    return chunk.op == op && chunk.range.blob == blob && chunk.part.empty() && chunk.parameters;
  });
}

// Constants, label and padding of a choice whose chunk is known.
bool complete_layer(RoleContext& context, std::int32_t k, const darwinn::LayerParameters& parameters, Choice& choice) {
  const Network& network = context.network;
  const auto constants =
      darwinn::layer_requantization_of(network.model(), network.graph(), network.op(k), parameters.presence());
  if (!constants.ok()) {
    context.reject(k, "{}", constants.status().message());
    return false;
  }
  choice.op = k;
  choice.role = "layer";
  choice.label = {Label::tensor(network.op(k).outputs[0])};
  choice.input_zero = Constant::kInZero;
  set_all(choice, requantization_of(*constants));
  const auto input = network.chip(network.op(k).inputs[0]);
  if (input) fill_with_zero_point(choice, context.input.fills, *input);
  return true;
}

Result<std::shared_ptr<const darwinn::LayerParameters>> parameters_of(const RoleContext& context, std::int32_t k,
                                                                      const LayerFit& fit);

// The compiler keeps one copy of parameters that two layers have in common. The model's must then be the same, too.
void offer_shared_chunk(RoleContext& context, const LayerChunk& chunk, std::int32_t index, const ChunkReads& reads) {
  const Network& network = context.network;
  bool is_read = false;
  for (const std::int32_t k : network.chip_ops()) {
    const ir::Operator& op = network.op(k);
    if (!darwinn::has_layer_parameters(op) || op.inputs.size() < 2) continue;
    if (!network.all_are(context.input.tensors, op.inputs[0])) continue;
    is_read = true;
    const LayerFit fit = fit_layer(context, k, layer_shape_of(network, k), reads.first);
    if (!fit.reason.empty()) {
      context.reject(k, "{}", fit.reason);
      continue;
    }
    const auto parameters = parameters_of(context, k, fit);
    const auto own =
        parameters.ok() ? darwinn::pack(**parameters) : Result<std::vector<std::uint8_t>>(parameters.status());
    const auto shared = darwinn::pack(*chunk.parameters);
    if (!own.ok() || !shared.ok() || *own != *shared) {
      context.reject(k, "the template has one set of parameters for it and {}; the model has two",
                     network.describe(chunk.op));
      continue;
    }
    Choice choice;
    choice.chunk = index;
    if (complete_layer(context, k, **parameters, choice)) context.offer(std::move(choice));
  }
  if (!is_read) context.reject(chunk.op, "its parameters are applied to something it does not read");
}

void offer_known_chunk(RoleContext& context, const LayerChunk& chunk, std::int32_t index, const ChunkReads& reads) {
  const OpView& op = context.op;
  const darwinn::Presence presence = presence_of(op);
  const Network& network = context.network;
  if (!chunk.parameters || !chunk.part.empty()) return;
  if (!context.input.tensors.empty() && !network.all_are(context.input.tensors, network.op(chunk.op).inputs[0])) {
    return offer_shared_chunk(context, chunk, index, reads);
  }
  if (!(presence == chunk.parameters->presence()) || reads.end > chunk.range.offset + chunk.range.bytes) {
    return context.reject(chunk.op, "its parameters are read in two ways");
  }
  Choice choice;
  choice.chunk = index;
  if (complete_layer(context, chunk.op, *chunk.parameters, choice)) context.offer(std::move(choice));
}

Result<std::shared_ptr<const darwinn::LayerParameters>> parameters_of(const RoleContext& context, std::int32_t k,
                                                                      const LayerFit& fit) {
  const darwinn::Presence presence = presence_of(context.op);
  const std::string form = fmt::format("{} {} {} {}{}{}", k, fit.order.block_words, fit.shape.cells,
                                       presence.multipliers, presence.biases, presence.zero_points);
  auto& known = (*context.state.packed_layers)[form];
  if (!known) {
    const Network& network = context.network;
    REEF_ASSIGN_OR_RETURN(darwinn::LayerParameters layer,
                          darwinn::layer_parameters_of(network.model(), network.graph(), network.op(k),
                                                       {.order = fit.order, .presence = presence}));
    layer.shape.cells = fit.shape.cells;
    known = std::make_shared<const darwinn::LayerParameters>(std::move(layer));
  }
  return known;
}

void offer_new_chunk(RoleContext& context, std::int32_t k, const ChunkReads& reads) {
  const Network& network = context.network;
  const LayerFit fit = fit_layer(context, k, layer_shape_of(network, k), reads.first);
  if (!fit.reason.empty()) return context.reject(k, "{}", fit.reason);
  for (const std::string& difference : {check_kernel(network, k, context.op, fit.shape),
                                        check_padding(context, k, fit.shape), check_channels(context, k, fit.shape)}) {
    if (!difference.empty()) return context.reject(k, "{}", difference);
  }
  const auto parameters = parameters_of(context, k, fit);
  if (!parameters.ok()) return context.reject(k, "{}", parameters.status().message());
  const auto bytes = darwinn::packed_size((*parameters)->shape, (*parameters)->presence());
  if (!bytes.ok()) return context.reject(k, "{}", bytes.status().message());
  if (reads.end > reads.first + *bytes) {
    return context.reject(k, "its parameters take {} bytes, the template reads {}", *bytes, reads.end - reads.first);
  }
  if (reads.first + *bytes > context.compiled.blob(reads.blob).size()) {
    return context.reject(k, "its parameters take {} bytes, more than the template has", *bytes);
  }
  Choice choice;
  LayerChunk chunk;
  chunk.range = {reads.blob, reads.first, static_cast<std::uint32_t>(*bytes)};
  chunk.op = k;
  chunk.parameters = *parameters;
  if (!complete_layer(context, k, *chunk.parameters, choice)) return;
  choice.new_chunk = std::move(chunk);
  context.offer(std::move(choice));
}

}  // namespace

void offer_layers(RoleContext& context) {
  if (!is_layer_like(context) || !context.input.stages.empty()) return;
  const ChunkReads reads = chunk_reads(*context.op.trace);
  if (!reads.is_one_blob) return;
  std::int32_t index = -1;
  if (const LayerChunk* chunk = chunk_at(context.state, reads.blob, reads.first, index)) {
    return offer_known_chunk(context, *chunk, index, reads);
  }
  const Network& network = context.network;
  for (const std::int32_t k : network.chip_ops()) {
    const ir::Operator& op = network.op(k);
    if (!darwinn::has_layer_parameters(op) || op.inputs.size() < 2) continue;
    // A layer of which the template computes nothing but padding reads no tensor at all.
    if (!context.input.tensors.empty() && !network.all_are(context.input.tensors, op.inputs[0])) continue;
    if (reads.blob == Origin::kCached && has_chunk(context.state, k, reads.blob)) continue;
    offer_new_chunk(context, k, reads);
  }
}

namespace {

// Which tensor each cell of a selection takes its byte from, by the first result.
void label_cells(const RoleContext& context, std::span<const std::uint8_t> blob, Choice& choice) {
  choice.cell_labels.resize(static_cast<std::size_t>(context.op.cells));
  for (const FirstStep& step : context.op.trace->first) {
    const std::uint32_t line = tag_number(step.parameter);
    for (std::size_t cell = 0; cell < choice.cell_labels.size(); ++cell) {
      for (std::size_t lane = 0; lane < step.inputs.size(); ++lane) {
        const std::size_t at = line + 4 * cell + lane;
        if (at >= blob.size() || blob[at] == 0) continue;
        for (const std::int32_t t : operand_of(context.compiled, context.state, step.inputs[lane]).tensors) {
          choice.cell_labels[cell].insert(Label::tensor(t));
        }
      }
    }
  }
}

}  // namespace

// Matrices of zeros and ones move bytes; the compiler makes them up. They stay as they are.
void offer_selections(RoleContext& context) {
  const OpView& op = context.op;
  if (!is_layer_like(context) || op.has_multipliers || op.has_zero_line || op.bits(Constant::kParamZero) != 0) return;
  if (context.input.tensors.empty() || !context.input.stages.empty()) return;
  std::int32_t index = -1;
  const ChunkReads reads = chunk_reads(*op.trace);
  if (!reads.is_one_blob || chunk_at(context.state, reads.blob, reads.first, index) != nullptr) return;
  const auto blob = context.compiled.blob(reads.blob);
  const auto all_below = [&](const Sources& sources, std::uint8_t limit) {
    for (const auto& [first, end] : RoleContext::offsets_of(sources).runs()) {
      for (std::uint32_t k = first; k < end; ++k) {
        if (k >= blob.size() || blob[k] >= limit) return false;
      }
    }
    return true;
  };
  if (!all_below(op.trace->parameters, 2) || !all_below(op.trace->biases, 1)) return;
  const auto tensor = context.network.chip(context.input.tensors[0]);
  for (const std::int32_t t : context.input.tensors) {
    if (!tensor || context.network.chip(t) != tensor) return;
  }
  Choice choice;
  choice.role = "selection of bytes";
  for (const std::int32_t t : context.input.tensors) choice.label.insert(Label::tensor(t));
  if (context.input.tensors.size() > 1) label_cells(context, blob, choice);
  choice.input_zero = Constant::kInZero;
  set_all(choice, elementwise(*tensor, *tensor, numeric::ChipActivation::kNone));
  fill_with_zero_point(choice, context.input.fills, *tensor);
  context.offer(std::move(choice));
}

// Bytes of a blob that are copied into activations: a constant operand, or what an LSTM's output holds at first.
void offer_constants(RoleContext& context) {
  const Sources& sources = context.op.trace->input;
  const Origin blob = RoleContext::blob_of(sources);
  const OffsetSet& offsets = RoleContext::offsets_of(sources);
  const auto bytes = context.compiled.blob(blob);
  const Network& network = context.network;
  const auto copy = [&](std::string role, Labels label) {
    Choice choice;
    choice.role = std::move(role);
    choice.label = std::move(label);
    choice.writes_zero = false;
    return choice;
  };
  std::int32_t index = -1;
  if (const LayerChunk* chunk = chunk_at(context.state, blob, offsets.first(), index)) {
    if (chunk->tensor < 0) return;
    Choice choice = copy("constant", {Label::tensor(chunk->tensor)});
    choice.chunk = index;
    return context.offer(std::move(choice));
  }
  const std::uint32_t start = offsets.first() / darwinn::kChunkAlignment * darwinn::kChunkAlignment;
  for (const std::int32_t k : network.chip_ops()) {
    const ir::Operator& op = network.op(k);
    if (op.type == Op::UNIDIRECTIONAL_SEQUENCE_LSTM) {
      bool is_initial = true;
      for (const auto& [first, end] : offsets.runs()) {
        for (std::uint32_t b = first; b < end; ++b) {
          is_initial = is_initial && b < bytes.size() && (bytes[b] == darwinn::kLstmInitialOutput || bytes[b] == 0);
        }
      }
      if (is_initial) context.offer(copy("initial output", {}));
    }
    if (darwinn::has_layer_parameters(op)) continue;
    for (const std::int32_t t : op.inputs) {
      if (t < 0 || !network.is_constant(t) || !ir::is_integer_8(network.tensor(t).type)) continue;
      const std::size_t size = ir::constant_data(network.model(), network.tensor(t)).size();
      const std::size_t padded =
          (size + darwinn::kChunkAlignment - 1) / darwinn::kChunkAlignment * darwinn::kChunkAlignment;
      if (offsets.end() > start + padded || start + padded > bytes.size()) {
        context.reject(k, "its constant has {} bytes, the template reads {}", size, offsets.end() - start);
        continue;
      }
      Choice choice = copy("constant", {Label::tensor(t)});
      LayerChunk chunk;
      chunk.range = {blob, start, static_cast<std::uint32_t>(padded)};
      chunk.op = k;
      chunk.tensor = t;
      choice.new_chunk = std::move(chunk);
      context.offer(std::move(choice));
    }
  }
}

}  // namespace reef::retarget
