// SPDX-License-Identifier: Apache-2.0
// No operator takes plain loops where networks spend time: every model of the collection and every source of the other
// compiled files runs once with its kernels noted (kernels/simd/trace.h), and so do operators of shapes, types and
// broadcasts that are known to have been slow. Whatever has no vector code must be in kJustified, with the reason.
//
// Which code runs is a property of the program, not of the machine's speed: nothing is timed here.
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "execute/cpu/interpreter.h"
#include "formats/tflite/reader.h"
#include "ir/verify.h"
#include "kernels/simd/targets.h"
#include "small_models.h"
#include "zoo.h"

namespace reef {
namespace {

using ir::DataType;
using testing::op;
using testing::tensor;

// Operators that may take plain loops, and why. "Not done" marks those that are known to take several times LiteRT's
// time (docs/performance.md): they are gaps, not decisions.
const std::map<std::string, std::string> kJustified = {
    {"SHAPE", "a few numbers"},
    {"PACK", "runs shorter than 16 bytes; longer ones are copied"},
    {"RANGE", "a few numbers"},
    {"FILL", "memset"},
    {"ARG_MAX", "rows that are not bytes: the chain of comparisons is the time"},
    {"ARG_MIN", "as ARG_MAX"},
    {"TOPK_V2", "a heap of few elements"},
    {"REVERSE_V2", "small tensors of recurrent layers"},
    {"GATHER", "runs of memcpy; short ones take 1.5 times LiteRT's time"},
    {"GATHER_ND", "runs of memcpy"},
    {"STRIDED_SLICE", "runs shorter than 16 bytes; longer ones are copied"},
    {"SLICE", "as STRIDED_SLICE"},
    {"CONCATENATION", "as STRIDED_SLICE"},
    {"SPLIT", "as STRIDED_SLICE"},
    {"SPLIT_V", "as STRIDED_SLICE"},
    {"UNPACK", "as STRIDED_SLICE"},
    {"PAD", "as STRIDED_SLICE"},
    {"PADV2", "as STRIDED_SLICE"},
    {"MIRROR_PAD", "as STRIDED_SLICE"},
    {"TRANSPOSE", "runs shorter than 16 bytes that are no matrix turned over"},
    {"SPACE_TO_DEPTH", "as STRIDED_SLICE"},
    {"DEPTH_TO_SPACE", "as STRIDED_SLICE"},
    {"SPACE_TO_BATCH_ND", "as STRIDED_SLICE"},
    {"BATCH_TO_SPACE_ND", "as STRIDED_SLICE"},
    {"TILE", "as STRIDED_SLICE"},
    {"BROADCAST_TO", "as STRIDED_SLICE"},
    {"RESIZE_NEAREST_NEIGHBOR", "pixels are copied; those of 3 channels take 1.6 times LiteRT's time"},
    {"CUMSUM", "each sum waits for the one before"},
    {"SOFTMAX", "not done: rows of fewer than 16 elements (3 times LiteRT's time with 2), and int16"},
    {"LOG_SOFTMAX", "the last operator of classifiers"},
    {"L2_NORMALIZATION", "the last operator of embeddings"},
    {"LOCAL_RESPONSE_NORMALIZATION", "networks of 2012"},
    {"LOGISTIC", "not done: int16, a table with interpolation, twice LiteRT's time"},
    {"TANH", "as LOGISTIC"},
    {"L2_POOL_2D", "no network of the collection has it"},
    {"SVDF", "its products are AVX2's; what is left is short"},
    {"LSTM", "as SVDF"},
    {"UNIDIRECTIONAL_SEQUENCE_LSTM", "as SVDF"},
    {"BIDIRECTIONAL_SEQUENCE_LSTM", "as SVDF"},
    {"UNIDIRECTIONAL_SEQUENCE_RNN", "as SVDF"},
    {"RNN", "as SVDF"},
    {"QUANTIZE", "from int16 or int32: no network converts large ones"},
    {"CAST", "types that are not float, uint8, int8 or int32"},
    {"EMBEDDING_LOOKUP", "runs of memcpy"},
    {"ONE_HOT", "a few numbers"},
    {"SPARSE_TO_DENSE", "a few numbers"},
    {"SCATTER_ND", "runs of memcpy"},
    {"SEGMENT_SUM", "a few numbers"},
    {"WHERE", "counts"},
    {"UNIQUE", "a hash table"},
    {"POW", "the C library's"},
    {"ATAN2", "the C library's"},
    {"DETECTION_POSTPROCESS", "sorting and boxes"},
    {"TFLite_Detection_PostProcess", "sorting and boxes"},
    {"NON_MAX_SUPPRESSION_V4", "sorting and boxes"},
    {"NON_MAX_SUPPRESSION_V5", "sorting and boxes"},
    {"PosenetDecoderOp", "a search among few candidates"},
    {"TRANSPOSE_CONV", "float activations by int8 weights: the reference scales every product by itself"},
    {"RESHAPE", "a copy, where the shape is known late"},
    {"RFFT2D", "a transform of short frames"},
};

// Control flow and variables run other operators or hand memory over.
const std::set<std::string> kNoArithmetic = {
    "IF",   "WHILE",      "CALL_ONCE", "VAR_HANDLE",     "READ_VARIABLE", "SQUEEZE", "EXPAND_DIMS", "ASSIGN_VARIABLE",
    "RANK", "ZEROS_LIKE", "DENSIFY",   "BROADCAST_ARGS", "RESHAPE"};

// Operators of a model that took plain loops on tensors of some size.
Result<std::set<std::string>> plain_operators(const std::shared_ptr<const ir::Model>& model) {
  constexpr double kFewBytes = 4096;  // less is over in a microsecond
  std::set<std::string> found;
  cpu::InterpreterOptions options;
  options.profile = true;
  REEF_ASSIGN_OR_RETURN(const auto interpreter, cpu::Interpreter::create(model, options));
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  REEF_RETURN_IF_ERROR(interpreter->invoke());
  for (const cpu::OpTiming& timing : interpreter->timings()) {
    if (timing.kernel == "plain" && timing.bytes > kFewBytes) found.insert(timing.type);
  }
  return found;
}

// Whether the model ran: compiled ones and some that are broken on purpose do not.
bool expect_justified(const std::string& where, const std::shared_ptr<const ir::Model>& model) {
  const auto plain = plain_operators(model);
  if (!plain.ok()) return false;
  for (const std::string& type : *plain) {
    if (kNoArithmetic.count(type) != 0 || type.starts_with("Signal")) continue;
    EXPECT_TRUE(kJustified.count(type) != 0) << where << ": " << type << " takes plain loops";
  }
  return true;
}

#define REEF_SKIP_WITHOUT_VECTORS()                                 \
  if (kernels::active_target() == kernels::SimdTarget::kBaseline || \
      kernels::active_target() == kernels::SimdTarget::kSse4)       \
  GTEST_SKIP() << "the kernels that are looked for need AVX2 or NEON, which this CPU lacks or REEF_SIMD switches off"

void walk(const std::string& folder) {
  int ran = 0;
  constexpr std::uintmax_t kLargest = 12 << 20;  // bytes: larger ones have the same operators and take long
  for (const std::string& file : testing::tflite_files(folder)) {
    if (file.find("compiled_edgetpu") != std::string::npos || std::filesystem::file_size(file) > kLargest) continue;
    auto model = tflite::load_model(file);
    if (model.ok()) ran += expect_justified(file, std::make_shared<const ir::Model>(std::move(*model)));
  }
  EXPECT_GT(ran, 10);
}

TEST(SlowPaths, TheCollectionTakesNone) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  REEF_SKIP_WITHOUT_VECTORS();
  walk(zoo);
}

TEST(SlowPaths, SourcesOfOtherCompiledFilesTakeNone) {
  REEF_SKIP_WITHOUT_WILD(wild);
  REEF_SKIP_WITHOUT_VECTORS();
  walk(wild);
}

struct Layer {
  const char* type;
  DataType data_type;
  std::vector<ir::Shape> inputs;
  ir::Shape output;
};

// One operator; inputs from the second on are constants of zeros where there are weights.
std::shared_ptr<const ir::Model> model_of(const Layer& layer) {
  ir::Model model;
  model.buffers.resize(1);
  ir::Subgraph graph;
  const auto add = [&](DataType type, const ir::Shape& shape, float scale) {
    graph.tensors.push_back(tensor(type, shape));
    if (type == DataType::kInt8 || type == DataType::kUInt8) {
      graph.tensors.back().quantization.scale = {scale};
      graph.tensors.back().quantization.zero_point = {type == DataType::kUInt8 ? 128 : 0};
    }
    return static_cast<std::int32_t>(graph.tensors.size()) - 1;
  };
  ir::Operator made = op(layer.type, {}, {});
  for (const ir::Shape& shape : layer.inputs) made.inputs.push_back(add(layer.data_type, shape, 0.031f));
  graph.inputs = made.inputs;
  if (std::string_view(layer.type).find("CONV") != std::string_view::npos) {
    graph.inputs.resize(1);
    const auto weights = static_cast<std::size_t>(made.inputs[1]);
    graph.tensors[weights].buffer = static_cast<std::int32_t>(model.buffers.size());
    const std::vector<std::uint8_t> values(static_cast<std::size_t>(*ir::byte_size(layer.inputs[1], layer.data_type)),
                                           1);
    model.buffers.emplace_back().data = Bytes::copy_of(values);
    made.attributes.set("padding", ir::EnumName{"SAME"});
    for (const char* name : {"stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor"})
      made.attributes.set(name, std::int64_t{1});
  }
  if (std::string_view(layer.type).ends_with("_POOL_2D")) {
    made.attributes.set("padding", ir::EnumName{"SAME"});
    for (const char* name : {"stride_h", "stride_w", "filter_height", "filter_width"})
      made.attributes.set(name, std::int64_t{2});
  }
  if (std::string_view(layer.type).starts_with("RESIZE") || std::string_view(layer.type) == "MEAN") {
    const std::vector<std::int32_t> numbers = std::string_view(layer.type) == "MEAN"
                                                  ? std::vector<std::int32_t>{1, 2}
                                                  : std::vector<std::int32_t>{layer.output[1], layer.output[2]};
    made.inputs.push_back(add(DataType::kInt32, {2}, 1.0f));
    graph.tensors.back().buffer = static_cast<std::int32_t>(model.buffers.size());
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(numbers.data());
    model.buffers.emplace_back().data = Bytes::copy_of(std::span(bytes, numbers.size() * sizeof(std::int32_t)));
    made.attributes.set("keep_dims", true);
  }
  // Factors above 1 were the slowest of all. The curves have scales of their own.
  const std::string_view type = layer.type;
  made.outputs = {add(layer.data_type, layer.output,
                      type == "TANH"       ? 1.0f / 128
                      : type == "LOGISTIC" ? 1.0f / 256
                                           : 0.0009f)};
  if (type == "LOGISTIC" && layer.data_type != DataType::kFloat32)
    graph.tensors.back().quantization.zero_point = {layer.data_type == DataType::kInt8 ? -128 : 0};
  graph.outputs = made.outputs;
  graph.operators.push_back(std::move(made));
  model.subgraphs.push_back(std::move(graph));
  EXPECT_TRUE(ir::verify(model).ok()) << layer.type;
  return std::make_shared<const ir::Model>(std::move(model));
}

TEST(SlowPaths, LayersThatWereSlowTakeNone) {
  REEF_SKIP_WITHOUT_VECTORS();
  const ir::Shape image{1, 24, 24, 24}, channels{24}, pixels{1, 24, 24, 1}, one{1}, rgb{1, 64, 64, 3}, mean{1, 1, 1, 3};
  for (const DataType type : {DataType::kInt8, DataType::kUInt8, DataType::kFloat32}) {
    std::vector<Layer> layers;
    for (const char* name : {"ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"}) {
      for (const ir::Shape& other : {image, channels, pixels, one})
        layers.push_back({name, type, {image, other}, image});
      layers.push_back({name, type, {rgb, mean}, rgb});
      layers.push_back({name, type, {mean, rgb}, rgb});
    }
    for (const ir::Shape& other : {image, channels, one}) layers.push_back({"PRELU", type, {image, other}, image});
    layers.push_back({"DEPTHWISE_CONV_2D", type, {image, {1, 3, 3, 24}}, image});
    layers.push_back({"DEPTHWISE_CONV_2D", type, {image, {1, 5, 5, 48}}, {1, 24, 24, 48}});
    layers.push_back({"DEPTHWISE_CONV_2D", type, {pixels, {1, 3, 3, 8}}, {1, 24, 24, 8}});
    layers.push_back({"CONV_2D", type, {image, {16, 3, 3, 24}}, {1, 24, 24, 16}});
    for (const char* name : {"MAX_POOL_2D", "AVERAGE_POOL_2D"}) {
      layers.push_back({name, type, {rgb}, {1, 32, 32, 3}});
      layers.push_back({name, type, {image}, {1, 12, 12, 24}});
    }
    for (const ir::Shape& shape : {rgb, image}) {
      layers.push_back({"RESIZE_BILINEAR", type, {shape}, {1, 2 * shape[1], 2 * shape[2], shape[3]}});
      layers.push_back({"MEAN", type, {shape}, {1, 1, 1, shape[3]}});
    }
    for (const char* name : {"RELU", "RELU6", "HARD_SWISH", "LOGISTIC", "TANH"})
      layers.push_back({name, type, {{1, 24, 24, 24}}, image});
    for (const Layer& layer : layers) {
      const auto plain = plain_operators(model_of(layer));
      ASSERT_TRUE(plain.ok()) << layer.type << ": " << plain.status().message();
      EXPECT_TRUE(plain->empty()) << layer.type << " of " << ir::type_name(type) << ", second operand "
                                  << (layer.inputs.size() > 1 ? layer.inputs[1].to_string() : "none");
    }
  }
}

}  // namespace
}  // namespace reef
