// SPDX-License-Identifier: Apache-2.0
// Constant sizes stand in operator_sizes.def; what depends on shapes stands here, kernel by kernel.
#include "micro/operator_memory.h"

#include <algorithm>
#include <string_view>

#include "ir/op.h"
#include "ops/flex_options.h"

namespace reef::micro {
namespace {

using ir::DataType;
using ir::Tensor;

struct Sizes {
  std::string_view op;
  std::int64_t parameters[3], start[3];  // by Build
};
constexpr Sizes kSizes[] = {
#define MICRO_SIZES(op, p32, p64, pc, s32, s64, sc) {op, {p32, p64, pc}, {s32, s64, sc}},
#include "micro/operator_sizes.def"
#undef MICRO_SIZES
};
constexpr std::int64_t kInt = 4;

std::int64_t pointer_bytes(Build build) { return build == Build::kTflm64 ? 8 : 4; }
bool is_integer(DataType type) { return type == DataType::kInt8 || type == DataType::kInt16; }
std::int64_t dimension(const Tensor& tensor, int i) {
  return i < tensor.shape.rank() ? std::max(tensor.shape[i], 0) : 0;
}
std::int64_t bytes_of(const Tensor& tensor) {
  return elements_of(tensor) * std::max(ir::bits_per_element(tensor.type) / 8, 1);
}
// An array of integers with its length in front.
std::int64_t array_bytes(std::int64_t count) { return kInt * (1 + count); }

// Multipliers and shifts, one for each channel.
void keep_channels(std::int64_t channels, OperatorMemory& memory) {
  memory.at_prepare.push_back(channels * kInt);
  memory.at_prepare.push_back(channels * kInt);
}

// 4-bit weights are unpacked for each run.
void unpack_weights(const Tensor& weights, OperatorMemory& memory) {
  if (weights.type == DataType::kInt4) memory.scratch.push_back(elements_of(weights));
}

// ---- Convolutions ----

bool has_square(const OpView& view, std::string_view attribute, std::int64_t value) {
  const std::string name(attribute);
  return view.attributes().get_int(name + "_w", 1) == value && view.attributes().get_int(name + "_h", 1) == value;
}
bool is_dilated(const OpView& view) {
  return view.attributes().get_int("dilation_w_factor", 1) != 1 ||
         view.attributes().get_int("dilation_h_factor", 1) != 1;
}

// CMSIS-NN with the DSP instructions of a Cortex-M7: two columns of the input as 16-bit numbers.
std::int64_t cmsis_conv_scratch(const OpView& view) {
  const Tensor& input = *view.input(0);
  const Tensor& weights = *view.input(1);
  const std::int64_t channels = dimension(input, 3), height = dimension(weights, 1), width = dimension(weights, 2);
  const std::int64_t columns = 2 * channels * height * width * 2;
  if (input.type == DataType::kInt16) {
    return height * width * channels < 512 && !is_dilated(view) ? columns : 0;
  }
  if (input.type != DataType::kInt8) return 0;
  const bool is_pointwise =
      height == 1 && width == 1 && channels % 4 == 0 && has_square(view, "stride", 1) && !is_dilated(view);
  return is_pointwise ? 0 : columns;
}

void conv_memory(const OpView& view, Build build, OperatorMemory& memory) {
  if (view.input(0) == nullptr || view.input(1) == nullptr || view.output(0) == nullptr) return;
  if (build != Build::kCoral || is_integer(view.type())) keep_channels(dimension(*view.input(1), 0), memory);
  unpack_weights(*view.input(1), memory);
  if (build != Build::kCoral) return;
  if (const std::int64_t bytes = cmsis_conv_scratch(view); bytes > 0) memory.scratch.push_back(bytes);
}

void depthwise_memory(const OpView& view, Build build, OperatorMemory& memory) {
  if (view.input(0) == nullptr || view.input(1) == nullptr || view.output(0) == nullptr) return;
  const Tensor& weights = *view.input(1);
  if (build != Build::kCoral || is_integer(view.type())) keep_channels(dimension(weights, 3), memory);
  unpack_weights(weights, memory);
  if (build != Build::kCoral || view.type() != DataType::kInt8) return;
  const std::int64_t channels = dimension(*view.input(0), 3);
  if (channels != dimension(*view.output(0), 3) || dimension(*view.input(0), 0) != 1 || is_dilated(view)) return;
  memory.scratch.push_back(channels * dimension(weights, 1) * dimension(weights, 2) * 2);
}

void transpose_conv_memory(const OpView& view, Build, OperatorMemory& memory) {
  if (view.input(1) == nullptr || view.input(2) == nullptr || view.output(0) == nullptr) return;
  keep_channels(dimension(*view.input(1), 0), memory);
  const DataType type = view.input(2)->type;
  if (type == DataType::kInt8) memory.scratch.push_back(elements_of(*view.output(0)) * 4);
  if (type == DataType::kInt16) memory.scratch.push_back(elements_of(*view.output(0)) * 8);
  const Tensor* bias = view.input(3);
  if (type == DataType::kInt16 && bias != nullptr && bias->type == DataType::kInt16) {
    memory.scratch.push_back(elements_of(*bias) * 8);
  }
}

void dense_memory(const OpView& view, Build build, OperatorMemory& memory) {
  if (view.input(1) == nullptr || view.output(0) == nullptr) return;
  const Tensor& weights = *view.input(1);
  if (build == Build::kCoral) {
    // As a convolution with a window of one, where there are further dimensions.
    const bool is_pointwise =
        view.output(0)->shape.rank() > 2 && weights.shape.rank() > 0 && weights.shape.last() % 4 == 0;
    if (view.type() == DataType::kInt8 && is_pointwise) keep_channels(view.output(0)->shape.last(), memory);
    return;
  }
  if (weights.quantization.is_per_axis()) {
    keep_channels(static_cast<std::int64_t>(weights.quantization.scale.size()), memory);
  }
  unpack_weights(weights, memory);
}

void average_pool_memory(const OpView& view, Build build, OperatorMemory& memory) {
  if (build != Build::kCoral || view.type() != DataType::kInt8 || view.output(0) == nullptr) return;
  memory.scratch.push_back(dimension(*view.output(0), 3) * kInt);
}

void concatenation_memory(const OpView& view, Build build, OperatorMemory& memory) {
  if (build == Build::kCoral && view.type() == DataType::kInt8) {
    keep_channels(static_cast<std::int64_t>(view.op().inputs.size()), memory);  // scales and zero points
  }
}

// ---- Matrices, sums ----

constexpr std::int64_t eval_tensor_bytes(Build build) { return build == Build::kTflm64 ? 24 : 12; }

void keep_transposed(const Tensor& tensor, Build build, OperatorMemory& memory) {
  memory.at_prepare.push_back(eval_tensor_bytes(build));
  memory.at_prepare.push_back(array_bytes(tensor.shape.rank()));
  memory.at_prepare.push_back(bytes_of(tensor));
}

void batch_matmul_memory(const OpView& view, Build build, OperatorMemory& memory) {
  if (view.input(0) == nullptr || view.input(1) == nullptr || view.output(0) == nullptr) return;
  constexpr std::int64_t kQuantization = 28;
  if (is_integer(view.type())) memory.at_prepare.push_back(kQuantization);
  if (view.attributes().get_bool("adj_x")) keep_transposed(*view.input(0), build, memory);
  if (!view.attributes().get_bool("adj_y")) keep_transposed(*view.input(1), build, memory);
  memory.at_prepare.push_back(array_bytes(view.output(0)->shape.rank()));
}

void reduce_memory(const OpView& view, Build build, OperatorMemory& memory) {
  if (view.input(0) == nullptr || view.input(1) == nullptr || view.output(0) == nullptr) return;
  const bool is_sum = view.op().type == Op::MEAN || view.op().type == Op::SUM;
  if (is_sum && is_integer(view.type())) memory.scratch.push_back(kInt * elements_of(*view.output(0)));
  if (is_sum && build == Build::kCoral) return;
  memory.scratch.push_back(kInt * view.input(0)->shape.rank());
  memory.scratch.push_back(kInt * elements_of(*view.input(1)));
}

void add_n_memory(const OpView& view, Build build, OperatorMemory& memory) {
  constexpr std::int64_t kData = 48;
  if (view.type() == DataType::kInt8) memory.at_prepare.push_back(kData);
  memory.scratch.push_back(pointer_bytes(build) * static_cast<std::int64_t>(view.op().inputs.size()));
}

// ---- Others ----

void softmax_memory(const OpView& view, Build, OperatorMemory& memory) {
  if (view.type() != DataType::kInt16) return;
  constexpr std::int64_t kTable = 513 * 2;
  memory.at_prepare.push_back(kTable);
  memory.at_prepare.push_back(kTable);
}

// Coral's release keeps, for 8-bit numbers, zero points times weights of four gates from input and state.
void coral_lstm_memory(const OpView& view, std::int64_t cells, OperatorMemory& memory) {
  constexpr std::int64_t kGates = 4, kInt16 = 2;
  if (view.type() != DataType::kInt8) {
    memory.scratch.push_back(kGates * cells * kInt);
    return;
  }
  for (std::size_t i = 1; i <= 2 * kGates; ++i) {
    if (view.input(i) != nullptr) memory.at_prepare.push_back(dimension(*view.input(i), 0) * kInt);
  }
  for (int i = 0; i < kGates; ++i) memory.scratch.push_back(cells * kInt16);
  memory.scratch.push_back(cells);
}

void lstm_memory(const OpView& view, Build build, OperatorMemory& memory) {
  const Tensor* state = view.input(18);
  const Tensor* cell = view.input(19);
  if (state == nullptr || cell == nullptr) return;
  if (build == Build::kCoral) return coral_lstm_memory(view, elements_of(*cell), memory);
  const std::int64_t bytes = elements_of(*state) * std::max(ir::bits_per_element(cell->type) / 8, 1);
  for (int i = 0; i < 4; ++i) memory.scratch.push_back(bytes);
}

void svdf_memory(const OpView& view, Build, OperatorMemory& memory) {
  if (view.input(0) == nullptr || view.input(1) == nullptr) return;
  const std::int64_t batch = dimension(*view.input(0), 0), filters = dimension(*view.input(1), 0);
  memory.scratch.push_back(batch * filters * kInt);
  const std::int64_t rank = std::max<std::int64_t>(view.attributes().get_int("rank", 1), 1);
  if (view.type() == DataType::kInt8) memory.scratch.push_back(batch * filters / rank * kInt);
}

void mirror_pad_memory(const OpView& view, Build, OperatorMemory& memory) {
  if (view.input(0) == nullptr) return;
  for (int i = 0; i < 2; ++i) memory.scratch.push_back(kInt * view.input(0)->shape.rank());
}

std::int64_t option(const OpView& view, std::string_view name) {
  const auto options = ops::FlexOptions::parse(view.op().custom_options);
  if (!options.ok()) return 0;
  const auto value = options->get_int(name);
  return value.ok() ? std::max(*value, 0) : 0;
}

void detection_memory(const OpView& view, Build, OperatorMemory& memory) {
  if (view.input(0) == nullptr || view.input(1) == nullptr) return;
  const std::int64_t boxes = dimension(*view.input(0), 1),
                     scores = dimension(*view.input(1), 1) * dimension(*view.input(1), 2);
  const std::int64_t most = option(view, "max_detections");
  const std::int64_t classes = option(view, "num_classes");
  memory.scratch = {boxes,
                    boxes * 4 * kInt,
                    scores * kInt,
                    boxes * kInt,
                    boxes * kInt,
                    most * boxes * kInt,
                    most * boxes * kInt,
                    boxes * kInt,
                    most * boxes * kInt,
                    std::max(classes, most) * boxes * kInt,
                    std::min(boxes, most) * boxes * kInt};
}

// Coral's decoder keeps its fields as floats. (Its parameters are on the heap.)
void posenet_memory(const OpView& view, Build, OperatorMemory& memory) {
  for (std::size_t i = 0; i < view.op().inputs.size(); ++i) {
    if (view.input(i) != nullptr) memory.at_prepare.push_back(elements_of(*view.input(i)) * 4);
  }
}

// Kernels that give their result a shape of their own.
void reshaped_memory(const OpView& view, Build, OperatorMemory& memory) {
  if (view.output(0) != nullptr) memory.at_prepare.push_back(array_bytes(view.output(0)->shape.rank()));
}

void embedding_memory(const OpView& view, Build build, OperatorMemory& memory) {
  constexpr std::int64_t kData = 20;
  memory.at_prepare.push_back(kData);
  reshaped_memory(view, build, memory);
}

// Kernels that keep something for 8-bit numbers only.
void when_quantized(const OpView& view, Build build, OperatorMemory& memory) {
  const bool keeps = view.type() == DataType::kInt8;
  if (!keeps) return;
  constexpr std::int64_t kCumulativeSum = 40;
  const bool is_log_softmax = view.op().type == Op::LOG_SOFTMAX;
  memory.at_prepare.push_back(is_log_softmax ? 16 + 3 * pointer_bytes(build) : kCumulativeSum);
}

struct MemoryRule {
  Op op;
  void (*add)(const OpView&, Build, OperatorMemory&);
};
constexpr MemoryRule kMemoryRules[] = {
    {Op::ADD_N, add_n_memory},
    {Op::AVERAGE_POOL_2D, average_pool_memory},
    {Op::BATCH_MATMUL, batch_matmul_memory},
    {Op::CONCATENATION, concatenation_memory},
    {Op::CONV_2D, conv_memory},
    {Op::CUMSUM, when_quantized},
    {Op::DEPTHWISE_CONV_2D, depthwise_memory},
    {Op::DEPTH_TO_SPACE, reshaped_memory},
    {Op::EMBEDDING_LOOKUP, embedding_memory},
    {Op::FULLY_CONNECTED, dense_memory},
    {Op::GATHER, reshaped_memory},
    {Op::GATHER_ND, reshaped_memory},
    {Op::L2_POOL_2D, reshaped_memory},
    {Op::LOG_SOFTMAX, when_quantized},
    {Op::MEAN, reduce_memory},
    {Op::MIRROR_PAD, mirror_pad_memory},
    {Op::PosenetDecoderOp, posenet_memory},
    {Op::REDUCE_ALL, reduce_memory},
    {Op::REDUCE_MAX, reduce_memory},
    {Op::REDUCE_MIN, reduce_memory},
    {Op::SOFTMAX, softmax_memory},
    {Op::SPACE_TO_DEPTH, reshaped_memory},
    {Op::SUM, reduce_memory},
    {Op::SVDF, svdf_memory},
    {Op::TFLite_Detection_PostProcess, detection_memory},
    {Op::TRANSPOSE_CONV, transpose_conv_memory},
    {Op::UNIDIRECTIONAL_SEQUENCE_LSTM, lstm_memory},
};

}  // namespace

std::optional<OperatorMemory> operator_memory(const OpView& view, Build build) {
  const std::string_view op = view.op().type;
  const auto* sizes =
      std::find_if(std::begin(kSizes), std::end(kSizes), [&](const Sizes& row) { return row.op == op; });
  if (sizes == std::end(kSizes)) return std::nullopt;
  // The hybrid LSTM of Coral's release keeps a dozen buffers more, which nobody has compared.
  const bool is_hybrid = view.input(1) != nullptr && view.input(1)->type != view.type();
  if (build == Build::kCoral && op == Op::UNIDIRECTIONAL_SEQUENCE_LSTM && is_hybrid) return std::nullopt;
  OperatorMemory memory;
  memory.parameters = sizes->parameters[at(build)];
  memory.has_pointers = op == Op::FULLY_CONNECTED || op == Op::VAR_HANDLE;
  memory.at_start = sizes->start[at(build)];
  for (const MemoryRule& rule : kMemoryRules) {
    if (rule.op == op) rule.add(view, build, memory);
  }
  return memory;
}

}  // namespace reef::micro
