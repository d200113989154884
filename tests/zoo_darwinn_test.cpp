// SPDX-License-Identifier: Apache-2.0
// Every compiled file of the collection: its packages are read and written again as the same bytes, and changing a
// parameter changes one byte of the file.
#include <functional>
#include <iostream>
#include <map>

#include <gtest/gtest.h>

#include "base/file.h"
#include "formats/darwinn/reader.h"
#include "formats/darwinn/writer.h"
#include "formats/tflite/patch.h"
#include "formats/tflite/reader.h"
#include "zoo.h"

namespace reef {
namespace {

// Calls `visit` for each Edge TPU op of every file that can be read.
void for_each_package(
    const std::string& folder,
    const std::function<void(const std::string& path, const Bytes& file, ir::Model& model, ir::Operator& op)>& visit) {
  for (const std::string& path : testing::tflite_files(folder)) {
    const auto file = read_file(path, tflite::kMaxFileBytes);
    ASSERT_TRUE(file.ok()) << file.status().message();
    auto model = tflite::read_model(*file);
    if (!model.ok()) continue;
    for (ir::Subgraph& subgraph : model->subgraphs) {
      for (ir::Operator& op : subgraph.operators) {
        if (op.type == darwinn::kCustomOpName) visit(path, *file, *model, op);
      }
    }
  }
}

TEST(ZooDarwinn, WritesEveryPackageAsItWas) {
  REEF_SKIP_WITHOUT_ZOO(folder);
  int packages = 0, equal = 0, executables = 0;
  std::map<int, int> per_runtime_version;
  for_each_package(folder, [&](const std::string& path, const Bytes&, ir::Model&, ir::Operator& op) {
    std::vector<std::string> notes;
    const auto options = darwinn::read_custom_options(op.custom_options, &notes);
    ASSERT_TRUE(options.ok()) << path << ": " << options.status().message();
    EXPECT_TRUE(notes.empty()) << path << ": " << notes[0];
    const auto bytes = darwinn::write_custom_options(*options);
    ASSERT_TRUE(bytes.ok()) << path << ": " << bytes.status().message();
    const bool is_equal = Bytes(*bytes) == op.custom_options;
    EXPECT_TRUE(is_equal) << path;
    ++packages;
    equal += is_equal;
    executables += static_cast<int>(options->package.executables.size());
    ++per_runtime_version[options->package.min_runtime_version];
  });
  std::cout << packages << " packages with " << executables << " executables read, " << equal
            << " written as the same bytes; by min_runtime_version:";
  for (const auto& [version, count] : per_runtime_version) std::cout << ' ' << version << ": " << count;
  std::cout << '\n';
  EXPECT_GE(packages, 58);
}

// Every element of every output has a place of its own in what the chip sends.
TEST(ZooDarwinn, LayoutsPlaceEveryElement) {
  REEF_SKIP_WITHOUT_ZOO(folder);
  int layouts = 0;
  for_each_package(folder, [&](const std::string& path, const Bytes&, ir::Model&, ir::Operator& op) {
    const auto options = darwinn::read_custom_options(op.custom_options);
    ASSERT_TRUE(options.ok()) << path;
    for (const darwinn::Layer& layer : options->package.executables[0].output_layers) {
      const auto* info = std::get_if<darwinn::OutputInfo>(&layer.info);
      if (info == nullptr || !info->layout) continue;
      std::vector<bool> is_taken(static_cast<std::size_t>(layer.size_bytes));
      for (std::int32_t y = 0; y < layer.y_dim; ++y) {
        for (std::int32_t x = 0; x < layer.x_dim; ++x) {
          const auto index = info->layout->index_of(static_cast<std::size_t>(y), static_cast<std::size_t>(x));
          ASSERT_TRUE(index && *index >= 0 && *index + layer.z_dim <= layer.size_bytes) << path << ' ' << layer.name;
          for (std::int32_t z = 0; z < layer.z_dim; ++z) {
            const auto place = static_cast<std::size_t>(*index + z);
            ASSERT_FALSE(is_taken[place]) << path << ' ' << layer.name;
            is_taken[place] = true;
          }
        }
      }
      ++layouts;
    }
  });
  std::cout << layouts << " layouts\n";
  EXPECT_GE(layouts, 69);
}

TEST(ZooDarwinn, PatchesOneParameter) {
  REEF_SKIP_WITHOUT_ZOO(folder);
  int patched_files = 0;
  for_each_package(
      folder + "/pairs", [&](const std::string& path, const Bytes& file, ir::Model& model, ir::Operator& op) {
        auto options = darwinn::read_custom_options(op.custom_options);
        ASSERT_TRUE(options.ok()) << path;
        darwinn::Executable& executable = options->package.executables.back();
        if (executable.parameters.empty()) return;  // a net without weights
        std::vector<std::uint8_t> parameters(executable.parameters.span().begin(), executable.parameters.span().end());
        parameters.back() ^= 1;
        executable.parameters = Bytes(std::move(parameters));
        auto bytes = darwinn::write_custom_options(*options);
        ASSERT_TRUE(bytes.ok()) << path;
        op.custom_options = Bytes(std::move(bytes).value());
        const auto patched = tflite::patch_file(file, model);
        ASSERT_TRUE(patched.ok()) << path << ": " << patched.status().message();
        ASSERT_EQ(patched->size(), file.size());
        std::size_t differences = 0;
        for (std::size_t i = 0; i < file.size(); ++i) differences += (*patched)[i] != file.data()[i];
        EXPECT_EQ(differences, 1u) << path;
        ++patched_files;
      });
  std::cout << patched_files << " files patched\n";
  EXPECT_GE(patched_files, 52);
}

}  // namespace
}  // namespace reef
