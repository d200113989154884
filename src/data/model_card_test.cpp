// SPDX-License-Identifier: Apache-2.0
#include "data/model_card.h"

#include <filesystem>

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "formats/zip/archive.h"

namespace reef::data {
namespace {

namespace fs = std::filesystem;

TEST(ModelCard, PropertiesOfUltralytics) {
  const ModelCard card = card_of_properties({{"task", "pose"},
                                             {"names", "{0: 'person', 2: \"dog's \\\"ball\\\"\", 1: 'two words'}"},
                                             {"kpt_shape", "[17, 3]"},
                                             {"stride", "32"}});
  EXPECT_EQ(card.task, "pose");
  EXPECT_EQ(card.names, (std::vector<std::string>{"person", "two words", "dog's \"ball\""}));
  EXPECT_EQ(card.keypoints, 17);
  EXPECT_EQ(card.keypoint_numbers, 3);
}

TEST(ModelCard, NamesAreAnyPythonLiteral) {
  const auto names = [](const char* text) { return card_of_properties({{"names", text}}).names; };
  EXPECT_EQ(names("{0: 'a', 1: 'b'}"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(names(" { 0 : 'a' ,\n 1:\"b\" , } "), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(names("['a', \"it's\", ]"), (std::vector<std::string>{"a", "it's"}));
  EXPECT_EQ(names("{0: ''}"), std::vector<std::string>{""});
  EXPECT_EQ(names("{0: '3 {x}, [y]: z'}"), std::vector<std::string>{"3 {x}, [y]: z"});
}

TEST(ModelCard, NonsenseIsNotSaid) {
  for (const char* text : {"",
                           "{",
                           "{}",
                           "[]",
                           "{0:",
                           "{0: 'a",
                           "{0: 'a'",
                           "{0: 'a' 1: 'b'}",
                           "{0: 'a'}}",
                           "{0 'a'}",
                           "{'a'}",
                           "{0: a}",
                           "{-1: 'a'}",
                           "{99999999999999999999: 'x'}",
                           "{100000: 'x'}",
                           "0 1 2",
                           "'''",
                           "'a'",
                           "['a'",
                           "['a' 'b']",
                           "\\",
                           "{0: 'a\\",
                           "{,}",
                           "[,]"}) {
    const ModelCard card = card_of_properties({{"names", text}, {"kpt_shape", text}});
    EXPECT_TRUE(card.names.empty()) << text;
    EXPECT_EQ(card.keypoints, 0) << text;
  }
  EXPECT_TRUE(card_of_archive(Bytes(std::vector<std::uint8_t>{1, 2, 3})).is_empty());
}

TEST(ModelCard, IsStoredInTheModel) {
  ir::Model model;
  model.buffers.emplace_back();
  store_card({}, model);
  EXPECT_TRUE(model.metadata.empty());
  store_card({"detect", {"a", "b"}, 5, 2}, model);
  const ModelCard card = stored_card(model);
  EXPECT_EQ(card.task, "detect");
  EXPECT_EQ(card.names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(card.keypoints, 5);
  EXPECT_EQ(card.keypoint_numbers, 2);
}

std::vector<std::uint8_t> archive(const std::string& name, const std::string& text) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(text.data());
  const zip::NewMember member{name, {data, text.size()}};
  return zip::write_archive({&member, 1}, false).value();
}

TEST(ModelCard, Archives) {
  EXPECT_EQ(card_of_archive(Bytes(archive("metadata.json", R"({"task":"detect","names":{"1":"b","0":"a"}})"))).names,
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(card_of_archive(Bytes(archive("labelmap.txt", "x\r\ny\n"))).names, (std::vector<std::string>{"x", "y"}));
}

TEST(ModelCard, NamesAreFoundBesideTheModel) {
  const fs::path folder = fs::temp_directory_path() / ("reef_card_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const auto write = [&](const char* name, std::string_view text) {
    ASSERT_TRUE(write_file((folder / name).string(), text).ok());
  };
  ir::Model model;
  const auto names = [&](const char* file, std::size_t classes) {
    return find_class_names("", (folder / file).string(), model, classes)->names.size();
  };
  EXPECT_EQ(names("net_int8_edgetpu.tflite", 2), 0u);
  write("net_labels.txt", "a\nb\nc\n");
  EXPECT_EQ(names("net.tflite", 99), 3u);               // its own, whatever it holds
  EXPECT_EQ(names("net_int8_edgetpu.tflite", 99), 3u);  // what tools append does not matter
  EXPECT_EQ(names("other.tflite", 3), 3u);              // the only one, and it fits
  EXPECT_EQ(names("other.tflite", 4), 0u);              // it does not
  write("labels.txt", "a\nb\nc\nd\n");
  EXPECT_EQ(names("other.tflite", 3), 0u);  // two: who knows
  EXPECT_FALSE(find_class_names((folder / "absent.txt").string(), "x", model).ok());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace reef::data
