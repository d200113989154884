// SPDX-License-Identifier: Apache-2.0
// Every compiled file of the collection: its packages are read, and written again as the same bytes.
#include <gtest/gtest.h>

#include "base/file.h"
#include "formats/darwinn/reader.h"
#include "formats/darwinn/writer.h"
#include "formats/tflite/reader.h"
#include "zoo.h"

namespace reef {
namespace {

TEST(ZooDarwinn, WritesEveryPackageAsItWas) {
  REEF_SKIP_WITHOUT_ZOO(folder);
  int packages = 0;
  for (const std::string& path : testing::tflite_files(folder)) {
    const auto model = tflite::load_model(path);
    if (!model.ok()) continue;
    for (const ir::Subgraph& subgraph : model->subgraphs) {
      for (const ir::Operator& op : subgraph.operators) {
        if (op.type != darwinn::kCustomOpName) continue;
        std::vector<std::string> notes;
        const auto options = darwinn::read_custom_options(op.custom_options, &notes);
        EXPECT_TRUE(options.ok()) << path << ": " << options.status().message();
        EXPECT_TRUE(notes.empty()) << path << ": " << notes[0];
        if (!options.ok()) continue;
        const auto bytes = darwinn::write_custom_options(*options);
        ASSERT_TRUE(bytes.ok()) << path << ": " << bytes.status().message();
        EXPECT_TRUE(Bytes(*bytes) == op.custom_options) << path;
        ++packages;
      }
    }
  }
  std::cout << packages << " packages read and written\n";
  EXPECT_GE(packages, 58);
}

}  // namespace
}  // namespace reef
