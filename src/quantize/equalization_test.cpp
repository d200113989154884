// SPDX-License-Identifier: Apache-2.0
#include "quantize/equalization.h"

#include <gtest/gtest.h>

namespace reef::quantize {
namespace {

TEST(Equalization, IsKeptInTheModelAndReplaced) {
  ir::Model model;
  store_equalization({}, model);
  EXPECT_TRUE(model.metadata.empty());
  const NamedFactors factors = {{"a \"b\"", {1, 0.25f, 3}}, {"c", {1, 0.25f, 3}}, {"d", {0.0625f}}};
  store_equalization({{"x", {2}}}, model);
  store_equalization(factors, model);
  EXPECT_EQ(model.metadata.size(), 1u);
  EXPECT_EQ(stored_equalization(model), factors);
}

TEST(Equalization, WhatMakesNoSenseIsLeftOut) {
  for (const std::string text :
       {"", "[]", "{", R"({"factors":[[1]]})", R"({"factors":3,"tensors":{"a":0}})",
        R"({"factors":[[1]],"tensors":[0]})", R"({"factors":[[1]],"tensors":{"a":1}})",
        R"({"factors":[[1]],"tensors":{"a":-1}})", R"({"factors":[[1]],"tensors":{"a":0.5}})",
        R"({"factors":[[1,0]],"tensors":{"a":0}})", R"({"factors":[[1,"2"]],"tensors":{"a":0}})",
        R"({"factors":[[1e99]],"tensors":{"a":0}})", R"({"factors":[[]],"tensors":{"a":0}})",
        R"({"factors":[7],"tensors":{"a":0}})"}) {
    ir::Model model;
    model.buffers.resize(2);
    model.buffers[1].data = Bytes(std::vector<std::uint8_t>(text.begin(), text.end()));
    model.metadata.push_back({std::string(kEqualizationMetadata), 1});
    EXPECT_TRUE(stored_equalization(model).empty()) << text;
    model.metadata[0].buffer = 7;
    EXPECT_TRUE(stored_equalization(model).empty());
  }
}

}  // namespace
}  // namespace reef::quantize
