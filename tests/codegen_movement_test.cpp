// SPDX-License-Identifier: Apache-2.0
// Operators that move elements, several inputs and outputs: generated code on the virtual device against the chip
// reference, bit by bit, in several orders of execution; a part through the race finder.
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "chip_against_cpu.h"
#include "formats/tflite/reader.h"
#include "generated_code.h"
#include "lower/rearrangement_cache.h"
#include "quantized_model.h"
#include "trials.h"
#include "zoo.h"
#include "zoo_pairs.h"

namespace reef::testing {
namespace {

// Operators by their usual form.
class Movements {
 public:
  explicit Movements(QuantizedModel& model) : model_(model) {}

  std::int32_t like(std::int32_t x, ir::Shape shape) {
    const ir::Tensor& from = model_.tensor(x);
    return model_.computed(std::move(shape), {from.type, from.quantization.scale[0], from.quantization.zero_point[0]});
  }
  std::int32_t pad(std::int32_t x, const std::vector<std::int32_t>& amounts) {
    ir::Shape shape = model_.shape(x);
    for (int d = 0; d < shape.rank(); ++d) {
      shape[d] += amounts[static_cast<std::size_t>(2 * d)] + amounts[static_cast<std::size_t>(2 * d + 1)];
    }
    return model_.op("PAD", {x, model_.ints(amounts, {shape.rank(), 2})}, {like(x, shape)}, "PadOptions");
  }
  std::int32_t slice(std::int32_t x, const std::vector<std::int32_t>& begin, const ir::Shape& size) {
    return model_.op("SLICE", {x, model_.ints(begin), model_.ints(size.dims())}, {like(x, size)}, "SliceOptions");
  }
  std::int32_t strided_slice(std::int32_t x, const std::vector<std::int32_t>& begin,
                             const std::vector<std::int32_t>& end, const std::vector<std::int32_t>& strides) {
    ir::Shape shape = model_.shape(x);
    for (int d = 0; d < shape.rank(); ++d) {
      const auto i = static_cast<std::size_t>(d);
      shape[d] = (end[i] - begin[i] + strides[i] - 1) / strides[i];
    }
    return model_.op("STRIDED_SLICE", {x, model_.ints(begin), model_.ints(end), model_.ints(strides)}, {like(x, shape)},
                     "StridedSliceOptions");
  }
  std::vector<std::int32_t> split(std::int32_t x, int axis, int parts) {
    ir::Shape shape = model_.shape(x);
    shape[axis] /= parts;
    std::vector<std::int32_t> outputs;
    for (int i = 0; i < parts; ++i) outputs.push_back(like(x, shape));
    ir::Attributes a;
    a.set("num_splits", std::int64_t{parts});
    model_.op("SPLIT", {model_.ints({axis}, ir::Shape{}), x}, outputs, "SplitOptions", a);
    return outputs;
  }
  std::int32_t transpose_conv(std::int32_t x, int channels, int kernel_y, int kernel_x, int stride_y, int stride_x,
                              bool same, int more) {
    const ir::Shape in = model_.shape(x);
    const auto size = [&](int n, int kernel, int stride) {
      return same ? n * stride - std::min(more, stride - 1) : (n - 1) * stride + kernel + std::min(more, stride - 1);
    };
    const ir::Shape out{1, size(in[1], kernel_y, stride_y), size(in[2], kernel_x, stride_x), channels};
    const std::int32_t weights = model_.weights({channels, kernel_y, kernel_x, in[3]}, 0.01f);
    const ir::Tensor& from = model_.tensor(x);
    const std::int32_t result = model_.computed(out, {from.type, 0.3f, from.quantization.zero_point[0]});
    ir::Attributes a;
    a.set("padding", ir::EnumName{same ? "SAME" : "VALID"});
    a.set("stride_h", std::int64_t{stride_y});
    a.set("stride_w", std::int64_t{stride_x});
    a.set("fused_activation_function", ir::EnumName{"NONE"});
    return model_.op("TRANSPOSE_CONV", {model_.ints(out.dims()), weights, x}, {result}, "TransposeConvOptions", a, 3);
  }
  std::int32_t tile(std::int32_t x, const std::vector<std::int32_t>& times) {
    ir::Shape shape = model_.shape(x);
    for (int d = 0; d < shape.rank(); ++d) shape[d] *= times[static_cast<std::size_t>(d)];
    return model_.op("TILE", {x, model_.ints(times)}, {like(x, shape)}, "TileOptions");
  }
  std::int32_t space_to_depth(std::int32_t x, int block) {
    const ir::Shape s = model_.shape(x);
    ir::Attributes a;
    a.set("block_size", std::int64_t{block});
    return model_.op("SPACE_TO_DEPTH", {x}, {like(x, {1, s[1] / block, s[2] / block, s[3] * block * block})},
                     "SpaceToDepthOptions", a);
  }
  std::int32_t depth_to_space(std::int32_t x, int block) {
    const ir::Shape s = model_.shape(x);
    ir::Attributes a;
    a.set("block_size", std::int64_t{block});
    return model_.op("DEPTH_TO_SPACE", {x}, {like(x, {1, s[1] * block, s[2] * block, s[3] / block / block})},
                     "DepthToSpaceOptions", a);
  }

 private:
  QuantizedModel& model_;
};

void expect_exact(const ir::Model& model, unsigned seed = 1) {
  const auto package = compiler::generate_code(WholeModel(model).part(7));
  ASSERT_TRUE(package.ok()) << package.status().message() << "\n" << describe(model);
  const Status runs = runs_as_chip_reference(model, *package, seed);
  EXPECT_TRUE(runs.ok()) << runs.message() << "\n" << describe(model);
  const Status races = has_no_races(*package);
  EXPECT_TRUE(races.ok()) << races.message() << "\n" << describe(model);
}

TEST(CodegenMovement, SeveralInputs) {
  QuantizedModel model;
  const std::int32_t a = model.input({1, 8, 12, 8}, "a"), b = model.input({1, 9, 7, 3}, "b"),
                     c = model.input({1, 16, 16, 3}, "c");
  const std::int32_t from_b = model.conv(b, 8, 3), from_a = model.conv(a, 16, 3);
  expect_exact(model.finish({model.conv(from_b, 4), from_a, model.conv(c, 8, 3, 2), from_b}));
}

TEST(CodegenMovement, OutputsThatAreInputsOrViews) {
  QuantizedModel model;
  const std::int32_t x = model.input({1, 6, 10, 5});
  const std::int32_t view = model.computed({1, 6, 10, 5}, {ir::DataType::kUInt8, 0.05f, 128}, "view");
  model.op("QUANTIZE", {x}, {view}, "QuantizeOptions");
  expect_exact(model.finish({view}));
}

// Tensors that lie alike and other maps between them; a cache that knows the movements, and one that learns them.
TEST(CodegenMovement, PlansAreTheSameWhetherTheyWereKnown) {
  QuantizedModel model;
  const std::int32_t x = model.conv(model.input({1, 12, 12, 12}), 12, 3);
  std::vector<std::int32_t> results;
  for (int block = 0; block < 2; ++block) {
    for (const std::vector<std::int32_t>& order : {std::vector{0, 2, 1, 3}, {0, 3, 2, 1}, {0, 1, 3, 2}, {0, 3, 1, 2}}) {
      results.push_back(model.conv(model.transpose(results.empty() ? x : results.back(), order), 12));
    }
  }
  const ir::Model finished = model.finish({results.back()});
  const WholeModel whole(finished);
  const auto plain = compiler::generate_code(whole.part(7));
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  const auto bytes = whole.file(*plain);
  ASSERT_TRUE(bytes.ok());
  lower::RearrangementCache cache;
  for (int round = 0; round < 2; ++round) {
    compiler::PartProgram part = whole.part(7);
    part.movements = &cache;
    const auto package = compiler::generate_code(part);
    ASSERT_TRUE(package.ok()) << package.status().message();
    const auto other = whole.file(*package);
    ASSERT_TRUE(other.ok());
    EXPECT_TRUE(*bytes == *other) << round;
  }
  const Status runs = runs_as_chip_reference(finished, *plain, 1);
  EXPECT_TRUE(runs.ok()) << runs.message();
}

TEST(CodegenMovement, JoinedChannels) {
  QuantizedModel model;
  const std::int32_t x = model.input({1, 9, 14, 8});
  expect_exact(model.finish({model.concatenation({model.conv(x, 8, 3), x, model.conv(x, 68)}, 3)}));
}

TEST(CodegenMovement, JoinedChannelsThatAreNoWholeWords) {
  QuantizedModel model;
  const std::int32_t x = model.input({1, 8, 11, 3});
  const std::int32_t joined = model.concatenation({x, model.conv(x, 5, 3), model.conv(x, 1), x, model.conv(x, 7)}, 3);
  expect_exact(model.finish({model.conv(joined, 8, 3), joined}));
}

TEST(CodegenMovement, JoinedRowsAndColumns) {
  QuantizedModel model;
  const std::int32_t x = model.input({1, 9, 14, 8}), y = model.conv(x, 8, 3);
  const std::int32_t tall = model.concatenation({x, y, x}, 1);
  expect_exact(model.finish({model.concatenation({tall, tall}, 2), model.conv(tall, 4, 3)}));
}

TEST(CodegenMovement, JoinedWithOtherScales) {
  QuantizedModel model(Quantized{ir::DataType::kUInt8, 0.05f, 100});
  const std::int32_t x = model.input({1, 9, 6, 8});
  const std::int32_t y = model.conv(x, 6);
  model.tensor(y).quantization.scale = {0.031f};
  model.tensor(y).quantization.zero_point = {77};
  expect_exact(model.finish({model.concatenation({x, y}, 3)}));
}

TEST(CodegenMovement, PaddingThatIsReal) {
  QuantizedModel model;
  Movements move(model);
  const std::int32_t x = model.input({1, 6, 7, 6});
  expect_exact(model.finish({move.pad(x, {0, 0, 1, 2, 3, 0, 0, 0})}));
  for (const auto& amounts : std::vector<std::vector<std::int32_t>>{
           {0, 0, 31, 60, 17, 2, 0, 0}, {0, 0, 0, 0, 0, 0, 3, 7}, {0, 0, 1, 1, 1, 1, 2, 0}, {0, 0, 0, 0, 0, 0, 4, 4}}) {
    QuantizedModel far(Quantized{ir::DataType::kUInt8, 0.05f, 100});
    expect_exact(far.finish({Movements(far).pad(far.input({1, 2, 2, 3}), amounts)}));
  }
}

// A small image in a large one: most of the tiles that compute have no part of it.
TEST(CodegenMovement, PaddingFarBeyondAnImage) {
  QuantizedModel model;
  const std::int32_t x = model.input({1, 2, 2, 8});
  const std::int32_t padded = Movements(model).pad(x, {0, 0, 6, 8, 4, 10, 0, 0});
  expect_exact(model.finish({model.conv(padded, 8, 3), model.conv(padded, 4)}));
}

TEST(CodegenMovement, Parts) {
  QuantizedModel model;
  Movements move(model);
  const std::int32_t x = model.conv(model.input({1, 12, 15, 8}), 24, 3);
  const std::vector<std::int32_t> thirds = move.split(x, 3, 3), rows = move.split(x, 1, 4);
  std::vector<std::int32_t> outputs = {model.conv(thirds[1], 8, 3), thirds[2], rows[3], rows[0]};
  outputs.push_back(move.slice(x, {0, 3, 5, 6}, {1, 7, 9, 11}));
  outputs.push_back(move.strided_slice(x, {0, 1, 0, 3}, {1, 12, 15, 24}, {1, 2, 3, 5}));
  expect_exact(model.finish(outputs));
}

// x[:, 4], x[0, :, -2], x[..., 7]: dimensions that are dropped.
TEST(CodegenMovement, PartsOfFewerDimensions) {
  QuantizedModel model;
  const std::int32_t x = model.conv(model.input({1, 12, 15, 8}), 24, 3);
  const auto part = [&](const std::vector<std::int32_t>& begin, std::int64_t dropped, ir::Shape shape) {
    ir::Attributes attributes;
    attributes.set("begin_mask", 15 & ~dropped);
    attributes.set("end_mask", 15 & ~dropped);
    attributes.set("shrink_axis_mask", dropped);
    std::vector<std::int32_t> end;
    for (const std::int32_t first : begin) end.push_back(first + 1);
    return model.op("STRIDED_SLICE", {x, model.ints(begin), model.ints(end), model.ints({1, 1, 1, 1})},
                    {model.computed(std::move(shape), Quantized{})}, "StridedSliceOptions", attributes);
  };
  const std::int32_t row = part({0, 4, 0, 0}, 2, {1, 15, 24}), column = part({0, 0, -2, 0}, 5, {12, 24});
  const std::int32_t plane = part({0, 0, 0, 7}, 8, {1, 12, 15});
  const ir::Model finished = model.finish({row, column, plane});
  expect_exact(finished);
  const auto distance = distance_from_tflite(finished, 1);
  ASSERT_TRUE(distance.ok()) << distance.status().message();
  EXPECT_LE(*distance, 1);
}

TEST(CodegenMovement, OtherOrders) {
  QuantizedModel model;
  Movements move(model);
  const std::int32_t x = model.conv(model.input({1, 8, 12, 8}), 12, 3);
  expect_exact(model.finish({model.transpose(x, {0, 2, 1, 3}), model.transpose(x, {0, 3, 1, 2}),
                             model.transpose(x, {0, 2, 3, 1}), move.space_to_depth(x, 2), move.depth_to_space(x, 2),
                             move.tile(x, {1, 2, 1, 3}), model.resize("RESIZE_NEAREST_NEIGHBOR", x, 16, 24),
                             model.resize("RESIZE_NEAREST_NEIGHBOR", x, 21, 17)}));
}

// Operands of a concatenation that only it reads are written to their places; all of these are, so nothing is copied.
TEST(CodegenMovement, OperandsInTheirPlaces) {
  QuantizedModel model;
  const std::int32_t x = model.conv(model.input({1, 9, 14, 8}), 16, 3);
  const std::int32_t joined =
      model.concatenation({model.conv(x, 8, 3), model.depthwise(x, 3), model.max_pool(x, 3, 1), model.add(x, x)}, 3);
  const ir::Model network = model.finish({model.conv(joined, 8, 3)});
  expect_exact(network);
  const WholeModel whole(network);
  const auto part = compiler::generate_part(whole.part(7));
  ASSERT_TRUE(part.ok()) << part.status().message();
  for (const tiled::Step& step : part->program.steps) {
    if (const auto* copies = std::get_if<tiled::LocalCopies>(&step.work)) {
      for (const tiled::LocalCopy& copy : copies->first_round) {
        EXPECT_NE(copy.target, part->program.tensor(step.writes[0]).object) << "op " << step.op;
      }
    }
  }
}

TEST(CodegenMovement, TwiceTheSize) {
  for (const bool half : {false, true}) {
    for (const auto& [height, width] : std::vector<std::pair<int, int>>{{8, 8}, {5, 6}, {7, 13}, {4, 9}}) {
      QuantizedModel model;
      const std::int32_t x = model.conv(model.input({1, height, width, 8}), 20, 3);
      const std::int32_t y = model.conv(model.input({1, height, width, 3}, "other"), 7);
      const std::int32_t nearest = model.resize("RESIZE_NEAREST_NEIGHBOR", x, 2 * height, 2 * width, false, half);
      const std::int32_t bilinear = model.resize("RESIZE_BILINEAR", x, 2 * height, 2 * width, false, half);
      const std::int32_t alone = model.resize("RESIZE_BILINEAR", y, 2 * height, 2 * width, false, half);
      expect_exact(model.finish({nearest, model.conv(bilinear, 8, 3), alone, model.conv(x, 4, 3)}));
    }
  }
}

TEST(CodegenMovement, TransposedConvolutions) {
  struct Case {
    int height, width, kernel_y, kernel_x, stride_y, stride_x;
    bool same;
    int more;
  };
  for (const Case& c : std::vector<Case>{{8, 8, 3, 3, 2, 2, true, 0},
                                         {5, 7, 3, 3, 2, 2, true, 1},
                                         {6, 9, 2, 2, 2, 2, false, 0},
                                         {3, 4, 4, 4, 2, 2, true, 0},
                                         {1, 2, 5, 4, 3, 2, false, 1},
                                         {4, 5, 1, 2, 3, 4, true, 0},
                                         {7, 6, 9, 9, 3, 3, true, 0},
                                         {6, 6, 3, 3, 1, 1, true, 0}}) {
    QuantizedModel model;
    const std::int32_t x = model.input({1, c.height, c.width, 6});
    const std::int32_t y =
        Movements(model).transpose_conv(x, 10, c.kernel_y, c.kernel_x, c.stride_y, c.stride_x, c.same, c.more);
    expect_exact(model.finish({y, model.conv(y, 4, 3)}));
  }
}

// ---- Generated networks ----

class RandomMovements {
 public:
  explicit RandomMovements(unsigned seed) : random_(seed), move_(model_) {
    const bool is_int8 = likely(70);
    const int offset = is_int8 ? -128 : 0;
    type_ = is_int8 ? ir::DataType::kInt8 : ir::DataType::kUInt8;
    model_ = QuantizedModel(Quantized{type_, 0.05f, offset + among({0, 3, 100, 128, 255})});
  }

  ir::Model make() {
    const int inputs = among({1, 1, 1, 2, 3});
    for (int i = 0; i < inputs; ++i) {
      add(model_.input({1, between(1, 20), between(1, 24), among({1, 2, 3, 4, 5, 8, 12, 20, 67})},
                       "input" + std::to_string(i)));
    }
    const int steps = between(1, 5);
    for (int i = 0; i < steps; ++i) step();
    std::vector<std::int32_t> outputs = matrices_;
    for (const auto& [tensor, is_read] : tensors_) {
      if (!is_read) outputs.push_back(tensor);
    }
    std::shuffle(outputs.begin(), outputs.end(), random_);
    return model_.finish(outputs);
  }

 private:
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  int among(std::initializer_list<int> values) {
    return *(values.begin() + between(0, static_cast<int>(values.size()) - 1));
  }
  bool likely(int percent) { return between(0, 99) < percent; }
  void add(std::int32_t tensor) { tensors_[tensor] = false; }
  std::int32_t pick() {
    auto at = tensors_.begin();
    std::advance(at, between(0, static_cast<int>(tensors_.size()) - 1));
    at->second = true;
    return at->first;
  }

  void step() {
    const std::int32_t x = pick();
    const ir::Shape s = model_.shape(x);
    switch (between(0, 12)) {
      case 12:
        return reshape(x);
      case 0:
        return add(model_.conv(x, among({1, 3, 4, 8, 66}), among({1, 3, 5}), among({1, 2})));
      case 1:
        return join(x);
      case 2:
        return split(x);
      case 3:
        return slice(x);
      case 4:
        return add(move_.pad(x, {0, 0, between(0, 3), between(0, 9), between(0, 2), between(0, 12),
                                 likely(30) ? between(0, 9) : 0, likely(30) ? between(0, 9) : 0}));
      case 5:
        return add(move_.tile(x, {1, between(1, 2), between(1, 2), between(1, 2)}));
      case 6:
        if (s[1] % 2 == 0 && s[2] % 2 == 0) add(move_.space_to_depth(x, 2));
        return;
      case 7:
        if (s[3] % 4 == 0) add(move_.depth_to_space(x, 2));
        return;
      case 8:
        if (s.elements() > 20000) return;
        return add(model_.transpose(
            x, likely(50) ? std::vector<std::int32_t>{0, 2, 1, 3} : std::vector<std::int32_t>{0, 3, 1, 2}));
      case 9:
        return add(resize_nearest(x, between(0, 2)));
      case 10:
        if (s[1] < 4 || s[2] < 4 || s.elements() > 20000) return;
        return add(model_.resize(likely(50) ? "RESIZE_BILINEAR" : "RESIZE_NEAREST_NEIGHBOR", x, 2 * s[1], 2 * s[2],
                                 false, likely(50)));
      default:
        if (s.elements() > 10000) return;
        return add(move_.transpose_conv(x, among({1, 4, 9}), between(1, 5), between(1, 5), between(1, 3), between(1, 3),
                                        likely(50), between(0, 1)));
    }
  }

  // The same elements with other rows, columns and channels, any that divide their number.
  void reshape(std::int32_t x) {
    const auto elements = static_cast<int>(model_.shape(x).elements());
    const auto divisor = [&](int of, int most) {
      int result = between(1, most);
      while (of % result != 0) --result;
      return result;
    };
    const int channels = divisor(elements, 130), height = divisor(elements / channels, 20);
    const int width = elements / channels / height;
    if (likely(25)) {
      // Not an image: other operators do not read it.
      matrices_.push_back(model_.reshape(x, {1, height * width, channels}));
    } else if (width <= 60) {
      add(model_.reshape(x, {1, height, width, channels}));
    }
  }
  // Corners, half pixels, or neither: TFLite knows no both.
  std::int32_t resize_nearest(std::int32_t x, int how) {
    return model_.resize("RESIZE_NEAREST_NEIGHBOR", x, between(1, 30), between(1, 30), how == 1, how == 2);
  }
  void join(std::int32_t x) {
    const int axis = between(1, 3);
    std::vector<std::int32_t> parts = {x};
    for (const auto& [tensor, is_read] : tensors_) {
      ir::Shape shape = model_.shape(tensor), like = model_.shape(x);
      shape[axis] = like[axis] = 1;
      if (shape != like || !likely(70) || model_.shape(tensor).elements() > 20000) continue;
      parts.push_back(tensor);
      tensors_[tensor] = true;
    }
    std::shuffle(parts.begin(), parts.end(), random_);
    const std::int32_t joined = model_.concatenation(parts, axis);
    add(joined);
  }
  void split(std::int32_t x) {
    const int axis = between(1, 3), parts = between(2, 4);
    if (model_.shape(x)[axis] % parts != 0) return;
    for (const std::int32_t part : move_.split(x, axis, parts)) add(part);
  }
  void slice(std::int32_t x) {
    std::vector<std::int32_t> begin, end, strides;
    for (const std::int32_t size : model_.shape(x)) {
      begin.push_back(between(0, size - 1));
      end.push_back(between(begin.back() + 1, size));
      strides.push_back(likely(80) ? 1 : between(1, 3));
    }
    add(move_.strided_slice(x, begin, end, strides));
  }

  std::mt19937 random_;
  ir::DataType type_ = ir::DataType::kInt8;
  QuantizedModel model_;
  Movements move_;
  std::map<std::int32_t, bool> tensors_;  // whether something reads it
  std::vector<std::int32_t> matrices_;
};

TEST(CodegenMovement, RandomNetworksAreBitExact) {
  const auto [begin, end] = seeds_to_try(100);
  int ran = 0;
  std::map<std::string, int> refused;
  for (unsigned seed = begin; seed < end; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const ir::Model model = RandomMovements(seed).make();
    const auto package = compiler::generate_code(WholeModel(model).part(1 + seed));
    if (!package.ok()) {
      EXPECT_EQ(package.status().code(), StatusCode::kUnsupported) << package.status().message() << "\n"
                                                                   << describe(model);
      ++refused[package.status().message().substr(0, 110)];
      continue;
    }
    const device::Schedule schedule = schedule_of(seed);
    const Status status = runs_as_chip_reference(model, *package, seed, &schedule);
    EXPECT_TRUE(status.ok()) << status.message() << "\n" << describe(model);
    if (seed % 4 == 0) {
      const Status races = has_no_races(*package);
      EXPECT_TRUE(races.ok()) << races.message() << "\n" << describe(model);
    }
    if (seed % 4 == 1) {
      const Status audit = passes_audit(*package);
      EXPECT_TRUE(audit.ok()) << audit.message() << "\n" << describe(model);
    }
    ++ran;
  }
  std::printf("%d networks ran\n", ran);
  for (const auto& [reason, times] : refused) std::printf("%4d refused: %s\n", times, reason.c_str());
  EXPECT_GE(ran, static_cast<int>(end - begin) * 2 / 3);
}

// ---- Models of the collection ----

TEST(CodegenMovement, ModelsThatMoveAndPad) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  int ran = 0;
  for (const Pair& pair : pairs_of(zoo)) {
    const bool is_meant = pair.name.starts_with("op_model_padding") || pair.name.starts_with("op_model_stride") ||
                          pair.name.starts_with("split_concat");
    if (!is_meant) continue;
    SCOPED_TRACE(pair.name);
    const auto source = tflite::load_model(pair.source);
    ASSERT_TRUE(source.ok());
    const auto package = compiler::generate_code(WholeModel(*source).part(1));
    EXPECT_TRUE(package.ok()) << package.status().message();
    if (!package.ok()) continue;
    const Status runs = runs_as_chip_reference(*source, *package, 1);
    EXPECT_TRUE(runs.ok()) << runs.message();
    ++ran;
  }
  EXPECT_GE(ran, 17);
}

}  // namespace
}  // namespace reef::testing
