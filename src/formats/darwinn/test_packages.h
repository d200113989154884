// SPDX-License-Identifier: Apache-2.0
// Packages that the tests of this folder share.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/darwinn/reader.h"
#include "formats/darwinn/sample_packages.h"
#include "formats/darwinn/writer.h"

namespace reef::darwinn::testing {

inline std::vector<std::uint8_t> must_write(const CustomOptions& options) {
  auto bytes = write_custom_options(options);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? std::move(bytes).value() : std::vector<std::uint8_t>();
}
inline CustomOptions must_read(const std::vector<std::uint8_t>& bytes) {
  std::vector<std::string> notes;
  auto options = read_custom_options(Bytes(bytes), &notes);
  EXPECT_TRUE(options.ok()) << options.status().message();
  EXPECT_TRUE(notes.empty());
  return options.ok() ? std::move(options).value() : CustomOptions();
}

}  // namespace reef::darwinn::testing
