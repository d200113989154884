// SPDX-License-Identifier: Apache-2.0
// Samples in TFRecord files and tar archives, as commands open them.
#include <filesystem>
#include <fstream>

#include <zlib.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "data/dataset.h"
#include "data/shard_files.h"
#include "formats/tar/test_tars.h"
#include "formats/tfrecord/records.h"

namespace reef::data {
namespace {

namespace fs = std::filesystem;
using tar::testing::archive;
using tar::testing::File;

ir::Model model_of(ir::Shape shape = {1, 2, 2, 3}, ir::DataType type = ir::DataType::kFloat32) {
  ir::Model model;
  model.buffers.emplace_back();
  ir::Subgraph& graph = model.subgraphs.emplace_back();
  graph.inputs.push_back(0);
  ir::Tensor& tensor = graph.tensors.emplace_back();
  tensor.name = "in";
  tensor.type = type;
  tensor.shape = shape;
  return model;
}

std::string picture(int grey) { return "P6\n2 2\n255\n" + std::string(12, static_cast<char>(grey)); }

// The fields of a message: (number << 3 | 2), length, bytes. Lengths below 16384.
std::string field(int number, const std::string& bytes) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  if (bytes.size() >= 128) text += static_cast<char>((bytes.size() & 0x7f) | 0x80);
  text += static_cast<char>(bytes.size() >= 128 ? bytes.size() >> 7 : bytes.size());
  return text + bytes;
}
std::string feature(const std::string& name, const std::string& list) {
  return field(1, field(1, name) + field(2, list));
}
std::string bytes_feature(const std::string& name, const std::string& bytes) {
  return feature(name, field(1, field(1, bytes)));
}
std::string integer_feature(const std::string& name, int value) {
  return feature(name, field(3, std::string("\x08", 1) + static_cast<char>(value)));
}
std::string example(const std::string& features) { return field(1, features); }

class ShardsTest : public ::testing::Test {
 protected:
  ShardsTest()
      : folder_(fs::temp_directory_path() /
                (std::string("reef_") + ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~ShardsTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string put(const std::string& name, const std::vector<std::uint8_t>& bytes) const {
    EXPECT_TRUE(write_file(path(name), bytes).ok());
    return path(name);
  }
  std::string put_records(const std::string& name, const std::vector<std::string>& records) const {
    std::vector<std::uint8_t> bytes;
    for (const std::string& record : records) tfrecord::append_record(bytes_of(record), bytes);
    return put(name, bytes);
  }
  static float first_value(const Dataset& dataset, const ir::Model& model, std::int64_t sample) {
    const InputSpec spec = input_spec(model, 0);
    std::vector<float> values(static_cast<std::size_t>(spec.shape.elements()));
    const Status status = dataset.read(sample, spec, std::as_writable_bytes(std::span(values)));
    EXPECT_TRUE(status.ok()) << status.message();
    return values[0];
  }
  // Values and labels of all samples, as text.
  static std::string content(const DatasetOptions& options, const ir::Model& model) {
    const auto dataset = Dataset::open(options, model);
    if (!dataset.ok()) return dataset.status().message();
    std::string text;
    for (std::int64_t i = 0; i < (*dataset)->size(); ++i) {
      const auto truth = (*dataset)->truth(i);
      text += fmt::format("{}={} ", first_value(**dataset, model, i), truth.ok() ? truth->values[0] : -1);
    }
    return text;
  }

  fs::path folder_;
};

TEST_F(ShardsTest, TarMembersOfOneNameAreASample) {
  const std::string file = put("a.tar", archive({{"x/0001.ppm", picture(10)},
                                                 {"x/0001.cls", "3\n"},
                                                 {"x/0002.ppm", picture(20)},
                                                 {"x/0002.cls", " 5"},
                                                 {"__index__.json", "{}"}}));
  EXPECT_EQ(content({.path = file, .preprocess = "none"}, model_of()), "10=3 20=5 ");
}

TEST_F(ShardsTest, TarLabelsComeInSeveralForms) {
  const ir::Model model = model_of();
  const auto with = [&](const std::string& ending, const std::string& text) {
    return put("b.tar", archive({{"1.ppm", picture(10)}, {"1." + ending, text}}));
  };
  EXPECT_EQ(content({.path = with("json", R"({"label": 4, "size": [2, 2]})"), .preprocess = "none"}, model), "10=4 ");
  EXPECT_EQ(content({.path = with("json", "7"), .preprocess = "none"}, model), "10=7 ");
  EXPECT_EQ(content({.path = with("txt", "2"), .preprocess = "none"}, model), "10=2 ");
  put("names.txt", {'a', '\n', 'e', 'e', 'l', '\n'});
  EXPECT_EQ(content({.path = with("cls", "eel"), .labels = path("names.txt"), .preprocess = "none"}, model), "10=1 ");
  const auto boxes =
      Dataset::open({.path = with("txt", "2 0.5 0.5 0.2 0.1\n1 0.1 0.1 0.1 0.1"), .preprocess = "none"}, model);
  ASSERT_TRUE(boxes.ok());
  EXPECT_EQ((*boxes)->truth(0)->shape, (std::vector<std::int64_t>{2, 5}));
  const auto wrong = Dataset::open({.path = with("cls", "shark"), .preprocess = "none"}, model);
  ASSERT_TRUE(wrong.ok());
  EXPECT_NE((*wrong)->truth(0).status().message().find("member '1.cls': 'its text': 'shark' is no class number"),
            std::string::npos)
      << (*wrong)->truth(0).status().message();
}

TEST_F(ShardsTest, TarFoldersAreClasses) {
  const std::string file =
      put("c.tar", archive({{"crab/1.ppm", picture(1)}, {"crab/2.ppm", picture(2)}, {"eel/1.ppm", picture(3)}}));
  EXPECT_EQ(content({.path = file, .preprocess = "none"}, model_of()), "1=0 3=1 2=0 ");
  const auto dataset = Dataset::open({.path = file}, model_of());
  EXPECT_EQ((*dataset)->class_names().at(1), "eel");
}

TEST_F(ShardsTest, ManyShardsAreOneSet) {
  for (int i = 0; i < 3; ++i)
    put(fmt::format("s-{:03}.tar", i), archive({{"k.ppm", picture(10 * i)}, {"k.cls", std::to_string(i)}}));
  const ir::Model model = model_of();
  const std::string all = "0=0 10=1 20=2 ";
  for (const std::string& way : {path("s-*.tar"), path("s-{000..002}.tar"), path("s-00{0,1,2}.tar"), folder_.string(),
                                 path("s-000.tar") + "," + path("s-001.tar") + "," + path("s-002.tar")}) {
    EXPECT_EQ(content({.path = way, .preprocess = "none"}, model), all) << way;
  }
  std::string parts;
  for (std::int64_t i = 0; i < 2; ++i)
    parts += content({.path = folder_.string(), .preprocess = "none", .shard = i, .shards = 2}, model);
  EXPECT_EQ(parts, "0=0 20=2 10=1 ");
  EXPECT_NE(content({.path = path("t-*.tar")}, model).find("no file is called like"), std::string::npos);
  EXPECT_NE(content({.path = path("s-{000..003}.tar")}, model).find("s-003.tar"), std::string::npos);
  EXPECT_NE(content({.path = "s3://bucket/x.tar"}, model).find("does not fetch data"), std::string::npos);
  EXPECT_NE(content({.path = path("s-000.tar"), .shard = 1, .shards = 2}, model).find("part 1 of 2 is empty"),
            std::string::npos);
  put_records("r.tfrecord", {example(bytes_feature("image", picture(1)))});
  EXPECT_NE(content({.path = path("s-000.tar") + "," + path("r.tfrecord")}, model).find("files of different kinds"),
            std::string::npos);
}

TEST_F(ShardsTest, RecordsHavePicturesAndLabels) {
  const std::string file =
      put_records("x.tfrecord-00000-of-00001",
                  {example(bytes_feature("image/encoded", picture(30)) + integer_feature("image/class/label", 6)),
                   example(bytes_feature("image/encoded", picture(40)) + integer_feature("image/class/label", 7))});
  EXPECT_EQ(content({.path = file, .preprocess = "none"}, model_of()), "30=6 40=7 ");
}

TEST_F(ShardsTest, RecordsHaveRawNumbers) {
  const ir::Model model = model_of();
  const std::string raw = bytes_feature("image_raw", std::string(12, 9)) + integer_feature("label", 1);
  EXPECT_EQ(content({.path = put_records("a.tfrecord", {example(raw)}), .preprocess = "none"}, model), "9=1 ");
  const std::string sized =
      bytes_feature("image_raw", std::string(27, 9)) + integer_feature("height", 3) + integer_feature("width", 3);
  EXPECT_EQ(content({.path = put_records("b.tfrecord", {example(sized)}), .preprocess = "none"}, model), "9=-1 ");
  const std::string floats = feature("x", field(2, field(1, std::string("\0\0\x20\x41", 4) + std::string(44, '\0'))));
  EXPECT_EQ(content({.path = put_records("c.tfrecord", {example(floats)})}, model), "10=-1 ");
  const std::string shapeless = bytes_feature("image_raw", std::string(13, 9));
  EXPECT_NE(
      content({.path = put_records("d.tfrecord", {example(shapeless)})}, model).find("13 bytes are no encoded picture"),
      std::string::npos);
  const std::string other = integer_feature("a", 1) + integer_feature("b", 2);
  EXPECT_NE(content({.path = put_records("e.tfrecord", {example(other)})}, model).find("--array A,B: a (1 integer), b"),
            std::string::npos);
}

TEST_F(ShardsTest, PackedShardsAreUnpackedWithinLimits) {
  std::vector<std::uint8_t> bytes;
  tfrecord::append_record(bytes_of(example(bytes_feature("image", picture(5)))), bytes);
  gzFile out = ::gzopen(path("x.tfrecord.gz").c_str(), "wb");
  ::gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
  ::gzclose(out);
  EXPECT_EQ(content({.path = path("x.tfrecord.gz"), .preprocess = "none"}, model_of()), "5=-1 ");
  const std::vector<std::uint8_t> zeros(1 << 22);
  out = ::gzopen(path("bomb.tar.gz").c_str(), "wb");
  for (int i = 0; i < 16; ++i) ::gzwrite(out, zeros.data(), static_cast<unsigned>(zeros.size()));
  ::gzclose(out);
  EXPECT_LT(fs::file_size(path("bomb.tar.gz")), 100000u);
  const std::string refusal = content({.path = path("bomb.tar.gz"), .budget = Budget({.bytes = 1 << 24})}, model_of());
  EXPECT_NE(refusal.find("the unpacked file"), std::string::npos) << refusal;
}

TEST_F(ShardsTest, BadShardsAreASentenceEach) {
  const ir::Model model = model_of();
  const auto refusal = [&](const std::string& file, std::int64_t sample = -1) {
    const auto dataset = Dataset::open({.path = file}, model);
    if (!dataset.ok()) return dataset.status().message();
    if (sample < 0) return std::string("it was opened");
    std::vector<std::byte> target(48);
    return (*dataset)->read(sample, input_spec(model, 0), target).message();
  };
  const std::vector<std::uint8_t> good = archive({{"1.ppm", picture(1)}, {"2.ppm", picture(2)}});
  EXPECT_NE(refusal(put("cut.tar", {good.begin(), good.begin() + 520})).find("cut.tar': it is cut off"),
            std::string::npos);
  EXPECT_NE(refusal(put("empty.tar", archive({}))).find("holds no samples"), std::string::npos);
  EXPECT_NE(refusal(put("zero.tfrecord", {})).find("holds no samples"), std::string::npos);
  EXPECT_NE(refusal(put("text.tar", archive({{"readme.md", "hello"}}))).find("neither a picture nor an array"),
            std::string::npos);
  EXPECT_NE(refusal(put("twice.tar", archive({{"1.ppm", "a"}, {"1.ppm", "b"}}))).find("is there twice"),
            std::string::npos);
  EXPECT_NE(refusal(put("bad.tar", archive({{"1.ppm", "no picture"}})), 0).find("sample '1': this is"),
            std::string::npos)
      << refusal(path("bad.tar"), 0);
  EXPECT_NE(refusal(put("none.tar", archive({{"1.ppm", ""}})), 0).find("member '1.ppm' is empty"), std::string::npos);
  std::vector<std::uint8_t> record;
  tfrecord::append_record(bytes_of(example(bytes_feature("image", picture(1)))), record);
  tfrecord::append_record(bytes_of(example(bytes_feature("image", picture(2)))), record);
  record[record.size() - 10] ^= 1;
  EXPECT_NE(refusal(put("crc.tfrecord", record), 1).find("is damaged: its checksum is wrong"), std::string::npos);
  EXPECT_NE(refusal(put("noise.bin", std::vector<std::uint8_t>(700, 'n'))).find("no TFRecord file and no tar archive"),
            std::string::npos);
  EXPECT_NE(refusal(path("absent.tar")).find("absent.tar"), std::string::npos);
}

// A shard that becomes shorter after it was opened is an error of the samples it lost, not the end of the program.
TEST_F(ShardsTest, ShardThatShrinksIsAnError) {
  const std::string file = put("s.tar", archive({{"1.ppm", picture(1)}, {"2.ppm", picture(2)}}));
  const ir::Model model = model_of();
  const auto dataset = Dataset::open({.path = file, .preprocess = "none"}, model);
  ASSERT_TRUE(dataset.ok());
  fs::resize_file(file, 1000);
  EXPECT_EQ(first_value(**dataset, model, 0), 1);
  std::vector<std::byte> target(48);
  EXPECT_NE((*dataset)->read(1, input_spec(model, 0), target).message().find("became shorter"), std::string::npos);
}

TEST(ShardNames, AreTold) {
  for (const char* name : {"a.tar", "x/b.TGZ", "c.tfrecord", "d.tfrecord-00001-of-00010", "e.tfrecord.gz", "f.tar.gz"})
    EXPECT_TRUE(is_shard_name(name)) << name;
  for (const char* name : {"a.npz", "model.tflite", "tar", "photos", "a.jpg"})
    EXPECT_FALSE(is_shard_name(name)) << name;
}

}  // namespace
}  // namespace reef::data
