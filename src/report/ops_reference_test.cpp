// SPDX-License-Identifier: Apache-2.0
#include "report/ops_reference.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace reef::report {
namespace {

TEST(OpsReference, CommittedDocumentIsFresh) {
  const auto file = read_file(REEF_SOURCE_DIR "/docs/ops.md", 1 << 24);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const std::string committed(reinterpret_cast<const char*>(file->data()), file->size());
  EXPECT_TRUE(committed == ops_reference()) << "docs/ops.md is stale: run `make docs` and commit the result";
}

}  // namespace
}  // namespace reef::report
