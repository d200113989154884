// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/parameters/blob_candidates.h"

#include <algorithm>
#include <optional>

#include "formats/darwinn/parameters/channel_lines.h"
#include "formats/darwinn/parameters/from_operator.h"
#include "formats/darwinn/parameters/little_endian.h"
#include "formats/darwinn/parameters/loop_order.h"
#include "formats/darwinn/parameters/lstm_gates.h"
#include "formats/darwinn/parameters/row_hash.h"
#include "formats/darwinn/parameters/softmax_rows.h"
#include "ir/op.h"

namespace reef::darwinn {
namespace {

constexpr std::uint64_t kMaxTotalBytes = std::uint64_t{1} << 29;
constexpr std::string_view kMaskRow = "with mask row";
constexpr std::string_view kInitialOutput = "initial output";

const ir::Operator& operator_of(const ir::Model& model, const Candidate& candidate) {
  return model.subgraphs[0].operators[at(candidate.op)];
}

std::vector<std::uint8_t> padded(std::vector<std::uint8_t> bytes) {
  bytes.resize((bytes.size() + kChunkAlignment - 1) / kChunkAlignment * kChunkAlignment);
  return bytes;
}

// PAD of channels runs as a layer that copies them (read in the program of one network; its bytes were not compared).
Result<SelectionMatrix> channel_padding_of(const ir::Model& model, const ir::Operator& op) {
  const ir::Subgraph& graph = model.subgraphs[0];
  REEF_REQUIRE(op.inputs.size() >= 2 && op.inputs[0] >= 0 && op.inputs[1] >= 0, "PAD lacks operands");
  const ir::Tensor& input = graph.tensors[at(op.inputs[0])];
  const ir::Tensor& paddings = graph.tensors[at(op.inputs[1])];
  const Bytes& data = ir::constant_data(model, paddings);
  if (paddings.type != ir::DataType::kInt32 || input.shape.rank() == 0 ||
      data.size() != 8 * static_cast<std::size_t>(input.shape.rank())) {
    return unsupported("the paddings are not a constant pair of int32 per dimension");
  }
  const auto last = static_cast<std::int64_t>(data.size());
  const std::uint32_t before = load_u32(data.span(), last - 8), after = load_u32(data.span(), last - 4);
  constexpr std::uint32_t kMost = 4096;
  const auto channels = static_cast<std::uint32_t>(input.shape.last());
  if (before + std::uint64_t{after} == 0 || before > kMost || after > kMost || channels == 0 || channels > kMost) {
    return unsupported("the channels are not padded, or too many");
  }
  SelectionMatrix selection{LayerKind::kConvolution, input.shape.last(), std::vector<std::int32_t>(before, -1), true};
  for (std::int32_t i = 0; i < input.shape.last(); ++i) selection.sources.push_back(i);
  selection.sources.resize(selection.sources.size() + after, -1);
  return selection;
}

Result<LayerParameters> layer_of(const ir::Model& model, const Candidate& candidate) {
  const ir::Operator& op = operator_of(model, candidate);
  if (op.type == Op::PAD) {
    REEF_ASSIGN_OR_RETURN(const SelectionMatrix selection, channel_padding_of(model, op));
    return selection_layer(selection);
  }
  if (has_layer_parameters(op)) {
    LayerOptions options;
    options.order = candidate.order;
    options.presence = candidate.presence;
    return layer_parameters_of(model, model.subgraphs[0], op, options);
  }
  REEF_ASSIGN_OR_RETURN(const LstmParameters lstm, lstm_parameters_of(model, model.subgraphs[0], op));
  for (const LstmLayer& gate : lstm.gates) {
    if (gate.role == candidate.role) return gate.layer;
  }
  for (const auto* selections : {&lstm.before, &lstm.after}) {
    for (const SelectionMatrix& selection : *selections) {
      if (describe(selection) == candidate.role) return selection_layer(selection);
    }
  }
  return internal_error("{} has no part '{}'", op.type, candidate.role);
}

Result<std::vector<std::uint8_t>> constant_bytes_of(const ir::Model& model, const Candidate& candidate) {
  if (candidate.role == kInitialOutput) {
    REEF_ASSIGN_OR_RETURN(const LstmParameters lstm,
                          lstm_parameters_of(model, model.subgraphs[0], operator_of(model, candidate)));
    return padded(std::vector<std::uint8_t>(static_cast<std::size_t>(lstm.initial_output_bytes), kLstmInitialOutput));
  }
  for (const std::int32_t input : operator_of(model, candidate).inputs) {
    if (input < 0) continue;
    const ir::Tensor& tensor = model.subgraphs[0].tensors[at(input)];
    const Bytes& data = ir::constant_data(model, tensor);
    if (data.empty() || !ir::is_integer_8(tensor.type)) continue;
    std::vector<std::uint8_t> bytes(data.span().begin(), data.span().end());
    if (tensor.type == ir::DataType::kInt8) {
      for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(byte ^ 0x80);
    }
    return padded(std::move(bytes));
  }
  return internal_error("operator {} has no constant", candidate.op);
}

class Collector {
 public:
  Collector(const ir::Model& model, std::size_t max_size) : model_(model), max_size_(max_size) {}

  Result<std::vector<Candidate>> collect() {
    const std::vector<ir::Operator>& operators = model_.subgraphs[0].operators;
    for (std::size_t i = 0; i < operators.size(); ++i) {
      op_ = static_cast<std::int32_t>(i);
      if (total_bytes_ > kMaxTotalBytes) {
        return make_error(StatusCode::kResourceExhausted, "the layers of the model come to more than {} bytes",
                          kMaxTotalBytes);
      }
      if (has_layer_parameters(operators[i])) {
        add_layer(operators[i]);
      } else if (operators[i].type == Op::UNIDIRECTIONAL_SEQUENCE_LSTM) {
        add_lstm(operators[i]);
      } else if (operators[i].type == Op::SOFTMAX) {
        add_softmax(operators[i]);
      } else if (operators[i].type == Op::PAD) {
        add_padding(operators[i]);
      } else {
        add_constants(operators[i]);
      }
    }
    return std::move(candidates_);
  }

 private:
  // Keeps the candidate unless its bytes cannot be made, are too many, or equal those of an earlier form of the
  // operator.
  void add(Candidate candidate) {
    candidate.op = op_;
    const Result<std::vector<std::uint8_t>> bytes = candidate_bytes(model_, candidate);
    if (bytes.ok()) total_bytes_ += bytes->size();
    if (!bytes.ok() || bytes->empty() || bytes->size() > max_size_) return;
    const RowHashes hashes(*bytes);
    candidate.size = bytes->size();
    candidate.first_row_hash = hashes.of_row(0);
    candidate.hash = hashes.of_run(0, hashes.rows());
    for (auto it = candidates_.rbegin(); it != candidates_.rend() && it->op == op_; ++it) {
      if (it->size == candidate.size && it->hash == candidate.hash) return;
    }
    candidates_.push_back(std::move(candidate));
  }

  void add_layer(const ir::Operator& op) {
    std::optional<Presence> added;
    for (const bool keep_zero_biases : {false, true}) {
      LayerOptions options;
      options.keep_zero_biases = keep_zero_biases;
      const Result<LayerParameters> layer = layer_parameters_of(model_, model_.subgraphs[0], op, options);
      if (!layer.ok() || added == layer->presence()) return;
      added = layer->presence();
      const Result<std::size_t> size = packed_size(layer->shape, layer->presence());
      if (!size.ok() || *size > max_size_) return;
      for (const std::int32_t block_words : possible_blocks(layer->shape)) add_widths(*layer, LoopOrder{block_words});
    }
  }

  static std::vector<std::int32_t> possible_blocks(const LayerShape& shape) {
    const bool one_order = shape.kind != LayerKind::kConvolution || shape.kernel_height * shape.kernel_width == 1 ||
                           shape.input_channels <= kInputChannelsPerWord;
    if (one_order) return {0};
    return {0, partial_sum_block_words(shape), 1};
  }

  // Few output channels: lines are 4 wide as a rule, but wider ones have been seen.
  void add_widths(const LayerParameters& layer, LoopOrder order) {
    for (const std::int32_t cells : {0, 16, kCellsPerTile}) {
      if (cells != 0 && layer.shape.output_channels > 4) continue;
      Candidate candidate(ChunkKind::kLayer);
      candidate.shape = layer.shape;
      candidate.shape.cells = cells;
      candidate.presence = layer.presence();
      candidate.order = order;
      add(std::move(candidate));
    }
  }

  void add_part(ChunkKind kind, const std::string& role, const LayerParameters& layer) {
    Candidate candidate(kind, role);
    candidate.shape = layer.shape;
    candidate.presence = layer.presence();
    add(std::move(candidate));
  }

  void add_lstm(const ir::Operator& op) {
    const Result<LstmParameters> lstm = lstm_parameters_of(model_, model_.subgraphs[0], op);
    if (!lstm.ok()) return;
    for (const LstmLayer& gate : lstm->gates) add_part(ChunkKind::kLayer, gate.role, gate.layer);
    for (const auto* selections : {&lstm->before, &lstm->after}) {
      for (const SelectionMatrix& selection : *selections) {
        const Result<LayerParameters> layer = selection_layer(selection);
        if (layer.ok()) add_part(ChunkKind::kSelection, describe(selection), *layer);
      }
    }
    if (lstm->initial_output_bytes > 0 && static_cast<std::uint64_t>(lstm->initial_output_bytes) <= max_size_) {
      add(Candidate(ChunkKind::kConstant, std::string(kInitialOutput)));
    }
  }

  void add_padding(const ir::Operator& op) {
    const Result<SelectionMatrix> selection = channel_padding_of(model_, op);
    if (!selection.ok()) return;
    const Result<LayerParameters> layer = selection_layer(*selection);
    if (layer.ok()) add_part(ChunkKind::kSelection, "", *layer);
  }

  void add_softmax(const ir::Operator& op) {
    const Result<SoftmaxRows> softmax = softmax_rows_of(model_.subgraphs[0], op);
    if (!softmax.ok() || static_cast<std::size_t>(softmax->classes) > max_size_ / 16) return;
    add(Candidate(ChunkKind::kSoftmax));
    add(Candidate(ChunkKind::kSoftmax, std::string(kMaskRow)));
  }

  void add_constants(const ir::Operator& op) {
    if (channel_words_of(model_, model_.subgraphs[0], op).ok()) add(Candidate(ChunkKind::kChannelLines));
    // Only operators whose constant operand is data, not a list of dimensions, paddings or a table.
    if (is_one_of(op.type, {Op::ADD, Op::SUB, Op::MUL, Op::MAXIMUM, Op::MINIMUM, Op::CONCATENATION})) {
      add(Candidate(ChunkKind::kConstant));
    }
  }

  const ir::Model& model_;
  std::size_t max_size_;
  std::int32_t op_ = 0;
  std::uint64_t total_bytes_ = 0;
  std::vector<Candidate> candidates_;
};

}  // namespace

Result<std::vector<Candidate>> blob_candidates(const ir::Model& model, std::size_t max_size) {
  if (model.subgraphs.empty()) return std::vector<Candidate>();
  return Collector(model, max_size).collect();
}

Result<std::vector<std::uint8_t>> candidate_bytes(const ir::Model& model, const Candidate& candidate) {
  const ir::Subgraph& graph = model.subgraphs[0];
  switch (candidate.kind) {
    case ChunkKind::kLayer:
    case ChunkKind::kSelection: {
      REEF_ASSIGN_OR_RETURN(LayerParameters layer, layer_of(model, candidate));
      layer.shape.cells = candidate.shape.cells;
      return pack(layer);
    }
    case ChunkKind::kSoftmax: {
      REEF_ASSIGN_OR_RETURN(SoftmaxRows softmax, softmax_rows_of(graph, operator_of(model, candidate)));
      softmax.has_mask_row = candidate.role == kMaskRow;
      return pack_softmax_rows(softmax);
    }
    case ChunkKind::kChannelLines: {
      REEF_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> words,
                            channel_words_of(model, graph, operator_of(model, candidate)));
      return pack_channel_lines(words);
    }
    case ChunkKind::kConstant:
      return constant_bytes_of(model, candidate);
    case ChunkKind::kUnknown:
      break;
  }
  return internal_error("a candidate without a kind");
}

}  // namespace reef::darwinn
