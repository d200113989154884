// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include "formats/darwinn/parameters/blob_layout.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "zoo.h"
namespace reef::darwinn {
namespace {
TEST(ZooParameters, Draft) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  for (const std::string& path : testing::tflite_files(zoo + "/pairs")) {
    if (path.find("edgetpu") == std::string::npos) continue;
    const auto dir = std::filesystem::path(path).parent_path();
    std::string src = dir / "source.tflite";
    if (std::filesystem::path(path).filename().string().starts_with("v2_") && std::filesystem::exists(dir / "source_old.tflite")) src = dir / "source_old.tflite";
    const auto compiled = tflite::load_model(path);
    const auto source = tflite::load_model(src);
    for (const auto& op : compiled->subgraphs[0].operators) {
      if (op.type != kCustomOpName) continue;
      const auto options = read_custom_options(op.custom_options);
      ASSERT_TRUE(options.ok());
      for (const auto& e : options->package.executables) {
        if (e.parameters.empty()) continue;
        const auto layout = locate(*source, e.parameters.span());
        ASSERT_TRUE(layout.ok()) << layout.status().message();
        fmt::print("{} {} {} unknown {}\n", dir.filename().string(), int(e.type), e.parameters.size(), layout->bytes_of(ChunkKind::kUnknown));
        for (const auto& c : layout->chunks) if (c.kind!=ChunkKind::kLayer||c.order.block_words||!c.also_for.empty()||!c.role.empty()) fmt::print("   {} {} {} op {} '{}' block {} also {}\n", c.offset, c.size, chunk_kind_name(c.kind), c.op, c.role, c.order.block_words, c.also_for.size());
      }
    }
  }
}
}
}
