// SPDX-License-Identifier: Apache-2.0
#include "report/documents.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace reef::report {
namespace {

TEST(Documents, CommittedOnesAreFresh) {
  for (const Document& document : kDocuments) {
    const auto file = read_file(REEF_SOURCE_DIR "/" + std::string(document.path), 1 << 24);
    ASSERT_TRUE(file.ok()) << file.status().message();
    const std::string committed(reinterpret_cast<const char*>(file->data()), file->size());
    EXPECT_TRUE(committed == document.text()) << document.path << " is stale: run `make docs` and commit the result";
  }
}

}  // namespace
}  // namespace reef::report
