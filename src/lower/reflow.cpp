// SPDX-License-Identifier: Apache-2.0
// Images whose channels are whole words only move (tiled/reflow.h). Other pixels have padding behind them, which a
// layer of zeros and ones takes out: a 1x1 convolution over groups of up to 16 pixels, or, where one group is all, a
// fully connected layer.
//
// How it is known: the four networks of the collection that reshape images, row for row (emit/reflow.cpp). That groups
// are the largest divisor of the number of pixels up to 16 rests on two of them (9 and 4096 pixels of one channel).
#include <algorithm>

#include "formats/darwinn/parameters/selection_matrix.h"
#include "ir/op.h"
#include "lower/convolution.h"
#include "lower/shared_steps.h"

namespace reef::lower {
namespace {

using tiled::Reflow;
using tiled::ReflowStrips;
using tiled::Spread;

constexpr std::int32_t kMostGroup = 16;                      // pixels
constexpr std::int64_t kMostWords = (1 << 14) - 1;           // steps of one loop
constexpr std::int64_t kMostBytes = chip::kNarrowBytes / 2;  // of a tile, so that other things have room

Status finish_reflow(Builder& builder, tiled::Step& step) {
  auto work = std::get<Reflow>(step.work);
  auto& objects = builder.program().narrow;
  objects[at(work.strips)].bytes =
      ReflowStrips::of(builder.tensor(work.input), builder.tensor(work.output)).max_bytes();
  work.identity = builder.identity(step);
  step.work = work;
  return ok_status();
}

void add_reflow(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output) {
  Reflow work;
  work.input = input;
  work.output = output;
  work.strips = builder.new_narrow(0);
  work.relay = builder.new_narrow(std::int64_t{tiled::kReflowRelayWords} * kWord);
  builder.add_step(op, work, {Read{input}}, {output}, finish_reflow);
  builder.program().steps.back().narrow_used = {work.strips, work.relay};
}

// Whether everything that it takes fits; both tensors not cut yet, and without halos.
bool fits(TiledTensor input, TiledTensor output) {
  for (TiledTensor* tensor : {&input, &output}) {
    tensor->rows = tiled::AxisPartition::of(tensor->height, {});
    tensor->columns = tiled::AxisPartition::of(tensor->width, {});
  }
  const std::int64_t own = input.grid_bytes(), result = output.tile_bytes();
  const std::int64_t strips = ReflowStrips::of(input, output).max_bytes();
  return strips + own + result <= kMostBytes && std::max(own, result) / kWord <= kMostWords;
}

// A tensor of the same values as `like`, with memory of its own.
TiledTensor shaped(const TiledTensor& like, std::int32_t source, std::int32_t width, std::int32_t channels) {
  TiledTensor tensor;
  tensor.source = source;
  tensor.width = width;
  tensor.channels = channels;
  tensor.pitch = tensor.pixel_words() * kWord;
  tensor.zero_point = like.zero_point;
  tensor.scale = like.scale;
  return tensor;
}
TiledTensor vector_like(const TiledTensor& like, std::int32_t source, std::int32_t channels) {
  TiledTensor tensor = shaped(like, source, 1, channels);
  tensor.spread = Spread::kVector;
  tensor.run = tiled::vector_run(channels);
  return tensor;
}

// Of `pixels` pixels the `channels` that each has, without the padding up to `pitch`.
darwinn::SelectionMatrix without_padding(std::int32_t pixels, std::int32_t channels, std::int32_t pitch) {
  darwinn::SelectionMatrix selection;
  selection.input_channels = pixels * pitch;
  for (std::int32_t p = 0; p < pixels; ++p) {
    for (std::int32_t c = 0; c < channels; ++c) selection.sources.push_back(p * pitch + c);
  }
  selection.has_biases = true;
  return selection;
}

// The matrix as a CONV_2D of a model of its own.
Result<std::shared_ptr<const ir::Model>> convolution_model(const darwinn::SelectionMatrix& selection,
                                                           const ir::Tensor& values) {
  REEF_ASSIGN_OR_RETURN(const darwinn::LayerParameters layer, darwinn::selection_layer(selection));
  auto model = std::make_shared<ir::Model>();
  model->buffers.resize(3);
  model->buffers[1].data = Bytes(std::vector<std::uint8_t>(layer.weights));
  const auto outputs = static_cast<std::int32_t>(selection.sources.size());
  model->buffers[2].data = Bytes(std::vector<std::uint8_t>(sizeof(std::int32_t) * selection.sources.size()));
  ir::Subgraph& graph = model->subgraphs.emplace_back();
  const auto add = [&](const ir::Shape& shape, ir::DataType type, std::int32_t buffer) -> ir::Tensor& {
    ir::Tensor& tensor = graph.tensors.emplace_back();
    tensor.shape = shape;
    tensor.type = type;
    tensor.buffer = buffer;
    return tensor;
  };
  add({1, 1, 1, selection.input_channels}, values.type, 0).quantization = values.quantization;
  ir::Tensor& weights = add({outputs, 1, 1, selection.input_channels}, ir::DataType::kUInt8, 1);
  weights.quantization.scale = {1.0f};
  weights.quantization.zero_point = {0};
  ir::Tensor& biases = add({outputs}, ir::DataType::kInt32, 2);
  biases.quantization.scale = {values.quantization.scale[0]};
  biases.quantization.zero_point = {0};
  add({1, 1, 1, outputs}, values.type, 0).quantization = values.quantization;
  ir::Operator& op = graph.operators.emplace_back();
  op.type = name_of(Op::CONV_2D);
  op.inputs = {0, 1, 2};
  op.outputs = {3};
  op.attributes.set("padding", ir::EnumName{"VALID"});
  for (const char* name : {"stride_w", "stride_h", "dilation_w_factor", "dilation_h_factor"}) {
    op.attributes.set(name, std::int64_t{1});
  }
  op.attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  return std::shared_ptr<const ir::Model>(std::move(model));
}

// The image as groups of pixels in one row, each as one pixel of all their bytes.
struct Groups {
  std::int32_t pixels = 0, groups = 0;  // pixels of each
  static Groups of(std::int32_t all) {
    std::int32_t pixels = std::min(all, kMostGroup);
    while (all % pixels != 0) --pixels;
    return {pixels, all / pixels};
  }
};

Result<bool> reflow_and_pack(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t to) {
  const TiledTensor image = builder.tensor(input);
  const Groups groups = Groups::of(image.height * image.width);
  const std::int32_t packed = groups.pixels * image.channels, padded = groups.pixels * image.pitch;
  const ir::Tensor& values = builder.source(to);
  const darwinn::SelectionMatrix selection = without_padding(groups.pixels, image.channels, image.pitch);
  if (groups.groups == 1) {
    const TiledTensor loose = vector_like(image, to, padded);
    if (!fits(image, loose)) return false;
    const std::int32_t vector = builder.add_tensor(loose);
    add_reflow(builder, op, input, vector);
    const std::int32_t output = builder.add_tensor(vector_like(image, to, packed));
    REEF_ASSIGN_OR_RETURN(const darwinn::LayerParameters layer, darwinn::selection_layer(selection));
    add_selection(builder, op, vector, output, layer);
    builder.set_value(to, {output, {}});
    return true;
  }
  const TiledTensor loose = shaped(image, to, groups.groups, padded), tight = shaped(image, to, groups.groups, packed);
  const TiledTensor result = vector_like(image, to, groups.groups * packed);
  if (groups.pixels == 1 || packed % kWord != 0 || !fits(image, loose) || !fits(tight, result)) return false;
  REEF_ASSIGN_OR_RETURN(const auto model, convolution_model(selection, values));
  ConvolutionOf what;
  what.input = builder.add_tensor(loose);
  what.output = builder.add_tensor(tight);
  what.windows.y.outputs = 1;
  what.windows.x.outputs = groups.groups;
  what.source = {model, 0, true};
  add_reflow(builder, op, input, what.input);
  add_convolution(builder, op, what);
  const std::int32_t output = builder.add_tensor(result);
  add_reflow(builder, op, what.output, output);
  builder.set_value(to, {output, {}});
  return true;
}

}  // namespace

Result<bool> reflow_to_vector(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t to) {
  if (builder.level() != tiled::Level::kAsGoogle || builder.in_slice()) return false;
  const ir::Shape& shape = builder.source(to).shape;
  if (shape.rank() == 0 || shape.elements() != shape.last()) return false;
  REEF_ASSIGN_OR_RETURN(const std::int32_t input, builder.any_layout(from));
  const TiledTensor& image = builder.tensor(input);
  const std::int64_t pixels = std::int64_t{image.height} * image.width;
  if (image.spread != Spread::kGrid || pixels < 2 || image.is_part || image.pitch != image.pixel_words() * kWord) {
    return false;
  }
  if (image.channels % kWord != 0) return reflow_and_pack(builder, op, input, to);
  const TiledTensor result = vector_like(image, to, static_cast<std::int32_t>(pixels * image.channels));
  if (!fits(image, result)) return false;
  const std::int32_t output = builder.add_tensor(result);
  add_reflow(builder, op, input, output);
  builder.set_value(to, {output, {}});
  return true;
}

}  // namespace reef::lower
