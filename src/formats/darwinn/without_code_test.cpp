// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/without_code.h"

#include <gtest/gtest.h>

#include "formats/darwinn/reader.h"
#include "formats/darwinn/writer.h"

namespace reef::darwinn {
namespace {

TEST(PackageWithoutCode, SurvivesTheFileAndIsRefused) {
  CustomOptions options;
  options.package = package_without_code(13, "reef 9.8.7", "code generation is not there yet");
  const auto bytes = write_custom_options(options);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto again = read_custom_options(Bytes(*bytes));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->package.min_runtime_version, 13);
  EXPECT_TRUE(again->package.executables.empty());
  const Status status = require_code(again->package);
  ASSERT_FALSE(status.ok());
  for (const char* words :
       {"no machine code", "reef 9.8.7", "code generation is not there yet", "reef run", "retarget"}) {
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  }
}

TEST(PackageWithoutCode, APackageWithAProgramPasses) {
  Package package;
  package.executables.push_back(new_executable(ExecutableType::kStandAlone));
  EXPECT_TRUE(require_code(package).ok());
}

}  // namespace
}  // namespace reef::darwinn
