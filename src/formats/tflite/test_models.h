// SPDX-License-Identifier: Apache-2.0
// Models for the tests of this folder.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"

namespace reef::tflite::testing {

// A model that says something in every field of the IR that needs no special case.
ir::Model make_full_model();

// One ADD of two inputs.
ir::Model make_small_model();

inline std::vector<std::uint8_t> must_write(const ir::Model& model) {
  auto file = write_model(model);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.ok() ? std::move(file).value() : std::vector<std::uint8_t>();
}
inline ir::Model must_read(const std::vector<std::uint8_t>& file, std::vector<std::string>* notes = nullptr) {
  auto model = read_model(Bytes(file), notes);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? std::move(model).value() : ir::Model();
}
inline Status read_error(const std::vector<std::uint8_t>& file) { return read_model(Bytes(file)).status(); }

// Saving and loading gives the same model back, and saving that gives the same bytes.
inline void expect_round_trip(const ir::Model& model) {
  const std::vector<std::uint8_t> file = must_write(model);
  const ir::Model again = must_read(file);
  EXPECT_TRUE(again == model);
  EXPECT_EQ(must_write(again), file);
}

}  // namespace reef::tflite::testing
