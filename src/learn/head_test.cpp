// SPDX-License-Identifier: Apache-2.0
// Heads: found, taken off, put back; written ones against the definition, and what training later changes in them.
#include "learn/head.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "learn/engine.h"
#include "learn/head_runner.h"
#include "learn/imprinting_head.h"
#include "learn/metadata.h"
#include "learn/softmax_head.h"
#include "learn/softmax_regression.h"
#include "learn/vector_math.h"
#include "quantized_model.h"

namespace reef::learn {
namespace {

using ir::DataType;
using testing::Quantized;
using testing::QuantizedModel;

// Rows of a network that ends in RELU, in steps of the tensor's scale, around one centre per class.
Embeddings sample_rows(const ir::Tensor& tensor, int classes, int per_class, unsigned seed) {
  Embeddings rows;
  rows.dimension = tensor.shape.last();
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> centres;
  for (int c = 0; c < classes; ++c) {
    std::vector<float>& centre = centres.emplace_back();
    std::mt19937 own(1000 + static_cast<unsigned>(c));
    for (int i = 0; i < rows.dimension; ++i) centre.push_back(std::abs(normal(own)));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(rows.dimension) *
                               (tensor.type == DataType::kFloat32 ? sizeof(float) : 1));
  for (int i = 0; i < classes * per_class; ++i) {
    std::vector<float> row = centres[at(i % classes)];
    for (float& value : row) value = std::max(0.0f, value + 0.5f * normal(random));
    EXPECT_TRUE(store_values(tensor, row, bytes).ok());
    rows.add(real_values(tensor, bytes).value(), i % classes);
  }
  return rows;
}

ir::Tensor embedding_tensor(DataType type, ir::Shape shape) {
  ir::Tensor tensor;
  tensor.name = "embedding";
  tensor.type = type;
  tensor.shape = std::move(shape);
  if (type != DataType::kFloat32) {
    tensor.quantization.scale = {0.02f};
    tensor.quantization.zero_point = {type == DataType::kInt8 ? -128 : 0};
    tensor.has_quantization = true;
  }
  return tensor;
}

Imprinting imprinted(const Embeddings& rows, std::vector<ImprintedClass> kept = {}) {
  Imprinting imprinting(rows.dimension, std::move(kept));
  for (std::int32_t c = 0; c < 100; ++c) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows.labels[i] != c) continue;
      EXPECT_TRUE(imprinting.train(rows.row(i), c).ok());
    }
  }
  return imprinting;
}

ir::Model through_file(const ir::Model& model) {
  const auto file = tflite::write_model(model);
  EXPECT_TRUE(file.ok()) << file.status().message();
  auto read = tflite::read_model(Bytes(*file));
  EXPECT_TRUE(read.ok());
  return std::move(*read);
}

class HeadsOfAllTypes : public ::testing::TestWithParam<std::pair<DataType, ir::Shape>> {};
INSTANTIATE_TEST_SUITE_P(Heads, HeadsOfAllTypes,
                         ::testing::Values(std::pair(DataType::kInt8, ir::Shape({1, 64})),
                                           std::pair(DataType::kUInt8, ir::Shape({1, 1, 1, 64})),
                                           std::pair(DataType::kInt8, ir::Shape({1, 1, 1, 257})),
                                           std::pair(DataType::kUInt8, ir::Shape({1, 1024})),
                                           std::pair(DataType::kFloat32, ir::Shape({1, 64}))));

TEST_P(HeadsOfAllTypes, ImprintedHeadsDecideByTheLargestCosine) {
  const ir::Tensor tensor = embedding_tensor(GetParam().first, GetParam().second);
  const Embeddings rows = sample_rows(tensor, 5, 8, 1), others = sample_rows(tensor, 5, 20, 2);
  const Imprinting imprinting = imprinted(rows);
  const auto made = imprinting_head(tensor, false, imprinting.classes(), rows, {});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE(made->notes.empty());
  const auto scores = run_head(through_file(made->model), others);
  ASSERT_TRUE(scores.ok()) << scores.status().message();
  for (std::size_t i = 0; i < others.size(); ++i) {
    const std::vector<float> row = normalized(others.row(i));
    std::vector<double> expected;
    double sum = 0;
    for (const ImprintedClass& each : imprinting.classes()) {
      sum += expected.emplace_back(std::exp(made->state.factor * dot(each.weights(), row)));
    }
    for (std::size_t c = 0; c < expected.size(); ++c) EXPECT_NEAR((*scores)[i][c], expected[c] / sum, 0.1);
  }
}

TEST_P(HeadsOfAllTypes, SoftmaxHeadsComputeTheLayerThatWasTrained) {
  const ir::Tensor tensor = embedding_tensor(GetParam().first, GetParam().second);
  const Embeddings rows = sample_rows(tensor, 4, 10, 3);
  SoftmaxOptions options;
  options.l2 = 1e-3;
  const auto trained = train_softmax(rows, 4, options);
  ASSERT_TRUE(trained.ok());
  const auto head = softmax_head(tensor, trained->classifier, {"a", "b", "c", "d"}, rows);
  ASSERT_TRUE(head.ok()) << head.status().message();
  const auto scores = run_head(through_file(*head), rows);
  ASSERT_TRUE(scores.ok()) << scores.status().message();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::vector<float> logits = trained->classifier.scores(rows.row(i));
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit);
    for (std::size_t c = 0; c < 4; ++c) EXPECT_NEAR((*scores)[i][c], std::exp(logits[c]) / sum, 0.08);
  }
}

// A whole model: something that gives an embedding, and the head.
ir::Model joined_with(const ir::Model& head, const ir::Tensor& tensor) {
  QuantizedModel base({tensor.type, tensor.quantization.scale[0], tensor.quantization.zero_point[0]});
  const std::int32_t x = base.input(tensor.shape);
  const std::int32_t y = base.reshape(x, tensor.shape);
  auto model = join(base.finish({y}), head);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return through_file(*model);
}

std::vector<std::uint8_t> layer_bytes(const ir::Model& model) {
  const Head head = find_head(model).value();
  EXPECT_EQ(head.kind, HeadKind::kImprinting);
  const ir::Operator& layer = model.subgraphs[0].operators[at(head.layer)];
  const Bytes& bytes = ir::constant_data(model, model.subgraphs[0].tensors[at(layer.inputs[1])]);
  return {bytes.data(), bytes.data() + bytes.size()};
}

class ImprintedLater : public ::testing::TestWithParam<DataType> {};
INSTANTIATE_TEST_SUITE_P(Heads, ImprintedLater, ::testing::Values(DataType::kInt8, DataType::kUInt8));

TEST_P(ImprintedLater, AClassAddedLaterChangesNoBitOfEarlierOnes) {
  const ir::Tensor tensor = embedding_tensor(GetParam(), ir::Shape({1, 1, 1, 64}));
  const Embeddings rows = sample_rows(tensor, 3, 8, 1);
  const auto first = imprinting_head(tensor, false, imprinted(rows).classes(), rows, {});
  ASSERT_TRUE(first.ok());
  const ir::Model before = joined_with(first->model, tensor);
  auto read = read_classes(before, find_head(before).value());
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->classes.size(), 3u);
  EXPECT_TRUE(read->classes[0].is_trainable);
  EXPECT_EQ(read->classes[0].images, 8);

  Embeddings more = sample_rows(tensor, 5, 6, 9);
  Embeddings added;
  added.dimension = more.dimension;
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (more.labels[i] >= 3) added.add(more.row(i), more.labels[i]);
  }
  const Imprinting grown = imprinted(added, read->classes);
  ASSERT_EQ(grown.classes().size(), 5u);
  const auto second = imprinting_head(tensor, false, grown.classes(), added, read->state);
  ASSERT_TRUE(second.ok());
  const ir::Model after = joined_with(second->model, tensor);
  const std::vector<std::uint8_t> old_bytes = layer_bytes(before), new_bytes = layer_bytes(after);
  ASSERT_EQ(old_bytes.size(), 3u * 64);
  ASSERT_EQ(new_bytes.size(), 5u * 64);
  EXPECT_TRUE(std::equal(old_bytes.begin(), old_bytes.end(), new_bytes.begin()));
  // And they still mean the same.
  const auto scores = run_head(second->model, rows);
  ASSERT_TRUE(scores.ok());
  int right = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) right += index_of_largest((*scores)[i]) == rows.labels[i];
  EXPECT_EQ(right, 24);
}

TEST_P(ImprintedLater, ResumingGivesTheWeightsOfTrainingAtOnce) {
  const ir::Tensor tensor = embedding_tensor(GetParam(), ir::Shape({1, 1, 1, 64}));
  const Embeddings rows = sample_rows(tensor, 3, 10, 1);
  Embeddings half[2];
  half[0].dimension = half[1].dimension = rows.dimension;
  for (std::size_t i = 0; i < rows.size(); ++i) half[i % 2].add(rows.row(i), rows.labels[i]);
  const auto first = imprinting_head(tensor, false, imprinted(half[0]).classes(), half[0], {});
  ASSERT_TRUE(first.ok());
  const ir::Model before = joined_with(first->model, tensor);
  auto read = read_classes(before, find_head(before).value());
  ASSERT_TRUE(read.ok());
  const auto resumed = imprinting_head(tensor, false, imprinted(half[1], read->classes).classes(), rows, read->state);
  const auto at_once = imprinting_head(tensor, false, imprinted(rows).classes(), rows, read->state);
  ASSERT_TRUE(resumed.ok() && at_once.ok());
  const std::vector<std::uint8_t> a = layer_bytes(joined_with(resumed->model, tensor));
  const std::vector<std::uint8_t> b = layer_bytes(joined_with(at_once->model, tensor));
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_LE(std::abs(static_cast<std::int8_t>(a[i] - b[i])), 1) << "weight " << i;
  }
}

TEST(ImprintingMetadata, IsCoralsDescriptionAndMore) {
  const ir::Tensor tensor = embedding_tensor(DataType::kUInt8, ir::Shape({1, 1, 1, 16}));
  const Embeddings rows = sample_rows(tensor, 2, 4, 1);
  Imprinting imprinting = imprinted(rows);
  imprinting.classes()[0].name = "crab";
  const auto head = imprinting_head(tensor, false, imprinting.classes(), rows, {});
  ASSERT_TRUE(head.ok());
  const auto lengths = parse_description(head->model.description);
  ASSERT_EQ(lengths.size(), 2u);
  EXPECT_NEAR(lengths.at(0), imprinting.classes()[0].sum_length(), 1e-5);
  EXPECT_EQ(stored_learning(head->model).value()->classes[0].name, "crab");
  // A model of Coral's has the description alone.
  ir::Model corals = head->model;
  corals.metadata.clear();
  EXPECT_TRUE(stored_learning(corals).value()->classes[1].sum_length.has_value());
  EXPECT_TRUE(parse_description("MLIR Converted.").empty());
  EXPECT_TRUE(parse_description("0 1.5\n1 x\n").empty());
  EXPECT_TRUE(parse_description("0 1.5\n1").empty());
}

// Coral's own tests demand this of its engine.
TEST(ImprintingEngine, KeepsAndDropsAndRefusesAsCorals) {
  const ir::Tensor tensor = embedding_tensor(DataType::kUInt8, ir::Shape({1, 1, 1, 32}));
  const Embeddings rows = sample_rows(tensor, 3, 2, 1);
  QuantizedModel base({DataType::kUInt8, 0.02f, 0});
  const std::int32_t x = base.input({1, 1, 1, 32});
  const ir::Model extractor = base.finish({base.reshape(x, {1, 1, 1, 32})});
  auto engine = ImprintingEngine::create(extractor, false);
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  EXPECT_EQ(engine->dimension(), 32);
  EXPECT_EQ(engine->classes(), 0);
  EXPECT_FALSE(engine->model().ok()) << "not trained";
  EXPECT_FALSE(engine->train(rows.row(0), 2).ok()) << "the class index of a new category is too large";
  for (const std::size_t i : {0u, 1u}) ASSERT_TRUE(engine->train(rows.row(i), static_cast<int>(i)).ok());
  engine->set_name(1, "hotdog");
  const auto model = engine->model();
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(ImprintingEngine::create(*model, false)->classes(), 0);
  auto kept = ImprintingEngine::create(through_file(*model), true);
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  EXPECT_EQ(kept->classes(), 2);
  EXPECT_EQ(kept->state()[1].name, "hotdog");
  ASSERT_TRUE(kept->train(rows.row(4), 1).ok());
  ASSERT_TRUE(kept->train(rows.row(2), 2).ok());
  ASSERT_TRUE(kept->model().ok());
  const auto scores = run_head(kept->made_head()->model, rows);
  ASSERT_TRUE(scores.ok());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(index_of_largest((*scores)[i]), rows.labels[i]);
  EXPECT_FALSE(ImprintingEngine::create(extractor, true).ok()) << "nothing to keep";
}

TEST(FindHead, CoralsFormWithAndWithoutQuantize) {
  for (const bool has_quantize : {false, true}) {
    QuantizedModel base({DataType::kUInt8, 1.0f / 128, 128});
    std::int32_t x = base.conv(base.input({1, 1, 1, 16}), 32);
    const std::int32_t embedding = x;
    x = base.unary("L2_NORMALIZATION", x, "L2NormOptions");
    if (has_quantize) x = base.quantize(x, {DataType::kUInt8, 1.0f / 100, 100});
    x = base.conv(x, 10);
    x = base.mul(x, base.constant_bytes({200}, {1}, DataType::kUInt8));
    x = base.reshape(x, {1, 10});
    const ir::Model model = base.finish({base.softmax(x)});
    const auto head = find_head(model);
    ASSERT_TRUE(head.ok()) << head.status().message();
    EXPECT_EQ(head->kind, HeadKind::kImprinting);
    EXPECT_EQ(head->embedding, embedding);
    EXPECT_EQ(head->classes, 10);
    EXPECT_TRUE(head->reads_normalized);
    EXPECT_FALSE(head->is_normalized);
    EXPECT_TRUE(split(model, *head).ok());
  }
}

TEST(FindHead, SaysWhatIsMissing) {
  QuantizedModel two;
  const std::int32_t x = two.input({1, 8});
  const std::int32_t a = two.fully_connected(x, 4), b = two.fully_connected(x, 3);
  const auto outputs = find_head(two.finish({a, b}));
  ASSERT_FALSE(outputs.ok());
  EXPECT_NE(outputs.status().message().find("2 outputs"), std::string::npos);

  QuantizedModel bare;
  const auto no_layer = find_head(bare.finish({bare.softmax(bare.input({1, 8}))}));
  ASSERT_FALSE(no_layer.ok());
  EXPECT_NE(no_layer.status().message().find("SOFTMAX"), std::string::npos);

  QuantizedModel wide;
  const auto map = find_head(wide.finish({wide.conv(wide.input({1, 4, 4, 8}), 16)}));
  ASSERT_FALSE(map.ok());
  EXPECT_NE(map.status().message().find("average pool"), std::string::npos);
}

// Classifiers of PyTorch end in scores: nothing tells them from extractors that end in a dense layer.
TEST(FindHead, NamesWhatADenseLayerAtTheEndReads) {
  QuantizedModel scores;
  const std::int32_t embedding = scores.input({1, 8});
  const auto plain = find_head(scores.finish({scores.fully_connected(embedding, 3)}));
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_EQ(plain->kind, HeadKind::kNone);
  EXPECT_EQ(plain->dimension, 3);
  EXPECT_EQ(plain->behind, embedding);

  QuantizedModel widening;
  const auto longer = find_head(widening.finish({widening.fully_connected(widening.input({1, 8}), 16)}));
  ASSERT_TRUE(longer.ok()) << longer.status().message();
  EXPECT_EQ(longer->behind, -1);
}

TEST(Split, PartsOfTheShippedModelComputeWhatItComputes) {
  const auto model = tflite::load_model(REEF_SOURCE_DIR "/models/reef_creatures_int8.tflite");
  ASSERT_TRUE(model.ok());
  const auto head = find_head(*model);
  ASSERT_TRUE(head.ok()) << head.status().message();
  EXPECT_EQ(head->kind, HeadKind::kLinear);
  EXPECT_EQ(head->dimension, 96);
  EXPECT_EQ(head->classes, 8);
  const auto parts = split(*model, *head);
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  EXPECT_EQ(parts->extractor.subgraphs[0].operators.size(), 21u);
  EXPECT_EQ(parts->head.subgraphs[0].operators.size(), 3u);
  const auto joined = join(through_file(parts->extractor), through_file(parts->head));
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  Embeddings pixels;
  pixels.dimension = 96 * 96 * 3;
  for (unsigned seed = 0; seed < 3; ++seed) {
    std::mt19937 random(seed);
    std::vector<float> row;
    for (int i = 0; i < pixels.dimension; ++i) row.push_back(static_cast<float>(random() % 256) / 255);
    pixels.add(row, 0);
  }
  const auto before = run_head(*model, pixels), after = run_head(*joined, pixels);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(*before, *after);
}

TEST(Split, PartsOfDifferentModelsAreRefused) {
  const ir::Tensor tensor = embedding_tensor(DataType::kInt8, ir::Shape({1, 16}));
  const Embeddings rows = sample_rows(tensor, 2, 3, 1);
  const auto head = imprinting_head(tensor, false, imprinted(rows).classes(), rows, {});
  ASSERT_TRUE(head.ok());
  QuantizedModel other({DataType::kInt8, 0.03f, -128});
  EXPECT_FALSE(join(other.finish({other.reshape(other.input({1, 16}), {1, 16})}), head->model).ok()) << "another scale";
  QuantizedModel longer({DataType::kInt8, 0.02f, -128});
  EXPECT_FALSE(join(longer.finish({longer.reshape(longer.input({1, 17}), {1, 17})}), head->model).ok());
}

}  // namespace
}  // namespace reef::learn
