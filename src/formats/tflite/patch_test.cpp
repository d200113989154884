// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite/patch.h"

#include "formats/tflite/test_models.h"

namespace reef::tflite {
namespace {

using namespace testing;

struct File {
  std::vector<std::uint8_t> bytes = must_write(make_full_model());
  ir::Model model = must_read(bytes);
};

std::size_t count_differences(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  EXPECT_EQ(a.size(), b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) count += a[i] != b[i];
  return count;
}

TEST(PatchFile, LeavesAnUnchangedModelAlone) {
  const File file;
  const auto patched = patch_file(Bytes(file.bytes), file.model);
  ASSERT_TRUE(patched.ok()) << patched.status().message();
  EXPECT_EQ(*patched, file.bytes);
}

TEST(PatchFile, ChangesOnlyWhatChanged) {
  File file;
  file.model.buffers[1].data = Bytes({1, 2, 3, 4, 5, 7});                 // inside the FlatBuffer
  file.model.buffers[4].data = Bytes(std::vector<std::uint8_t>(100, 6));  // behind it
  file.model.subgraphs[0].operators[0].custom_options = Bytes({1, 9, 3});
  file.model.subgraphs[0].operators[1].custom_options = Bytes(std::vector<std::uint8_t>(33, 8));
  file.model.subgraphs[0].tensors[0].quantization.zero_point = {-4};
  const auto patched = patch_file(Bytes(file.bytes), file.model);
  ASSERT_TRUE(patched.ok()) << patched.status().message();
  EXPECT_EQ(count_differences(*patched, file.bytes), 1u + 100u + 1u + 33u + 1u);
  EXPECT_TRUE(must_read(*patched) == file.model);
}

TEST(PatchFile, ChangesScales) {
  File file;
  file.model.subgraphs[0].tensors[1].quantization.scale = {0.25f, 3.0f, 1.0f};
  file.model.subgraphs[0].tensors[1].quantization.zero_point = {5, 0, std::int64_t{1} << 41};
  const auto patched = patch_file(Bytes(file.bytes), file.model);
  ASSERT_TRUE(patched.ok()) << patched.status().message();
  EXPECT_TRUE(must_read(*patched) == file.model);
}

// The caller's file may lie anywhere in memory.
TEST(PatchFile, TakesAFileAtAnyAddress) {
  File file;
  file.model.buffers[1].data = Bytes({6, 5, 4, 3, 2, 1});
  std::vector<std::uint8_t> shifted(1, 0);
  shifted.insert(shifted.end(), file.bytes.begin(), file.bytes.end());
  const auto patched = patch_file(Bytes(shifted).slice(1, file.bytes.size()), file.model);
  ASSERT_TRUE(patched.ok()) << patched.status().message();
  EXPECT_TRUE(must_read(*patched) == file.model);
}

void expect_refused(const File& file, const std::string& word) {
  const auto patched = patch_file(Bytes(file.bytes), file.model);
  ASSERT_FALSE(patched.ok());
  EXPECT_EQ(patched.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(patched.status().message().find(word), std::string::npos) << patched.status().message();
}

TEST(PatchFile, RefusesChangesOfSizeNamingThePiece) {
  File larger;
  larger.model.buffers[1].data = Bytes(std::vector<std::uint8_t>(7, 0));
  expect_refused(larger, "buffer 1");
  File options;
  options.model.subgraphs[0].operators[1].custom_options = Bytes({1});
  expect_refused(options, "custom options of op 1");
  File scale;
  scale.model.subgraphs[0].tensors[0].quantization.scale = {1, 2};
  expect_refused(scale, "tensor 0 'input'");
  File unquantized;
  unquantized.model.subgraphs[0].tensors[5].quantization.scale = {1};
  expect_refused(unquantized, "tensor 5 'sparse'");
  File buffers;
  buffers.model.buffers.emplace_back();
  expect_refused(buffers, "number of buffers");
  File tensors;
  tensors.model.subgraphs[0].tensors.pop_back();
  expect_refused(tensors, "number of tensors");
}

TEST(PatchFile, RefusesOtherChanges) {
  File renamed;
  renamed.model.subgraphs[0].tensors[0].name = "other";
  expect_refused(renamed, "more than data");
  File shape;
  shape.model.subgraphs[0].tensors[0].shape = {1, 4, 2, 4};
  expect_refused(shape, "more than data");
}

TEST(PatchFile, RefusesAFileThatCannotBeRead) {
  const File file;
  EXPECT_FALSE(patch_file(Bytes(std::vector<std::uint8_t>(10, 1)), file.model).ok());
}

}  // namespace
}  // namespace reef::tflite
