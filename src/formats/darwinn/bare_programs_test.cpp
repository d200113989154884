// SPDX-License-Identifier: Apache-2.0
// Files of 2018 and 2019, which hold programs without a package.
#include <flatbuffers/flatbuffers.h>
#include <flatbuffers/flexbuffers.h>
#include <gtest/gtest.h>

#include "formats/darwinn/reader.h"
#include "formats/darwinn/sample_packages.h"
#include "formats/darwinn/writer.h"

namespace reef::darwinn {
namespace {

using testing::counted_bytes;

// Files of 2018 and 2019: the programs themselves under keys 3 and 4, without type, token and chip, and with layers
// that have no data type. Written here as those compilers did, slot by slot.
std::string bare_program(const Bytes& parameters, const std::string& layer_name) {
  flatbuffers::FlatBufferBuilder builder;
  const auto info = [&] {
    const auto start = builder.StartTable();
    return flatbuffers::Offset<void>(builder.EndTable(start));
  };
  std::vector<flatbuffers::Offset<void>> layers;
  if (!layer_name.empty()) {
    const auto name = builder.CreateString(layer_name);
    const auto input = info();
    const auto start = builder.StartTable();
    builder.AddOffset(4 + 2 * 0, name);
    builder.AddElement<std::int32_t>(4 + 2 * 1, 16, 0);
    builder.AddElement<std::int32_t>(4 + 2 * 2, 2, 0);
    builder.AddElement<std::int32_t>(4 + 2 * 3, 2, 0);
    builder.AddElement<std::int32_t>(4 + 2 * 4, 3, 0);
    builder.AddElement<std::uint8_t>(4 + 2 * 6, 2, 0);  // an input
    builder.AddOffset(4 + 2 * 7, input);
    layers.emplace_back(builder.EndTable(start));
  }
  const auto list = builder.CreateVector(layers);
  const auto data = builder.CreateVector(parameters.data(), parameters.size());
  const auto name = builder.CreateString("bare");
  const auto start = builder.StartTable();
  builder.AddOffset(4 + 2 * 1, name);
  builder.AddElement<std::int32_t>(4 + 2 * 3, 1, 0);
  builder.AddOffset(4 + 2 * 6, data);
  builder.AddOffset(4 + 2 * 8, list);
  builder.Finish(flatbuffers::Offset<void>(builder.EndTable(start)));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

TEST(DarwinnReader, ReadsProgramsWithoutAPackage) {
  flexbuffers::Builder builder;
  builder.Map([&] {
    builder.Int("1", 0);
    builder.String("2", "beagle");
    builder.Key("3");
    builder.String(bare_program(counted_bytes(100, 3), ""));
    builder.Key("4");
    builder.String(bare_program(Bytes(), "input"));
  });
  builder.Finish();
  const auto options = read_custom_options(Bytes(builder.GetBuffer()));
  ASSERT_TRUE(options.ok()) << options.status().message();
  const Package& package = options->package;
  EXPECT_TRUE(package.is_bare);
  EXPECT_FALSE(options->parameter_caching_package.has_value());
  const Executable* execution = package.find(ExecutableType::kExecutionOnly);
  const Executable* caching = package.find(ExecutableType::kParameterCaching);
  ASSERT_TRUE(execution != nullptr && caching != nullptr);
  EXPECT_EQ(execution->chip, "beagle");
  EXPECT_EQ(caching->parameters.size(), 100u);
  EXPECT_NE(execution->parameter_caching_token, 0u);
  EXPECT_EQ(execution->parameter_caching_token, caching->parameter_caching_token);
  ASSERT_EQ(execution->input_layers.size(), 1u);
  const Layer& layer = execution->input_layers[0];
  EXPECT_EQ(layer.name, "input");
  EXPECT_EQ(layer.z_dim, 3);
  EXPECT_EQ(layer.data_type, DataType::kUint8);
  EXPECT_TRUE(std::holds_alternative<InputInfo>(layer.info));
  // Written back, it is read as the same again.
  const auto written = write_custom_options(*options);
  ASSERT_TRUE(written.ok()) << written.status().message();
  const auto again = read_custom_options(Bytes(*written));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE(*again == *options);
}

}  // namespace
}  // namespace reef::darwinn
