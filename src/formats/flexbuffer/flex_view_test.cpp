// SPDX-License-Identifier: Apache-2.0
#include "formats/flexbuffer/flex_view.h"

#include <map>
#include <string>

#include <flatbuffers/flexbuffers.h>
#include <gtest/gtest.h>

namespace reef::flexbuffer {
namespace {

using Buffer = std::vector<std::uint8_t>;

Buffer sample() {
  flexbuffers::Builder builder;
  builder.Map([&] {
    builder.Null("null");
    builder.Int("int", -300);
    builder.UInt("huge", ~std::uint64_t{0});
    builder.Double("double", 0.1);
    builder.Bool("bool", true);
    builder.IndirectInt("indirect", -7);
    builder.IndirectFloat("indirect float", 0.5f);
    builder.String("string", "some text");
    builder.Key("blob");
    builder.Blob("\1\2\3", 3);
    builder.Vector("vector", [&] {
      builder.Int(1);
      builder.String("two");
    });
    builder.TypedVector("typed", [&] {
      builder.Int(5);
      builder.Int(-6);
    });
    const bool bools[] = {true, false, true};
    builder.Key("bools");
    builder.Vector(bools, 3);
    const float fixed[] = {1.5f, 2.5f, 3.5f};
    builder.Key("fixed");
    builder.FixedTypedVector(fixed, 3);
    builder.Map("map", [&] { builder.Int("inner", 9); });
  });
  builder.Finish();
  return builder.GetBuffer();
}

std::map<std::string, FlexView> fields_of(const Buffer& buffer) {
  std::map<std::string, FlexView> result;
  const auto root = FlexView::root(buffer);
  EXPECT_TRUE(root.ok()) << root.status().message();
  const auto entries = root->entries(100);
  EXPECT_TRUE(entries.ok()) << entries.status().message();
  for (const FlexEntry& entry : *entries) result.emplace(entry.key, entry.value);
  return result;
}

std::string text_of(const Buffer& buffer, const FlexView& view) {
  const auto range = view.as_bytes();
  return range ? std::string(buffer.begin() + static_cast<std::ptrdiff_t>(range->offset),
                             buffer.begin() + static_cast<std::ptrdiff_t>(range->offset + range->size))
               : "no bytes";
}

TEST(FlexView, ReadsEveryKind) {
  const Buffer buffer = sample();
  const auto fields = fields_of(buffer);
  ASSERT_EQ(fields.size(), 14u);
  EXPECT_TRUE(fields.at("null").is_null());
  EXPECT_EQ(fields.at("int").as_int(), -300);
  EXPECT_EQ(fields.at("int").as_double(), -300);
  EXPECT_EQ(fields.at("huge").as_int(), std::nullopt);
  EXPECT_EQ(fields.at("huge").as_double(), 18446744073709551615.0);
  EXPECT_EQ(fields.at("double").as_double(), 0.1);
  EXPECT_EQ(fields.at("double").as_int(), std::nullopt);
  EXPECT_EQ(fields.at("bool").as_int(), 1);
  EXPECT_EQ(fields.at("indirect").as_int(), -7);
  EXPECT_EQ(fields.at("indirect float").as_double(), 0.5);
  EXPECT_EQ(text_of(buffer, fields.at("string")), "some text");
  EXPECT_EQ(fields.at("string").as_int(), std::nullopt);
  EXPECT_EQ(text_of(buffer, fields.at("blob")), "\1\2\3");
  EXPECT_EQ(text_of(buffer, fields.at("int")), "no bytes");
}

TEST(FlexView, ReadsListsOfEveryKind) {
  const Buffer buffer = sample();
  const auto fields = fields_of(buffer);
  const auto mixed = fields.at("vector").elements(2);
  ASSERT_TRUE(mixed.ok() && mixed->size() == 2);
  EXPECT_EQ((*mixed)[0].as_int(), 1);
  EXPECT_EQ(text_of(buffer, (*mixed)[1]), "two");
  const auto typed = fields.at("typed").elements(2);
  ASSERT_TRUE(typed.ok() && typed->size() == 2);
  EXPECT_EQ((*typed)[1].as_int(), -6);
  const auto bools = fields.at("bools").elements(3);
  ASSERT_TRUE(bools.ok() && bools->size() == 3);
  EXPECT_EQ((*bools)[1].as_int(), 0);
  EXPECT_EQ((*bools)[2].as_int(), 1);
  const auto fixed = fields.at("fixed").elements(3);
  ASSERT_TRUE(fixed.ok() && fixed->size() == 3);
  EXPECT_EQ((*fixed)[2].as_double(), 3.5);
  const auto inner = fields.at("map").entries(1);
  ASSERT_TRUE(inner.ok() && inner->size() == 1);
  EXPECT_EQ((*inner)[0].key, "inner");
  EXPECT_EQ((*inner)[0].value.as_int(), 9);
  EXPECT_FALSE(fields.at("vector").elements(1).ok());
  EXPECT_FALSE(fields.at("vector").entries(9).ok());
  EXPECT_FALSE(fields.at("int").elements(9).ok());
}

void visit(const Buffer& buffer, const FlexView& view, int depth) {
  (void)view.as_double();
  (void)view.as_int();
  if (const auto range = view.as_bytes()) {
    ASSERT_LE(range->offset, buffer.size());
    ASSERT_LE(range->size, buffer.size() - range->offset);
  }
  if (depth == 0) return;
  const auto elements = view.elements(20);
  if (elements.ok()) {
    for (const FlexView& element : *elements) visit(buffer, element, depth - 1);
  }
  const auto entries = view.entries(20);
  if (!entries.ok()) return;
  for (const FlexEntry& entry : *entries) ASSERT_LT(entry.key.size(), 256u);
}

// Damage may go unnoticed but must never lead outside (run under the sanitizers).
TEST(FlexView, SurvivesDamage) {
  const Buffer whole = sample();
  const auto try_buffer = [](const Buffer& buffer) {
    const auto root = FlexView::root(buffer);
    if (root.ok()) visit(buffer, *root, 3);
  };
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const auto middle = whole.begin() + static_cast<std::ptrdiff_t>(cut);
    try_buffer(Buffer(whole.begin(), middle));
    try_buffer(Buffer(middle, whole.end()));
    for (int bit = 0; bit < 8; ++bit) {
      Buffer damaged = whole;
      damaged[cut] = static_cast<std::uint8_t>(damaged[cut] ^ 1 << bit);
      try_buffer(damaged);
    }
  }
}

}  // namespace
}  // namespace reef::flexbuffer
