// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "data/subset.h"
#include "formats/numpy/npz.h"

namespace reef::data {
namespace {

namespace fs = std::filesystem;

template <typename T>
numpy::Array array_of(std::vector<std::int64_t> shape, const std::vector<T>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {ir::data_type_of<T>, std::move(shape), Bytes(std::move(bytes))};
}

struct Input {
  std::string name;
  ir::DataType type;
  ir::Shape shape;
};

ir::Model model_with(const std::vector<Input>& inputs) {
  ir::Model model;
  model.buffers.emplace_back();
  ir::Subgraph& graph = model.subgraphs.emplace_back();
  for (const Input& input : inputs) {
    graph.inputs.push_back(static_cast<std::int32_t>(graph.tensors.size()));
    ir::Tensor& tensor = graph.tensors.emplace_back();
    tensor.name = input.name;
    tensor.type = input.type;
    tensor.shape = input.shape;
  }
  return model;
}

class DatasetTest : public ::testing::Test {
 protected:
  DatasetTest() : folder_(fs::temp_directory_path() / ("reef_dataset_test_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~DatasetTest() override { fs::remove_all(folder_); }

  std::string write(const std::vector<numpy::NamedArray>& arrays) {
    const std::string path = (folder_ / "data.npz").string();
    EXPECT_TRUE(write_file(path, *numpy::write_npz(arrays, true)).ok());
    return path;
  }
  // A picture of one colour, as the simplest format there is.
  void picture(const std::string& name, int grey) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream file(folder_ / name, std::ios::binary);
    file << "P6\n2 2\n255\n" << std::string(12, static_cast<char>(grey));
  }
  template <typename T>
  static std::vector<T> sample(const Dataset& dataset, const ir::Model& model, std::int64_t number, int input = 0) {
    const InputSpec spec = input_spec(model, input);
    std::vector<T> values(static_cast<std::size_t>(spec.shape.elements()));
    const Status status = dataset.read(number, spec, std::as_writable_bytes(std::span(values)));
    EXPECT_TRUE(status.ok()) << status.message();
    return values;
  }

  fs::path folder_;
};

TEST_F(DatasetTest, PixelsArePreprocessedAndTransposed) {
  const std::string path = write({{"images", array_of<std::uint8_t>({2, 1, 2, 3}, {0, 51, 102, 153, 204, 255,  //
                                                                                   255, 204, 153, 102, 51, 0})},
                                  {"labels", array_of<std::uint8_t>({2}, {7, 9})},
                                  {"calib", array_of<std::uint8_t>({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6})}});
  const ir::Model last = model_with({{"in", ir::DataType::kFloat32, {1, 1, 2, 3}}});
  const ir::Model first = model_with({{"in", ir::DataType::kFloat32, {1, 3, 1, 2}}});
  auto dataset = Dataset::open({.path = path}, last);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->size(), 2);
  EXPECT_EQ(sample<float>(**dataset, last, 0), (std::vector<float>{0, 0.2F, 0.4F, 0.6F, 0.8F, 1}));
  EXPECT_EQ((*dataset)->truth(1)->values, std::vector<double>{9});
  dataset = Dataset::open({.path = path, .preprocess = "mean=51,std=51"}, first);
  ASSERT_TRUE(dataset.ok());
  EXPECT_EQ(sample<float>(**dataset, first, 0), (std::vector<float>{-1, 2, 0, 3, 1, 4}));
  const auto calibration = Dataset::open({.path = path, .use = Use::kCalibration, .preprocess = "none"}, last);
  ASSERT_TRUE(calibration.ok());
  EXPECT_EQ(sample<float>(**calibration, last, 0), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_FALSE((*calibration)->has_truth());
}

TEST_F(DatasetTest, FloatsAreTakenAsTheyAre) {
  const std::string path = write({{"x", array_of<float>({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6})}});
  const ir::Model same = model_with({{"in", ir::DataType::kFloat32, {1, 2, 3}}});
  const ir::Model moved = model_with({{"in", ir::DataType::kFloat32, {1, 3, 2}}});
  const ir::Model other = model_with({{"in", ir::DataType::kFloat32, {1, 6}}});
  EXPECT_EQ(sample<float>(**Dataset::open({.path = path}, same), same, 0), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(sample<float>(**Dataset::open({.path = path}, moved), moved, 0), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_NE(Dataset::open({.path = path}, other).status().message().find("array 'x': it is float32 [1, 2, 1, 3]"),
            std::string::npos);
}

TEST_F(DatasetTest, IdsAreCheckedForRange) {
  const std::string path = write({{"ids", array_of<std::int64_t>({2, 2}, {5, 1999, 3, 5000000000})}});
  const ir::Model wide = model_with({{"ids", ir::DataType::kInt64, {1, 2}}});
  const ir::Model narrow = model_with({{"ids", ir::DataType::kInt32, {1, 2}}});
  EXPECT_EQ(sample<std::int64_t>(**Dataset::open({.path = path}, wide), wide, 1),
            (std::vector<std::int64_t>{3, 5000000000}));
  const auto dataset = Dataset::open({.path = path}, narrow);
  EXPECT_EQ(sample<std::int32_t>(**dataset, narrow, 0), (std::vector<std::int32_t>{5, 1999}));
  std::array<std::byte, 8> target{};
  const Status status = (*dataset)->read(1, input_spec(narrow, 0), target);
  EXPECT_NE(status.message().find("array 'ids', sample 1: value 5000000000"), std::string::npos) << status.message();
}

TEST_F(DatasetTest, SeveralInputsGoByName) {
  const std::string path =
      write({{"length", array_of<std::int32_t>({2, 1}, {4, 5})}, {"picture", array_of<float>({2, 2}, {1, 2, 3, 4})}});
  const ir::Model model = model_with({{"serving_default_picture:0", ir::DataType::kFloat32, {1, 2}},
                                      {"serving_default_length:0", ir::DataType::kInt32, {1, 1}}});
  const auto dataset = Dataset::open({.path = path}, model);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ(sample<float>(**dataset, model, 1, 0), (std::vector<float>{3, 4}));
  EXPECT_EQ(sample<std::int32_t>(**dataset, model, 1, 1), std::vector<std::int32_t>{5});
  const ir::Model odd = model_with({{"a", ir::DataType::kFloat32, {1, 2}}, {"b", ir::DataType::kInt32, {1, 1}}});
  EXPECT_NE(Dataset::open({.path = path}, odd).status().message().find("length (int32 [2, 1])"), std::string::npos);
  EXPECT_TRUE(Dataset::open({.path = path, .arrays = "picture,length"}, odd).ok());
}

TEST_F(DatasetTest, FoldersAreClassesThatTakeTurns) {
  const ir::Model model = model_with({{"in", ir::DataType::kFloat32, {1, 2, 2, 3}}});
  for (const char* name : {"crab/1.ppm", "crab/2.ppm", "eel/1.ppm", "ray/1.ppm"}) picture(name, 51);
  const auto dataset = Dataset::open({.path = folder_.string()}, model);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  std::vector<double> labels;
  for (std::int64_t i = 0; i < 4; ++i) labels.push_back((*dataset)->truth(i)->values[0]);
  EXPECT_EQ(labels, (std::vector<double>{0, 1, 2, 0}));
  EXPECT_EQ(sample<float>(**dataset, model, 3), std::vector<float>(12, 0.2F));
  std::ofstream(folder_ / "names.txt") << "ray\neel\nworm\ncrab\n";
  const auto named = Dataset::open({.path = folder_.string(), .labels = (folder_ / "names.txt").string()}, model);
  ASSERT_TRUE(named.ok()) << named.status().message();
  EXPECT_EQ((*named)->truth(0)->values[0], 3);
}

TEST_F(DatasetTest, NamesGiveLabels) {
  const ir::Model model = model_with({{"in", ir::DataType::kFloat32, {1, 2, 2, 1}}});
  for (const char* name : {"005_a.ppm", "010_b.ppm"}) picture(name, 9);
  auto dataset = Dataset::open({.path = folder_.string()}, model);
  ASSERT_TRUE(dataset.ok());
  EXPECT_EQ((*dataset)->truth(1)->values[0], 10);
  std::ofstream(folder_ / "map.csv") << "005_a.ppm,3\n010_b.ppm, 4\n";
  dataset = Dataset::open({.path = folder_.string(), .truth = (folder_ / "map.csv").string()}, model);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->truth(1)->values[0], 4);
  picture("zebra.ppm", 9);
  dataset = Dataset::open({.path = folder_.string()}, model);
  ASSERT_TRUE(dataset.ok());
  EXPECT_FALSE((*dataset)->has_truth());
  std::ofstream(folder_ / "broken.jpg") << "no picture";
  dataset = Dataset::open({.path = folder_.string()}, model);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->size(), 3);
  EXPECT_NE((*dataset)->describe().find("left out as damaged: broken.jpg"), std::string::npos);
}

TEST_F(DatasetTest, BoxesAreFoundInTheFolderLabels) {
  const ir::Model model = model_with({{"in", ir::DataType::kFloat32, {1, 2, 2, 3}}});
  for (const char* name : {"set/images/train/1.ppm", "set/images/train/2.ppm", "set/images/val/3.ppm"})
    picture(name, 51);
  fs::create_directories(folder_ / "set/labels/train");
  std::ofstream(folder_ / "set/labels/train/1.txt") << "2 0.5 0.25 0.2 0.1\n";
  for (const char* path : {"set", "set/images", "set/images/train"}) {  // no folder of them is a class
    const auto dataset = Dataset::open({.path = (folder_ / path).string()}, model);
    ASSERT_TRUE(dataset.ok()) << dataset.status().message();
    ASSERT_TRUE((*dataset)->has_truth()) << path;
    EXPECT_EQ((*dataset)->truth(0)->values, (std::vector<double>{0.5, 0.25, 0.2, 0.1, 2}));
    EXPECT_EQ((*dataset)->truth(1)->shape, (std::vector<std::int64_t>{0, 5}));  // a picture without anything
    EXPECT_NE((*dataset)->describe().find("without such a file"), std::string::npos);
  }
}

TEST_F(DatasetTest, OrdersAndSplitsAreTheSameEveryTime) {
  EXPECT_EQ(shuffled(6, 1), shuffled(6, 1));
  EXPECT_NE(shuffled(600, 1), shuffled(600, 2));
  std::vector<std::uint8_t> values(50);
  for (std::size_t i = 0; i < 50; ++i) values[i] = static_cast<std::uint8_t>(i);
  const std::string path = write({{"x", array_of<std::uint8_t>({50, 1}, values)}});
  const ir::Model model = model_with({{"in", ir::DataType::kFloat32, {1, 1}}});
  const auto all = Dataset::open({.path = path, .preprocess = "none", .shuffle_seed = 4}, model);
  const auto some = Dataset::open({.path = path, .preprocess = "none", .limit = 10, .shuffle_seed = 4}, model);
  ASSERT_TRUE(all.ok() && some.ok());
  EXPECT_EQ((*some)->size(), 10);
  std::set<float> seen;
  for (std::int64_t i = 0; i < 50; ++i) seen.insert(sample<float>(**all, model, i)[0]);
  EXPECT_EQ(seen.size(), 50u);
  for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(sample<float>(**all, model, i), sample<float>(**some, model, i));
  const Split parts = split(*all, 0.2, 3);
  EXPECT_EQ(parts.held_back->size(), 10);
  EXPECT_EQ(parts.kept->size(), 40);
  std::set<float> both;
  for (const auto& part : {parts.kept, parts.held_back}) {
    for (std::int64_t i = 0; i < part->size(); ++i) {
      float value = -1;
      ASSERT_TRUE(part->read(i, input_spec(model, 0), std::as_writable_bytes(std::span(&value, 1))).ok());
      both.insert(value);
    }
  }
  EXPECT_EQ(both.size(), 50u);
}

TEST_F(DatasetTest, ManyThreadsReadTheSame) {
  const ir::Model model = model_with({{"in", ir::DataType::kFloat32, {1, 2, 2, 3}}});
  for (int i = 0; i < 8; ++i) picture(fmt::format("{}_x.ppm", i), i * 30);
  const auto dataset = Dataset::open({.path = folder_.string(), .preprocess = "none"}, model);
  ASSERT_TRUE(dataset.ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::int64_t i = 0; i < 8; ++i)
        EXPECT_EQ(sample<float>(**dataset, model, i), std::vector<float>(12, static_cast<float>(i * 30)));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace reef::data
