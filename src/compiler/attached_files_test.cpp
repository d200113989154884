// SPDX-License-Identifier: Apache-2.0
#include "compiler/attached_files.h"

#include <algorithm>
#include <filesystem>

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "data/model_card.h"
#include "data/vocabulary.h"
#include "formats/zip/appended_archive.h"

namespace reef::compiler {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class AttachedFiles : public ::testing::Test {
 protected:
  AttachedFiles() { fs::create_directories(folder_ / "other"); }
  ~AttachedFiles() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, std::string_view text) const {
    const std::string path = (folder_ / name).string();
    const auto* data = reinterpret_cast<const std::uint8_t*>(text.data());
    EXPECT_TRUE(write_file(path, std::span(data, text.size())).ok());
    return path;
  }
  static std::vector<std::uint8_t> model(std::uint8_t content) { return std::vector<std::uint8_t>(100, content); }
  static bool begins_with(const Bytes& file, const std::vector<std::uint8_t>& model) {
    return file.size() >= model.size() && std::equal(model.begin(), model.end(), file.span().begin());
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / ("reef_attached_files_" + std::to_string(::getpid()));
};

TEST_F(AttachedFiles, AreFoundWhereRunLooksForThem) {
  const auto with = with_attached_files(
      model(1), "", {file("vocab.txt", "[PAD]\n[UNK]\nsea\ncalm\n"), file("labels.txt", "calm\nrough\n")});
  ASSERT_TRUE(with.ok()) << with.status().message();
  EXPECT_TRUE(begins_with(*with, model(1)));
  EXPECT_EQ(zip::find_appended_archive(with->span()).start, 100u);
  EXPECT_EQ(data::card_of_archive(*with).names, (Names{"calm", "rough"}));
  const auto vocabulary = data::Vocabulary::of_model_file(*with);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  EXPECT_EQ(vocabulary->encode("calm sea", 3).ids, (std::vector<std::int32_t>{3, 2, 0}));
}

TEST_F(AttachedFiles, WhatTheSourceCarriesStaysOrIsReplaced) {
  const auto first =
      with_attached_files(model(1), "", {file("labels.txt", "one\ntwo\n"), file("vocab.txt", "a\nb\nc\n")});
  ASSERT_TRUE(first.ok());
  const std::string source = (folder_ / "model.tflite").string();
  ASSERT_TRUE(write_file(source, first->span()).ok());
  const std::vector<std::string> newer = {file("other/labels.txt", "three\n")};
  for (const auto& second : {with_attached_files(model(2), source, newer), model_file_with(source, newer)}) {
    ASSERT_TRUE(second.ok()) << second.status().message();
    EXPECT_EQ(data::card_of_archive(*second).names, Names{"three"});
    EXPECT_EQ(data::Vocabulary::of_model_file(*second)->size(), 3u);
    EXPECT_EQ(zip::find_appended_archive(second->span()).start, 100u) << "one archive, not two";
  }
  EXPECT_TRUE(begins_with(*with_attached_files(model(2), source, {}), model(2)));
  EXPECT_TRUE(begins_with(*model_file_with(source, newer), model(1)));
}

TEST_F(AttachedFiles, NothingIsAddedWhereThereIsNothing) {
  const auto with = with_attached_files(model(1), file("plain.tflite", "no archive"), {});
  ASSERT_TRUE(with.ok());
  EXPECT_EQ(with->size(), 100u);
}

TEST_F(AttachedFiles, FilesOfOneNameAndMissingOnesAreErrors) {
  const auto twice = with_attached_files(model(1), "", {file("a.txt", "1"), file("other/a.txt", "2")});
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.status().message().find("one name"), std::string::npos) << twice.status().message();
  EXPECT_FALSE(with_attached_files(model(1), "", {(folder_ / "missing.txt").string()}).ok());
}

}  // namespace
}  // namespace reef::compiler
