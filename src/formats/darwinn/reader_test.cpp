// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/reader.h"

#include <functional>
#include <random>

#include <flatbuffers/flexbuffers.h>

#include "formats/darwinn/package_generated.h"
#include "formats/darwinn/test_packages.h"

namespace reef::darwinn {
namespace {

namespace fb = darwinn_schema;
using namespace testing;
using Buffer = std::vector<std::uint8_t>;
using flatbuffers::FlatBufferBuilder;

Buffer must_write_executable(const Executable& executable) {
  auto bytes = write_executable(executable);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? std::move(bytes).value() : Buffer();
}

Status options_error(const CustomOptions& options) { return read_custom_options(Bytes(must_write(options))).status(); }

void expect_message(const Status& status, StatusCode code, const std::vector<std::string>& words) {
  EXPECT_EQ(status.code(), code) << status.message();
  for (const std::string& word : words) {
    EXPECT_NE(status.message().find(word), std::string::npos) << "'" << word << "' is missing: " << status.message();
  }
}

// The options with one thing changed in the first program are refused, and the message says where.
void expect_refused(const std::function<void(Executable&)>& change, const std::vector<std::string>& words) {
  CustomOptions options = make_full_options();
  change(options.package.executables[0]);
  std::vector<std::string> all = {"executable 0", "of the custom options"};
  all.insert(all.end(), words.begin(), words.end());
  expect_message(options_error(options), StatusCode::kInvalidInput, all);
}

TEST(DarwinnReader, SlicesTheInputWithoutCopying) {
  const Bytes bytes(must_write(make_options()));
  const auto options = read_custom_options(bytes);
  ASSERT_TRUE(options.ok()) << options.status().message();
  const auto expect_inside = [&](const Bytes& slice) {
    EXPECT_GE(slice.data(), bytes.data());
    EXPECT_LE(slice.data() + slice.size(), bytes.data() + bytes.size());
  };
  for (const Executable& executable : options->package.executables) {
    for (const InstructionChunk& chunk : executable.instruction_chunks) expect_inside(chunk.bitstream);
  }
  expect_inside(options->package.find(ExecutableType::kParameterCaching)->parameters);
  EXPECT_EQ(options->package.find(ExecutableType::kStandAlone), nullptr);
}

// In a .tflite file options stand at any multiple of 4 or 16, and the package in them at multiples of 2.
TEST(DarwinnReader, ReadsAtAnyAddress) {
  const CustomOptions expected = make_full_options();
  const Buffer whole = must_write(expected);
  for (std::size_t shift = 1; shift < 9; ++shift) {
    Buffer shifted(shift, 0);
    shifted.insert(shifted.end(), whole.begin(), whole.end());
    const auto options = read_custom_options(Bytes(shifted).slice(shift, whole.size()));
    ASSERT_TRUE(options.ok()) << options.status().message();
    EXPECT_TRUE(*options == expected);
  }
}

TEST(DarwinnReader, RefusesOtherChips) {
  CustomOptions options = make_options();
  options.package.executables[1].chip = "noronha";
  expect_message(options_error(options), StatusCode::kUnsupported, {"'noronha'", "'beagle'"});
  options.package.executables[1].chip = "";
  expect_message(options_error(options), StatusCode::kUnsupported, {"''"});
}

TEST(DarwinnReader, RefusesNonsenseNamingItsPlace) {
  expect_refused([](Executable& e) { e.scratch_size_bytes = -1; }, {"Executable", "scratch_size_bytes", "-1"});
  expect_refused([](Executable& e) { e.batch_size = -5; }, {"Executable", "batch_size"});
  expect_refused([](Executable& e) { e.used_narrow_memory_bytes = -1; }, {"used_narrow_memory_bytes"});
  expect_refused([](Executable& e) { e.type = static_cast<ExecutableType>(3); }, {"Executable", "type", "3"});
  expect_refused([](Executable& e) { e.input_layers[0].x_dim = -3; }, {"Layer", "x_dim"});
  expect_refused([](Executable& e) { e.input_layers[0].size_bytes = -3; }, {"Layer", "size_bytes"});
  expect_refused([](Executable& e) { e.input_layers[0].data_type = static_cast<DataType>(6); }, {"data_type", "6"});
  expect_refused([](Executable& e) { e.input_layers[0].data_type = static_cast<DataType>(-2); }, {"data_type"});
  expect_refused([](Executable& e) { e.output_layers[0].executions_per_inference = -1; }, {"executions_per_inference"});
  const auto use = [](Executable& e) -> AddressUse& { return *e.instruction_chunks[0].field_offsets[0].use; };
  expect_refused([&](Executable& e) { use(e).base = static_cast<BaseAddress>(4); }, {"AddressUse", "base", "4"});
  expect_refused([&](Executable& e) { use(e).half = static_cast<AddressHalf>(2); }, {"AddressUse", "half"});
  expect_refused([&](Executable& e) { use(e).batch = -1; }, {"AddressUse", "batch"});
  const auto hints = [](Executable& e) -> std::vector<DmaHint>& { return e.dma_hints->hints; };
  expect_refused([&](Executable& e) { hints(e)[0].direction = static_cast<Direction>(2); }, {"DmaHint", "direction"});
  expect_refused([&](Executable& e) { hints(e)[0].hint = InterruptHint{.interrupt = 4}; }, {"interrupt", "4"});
  expect_refused([&](Executable& e) { hints(e)[0].hint = InstructionHint{.chunk_index = 2}; }, {"chunk 2 of 2"});
  expect_refused([&](Executable& e) { hints(e)[0].hint = DescriptorHint{.size_bytes = -1}; }, {"size_bytes"});
  expect_refused([&](Executable& e) { hints(e)[0].hint = DescriptorHint{.offset_bytes = -1}; }, {"offset_bytes"});
}

TEST(DarwinnReader, ChecksThatFieldOffsetsLieInTheirChunk) {
  Executable executable = make_options().package.executables[0];
  std::int32_t& bit_offset = executable.instruction_chunks[0].field_offsets[0].bit_offset;
  bit_offset = 160 * 8 - 32;
  EXPECT_TRUE(read_executable(Bytes(must_write_executable(executable))).ok());
  bit_offset = 160 * 8 - 31;
  expect_message(read_executable(Bytes(must_write_executable(executable))).status(), StatusCode::kInvalidInput,
                 {"FieldOffset", "bit_offset", "bits 1249..1280", "160 bytes"});
  bit_offset = std::numeric_limits<std::int32_t>::max();
  EXPECT_FALSE(read_executable(Bytes(must_write_executable(executable))).ok());
}

TEST(OutputLayout, FindsElementsAndSaysWhereItHasNone) {
  // 3 x 3 elements of 2 channels on 2 x 2 tiles: 2 and 1 rows, 2 and 1 columns.
  OutputLayout layout;
  layout.y_to_tile = {0, 0, 2};
  layout.x_to_tile = {0, 0, 1};
  layout.tile_offset = {0, 8, 12, 16};
  layout.x_to_local_offset = {0, 2, 0};
  layout.y_to_local_row = {0, 1, 0};
  layout.x_to_row_size = {4, 4, 2};
  EXPECT_EQ(layout.index_of(0, 0), 0);
  EXPECT_EQ(layout.index_of(1, 1), 6);
  EXPECT_EQ(layout.index_of(1, 2), 10);
  EXPECT_EQ(layout.index_of(2, 1), 14);
  EXPECT_EQ(layout.index_of(2, 2), 16);
  EXPECT_EQ(layout.index_of(3, 0), std::nullopt);
  EXPECT_EQ(layout.index_of(0, 3), std::nullopt);
  layout.y_to_tile[2] = 3;
  EXPECT_EQ(layout.index_of(2, 2), std::nullopt);
  layout.y_to_tile[2] = -2;
  EXPECT_EQ(layout.index_of(2, 1), std::nullopt);
}

// ---- The map around the package ----

Status map_error(const std::function<void(flexbuffers::Builder&)>& fill) {
  flexbuffers::Builder builder;
  builder.Map([&] { fill(builder); });
  builder.Finish();
  return read_custom_options(Bytes(builder.GetBuffer())).status();
}

TEST(DarwinnReader, RefusesWrongMaps) {
  expect_message(map_error([](auto& map) { map.Int("1", 0); }), StatusCode::kInvalidInput, {"key 4 is missing"});
  expect_message(map_error([](auto& map) { map.String("1", "0"); }), StatusCode::kInvalidInput, {"key 1"});
  expect_message(map_error([](auto& map) { map.Int("4", 0); }), StatusCode::kInvalidInput, {"key 4"});
  expect_message(map_error([](auto& map) { map.Int("5", std::int64_t{1} << 40); }), StatusCode::kInvalidInput,
                 {"key 5"});
  expect_message(map_error([](auto& map) { map.Int("6", 18); }), StatusCode::kInvalidInput, {"not a list"});
  expect_message(map_error([](auto& map) { map.String("4", "no package"); }), StatusCode::kInvalidInput,
                 {"package", "DWN1"});
  expect_message(read_custom_options(Bytes()).status(), StatusCode::kInvalidInput, {"too few"});
  expect_message(read_custom_options(Bytes({5, 4, 1})).status(), StatusCode::kInvalidInput, {"not a map"});
}

TEST(DarwinnReader, MentionsKeysThatItDoesNotKeep) {
  flexbuffers::Builder builder;
  const auto package = write_package(make_options().package);
  ASSERT_TRUE(package.ok());
  builder.Map([&] {
    builder.Key("4");
    builder.String(std::string(package->begin(), package->end()));
    builder.Int("8", 1);
  });
  builder.Finish();
  std::vector<std::string> notes;
  const auto options = read_custom_options(Bytes(builder.GetBuffer()), &notes);
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_TRUE(options->package == make_options().package);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("'8'"), std::string::npos);
}

// ---- Damaged FlatBuffers ----

template <typename T>
Buffer finished(FlatBufferBuilder& builder, flatbuffers::Offset<T> root) {
  builder.Finish(root);
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

TEST(DarwinnReader, MentionsFieldsNewerThanItself) {
  FlatBufferBuilder builder;
  const auto chip = builder.CreateString(kChipName);
  const auto start = builder.StartTable();
  builder.AddOffset(fb::Executable::VT_CHIP, chip);
  builder.AddElement<std::int32_t>(4 + 2 * 20, 7);
  const Buffer bytes = finished(builder, flatbuffers::Offset<fb::Executable>(builder.EndTable(start)));
  std::vector<std::string> notes;
  EXPECT_TRUE(read_executable(Bytes(bytes), 0, &notes).ok());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("Executable"), std::string::npos);
}

TEST(DarwinnReader, RefusesAKindWithoutContent) {
  FlatBufferBuilder builder;
  fb::LayerBuilder layer(builder);
  layer.add_any_info_type(fb::AnyInfo::OutputInfo);
  const auto layers = builder.CreateVector(std::vector{layer.Finish()});
  fb::ExecutableBuilder executable(builder);
  executable.add_output_layers(layers);
  expect_message(read_executable(Bytes(finished(builder, executable.Finish()))).status(), StatusCode::kInvalidInput,
                 {"Layer", "any_info", "a kind without content"});
}

// A list may name the same table any number of times: few bytes, much memory.
TEST(DarwinnReader, LimitsWhatSharedBytesDescribe) {
  FlatBufferBuilder builder;
  const auto values = builder.CreateVector(std::vector<std::int32_t>(100000, 1));
  const auto layout = fb::CreateOutputLayout(builder, values, values, values, values, values, values);
  const auto info = fb::CreateOutputInfo(builder, layout);
  fb::LayerBuilder layer(builder);
  layer.add_any_info_type(fb::AnyInfo::OutputInfo);
  layer.add_any_info(info.Union());
  const auto layers = builder.CreateVector(std::vector(100000, layer.Finish()));
  fb::ExecutableBuilder executable(builder);
  executable.add_output_layers(layers);
  const Buffer bytes = finished(builder, executable.Finish());
  EXPECT_EQ(read_executable(Bytes(bytes)).status().code(), StatusCode::kResourceExhausted);
}

// The same for time: tables may share a vtable of 60,000 bytes.
TEST(DarwinnReader, LimitsTheWorkOnSharedVtables) {
  FlatBufferBuilder builder;
  const auto bits = builder.CreateVector(std::vector<std::uint8_t>(16));
  const auto start = builder.StartTable();
  builder.AddElement<std::uint8_t>(60000, 1);
  const flatbuffers::Offset<fb::FieldOffset> field(builder.EndTable(start));
  const auto fields = builder.CreateVector(std::vector(500000, field));
  const auto chunks = builder.CreateVector(std::vector{fb::CreateInstructionChunk(builder, bits, fields)});
  fb::ExecutableBuilder executable(builder);
  executable.add_instruction_chunks(chunks);
  const Buffer bytes = finished(builder, executable.Finish());
  EXPECT_EQ(read_executable(Bytes(bytes)).status().code(), StatusCode::kResourceExhausted);
}

TEST(DarwinnReader, RefusesOffsetsThatLeadNowhere) {
  const Buffer whole = must_write_executable(make_full_options().package.executables[0]);
  const std::size_t table = flatbuffers::ReadScalar<std::uint32_t>(whole.data());
  const auto* executable = flatbuffers::GetRoot<fb::Executable>(whole.data());
  const auto place_of = [&](int field) {
    return table + reinterpret_cast<const flatbuffers::Table*>(executable)
                       ->GetOptionalFieldOffset(static_cast<flatbuffers::voffset_t>(field));
  };
  const auto error_with = [&](std::size_t at, std::uint32_t value) {
    Buffer bytes = whole;
    flatbuffers::WriteScalar(bytes.data() + at, value);
    return read_executable(Bytes(bytes), 1000).status();
  };
  for (const std::uint32_t value :
       {0u, 1u, 2u, 0x7fffffffu, 0xffffffffu, 0xfffffffcu}) {  // itself, misaligned, outside
    expect_message(error_with(place_of(fb::Executable::VT_PARAMETERS), value), StatusCode::kInvalidInput,
                   {"Executable", "parameters", std::to_string(1000 + place_of(fb::Executable::VT_PARAMETERS))});
    EXPECT_FALSE(error_with(place_of(fb::Executable::VT_NAME), value).ok());
    EXPECT_FALSE(error_with(place_of(fb::Executable::VT_DMA_HINTS), value).ok());
    EXPECT_FALSE(error_with(place_of(fb::Executable::VT_INPUT_LAYERS), value).ok());
    EXPECT_FALSE(error_with(0, value).ok());
    EXPECT_FALSE(error_with(table, value).ok()) << "vtable at distance " << value;
  }
  // Counts that the file cannot hold.
  for (const void* list :
       {static_cast<const void*>(executable->parameters()), static_cast<const void*>(executable->name()),
        static_cast<const void*>(executable->output_layers())}) {
    const auto at = static_cast<std::size_t>(static_cast<const std::uint8_t*>(list) - whole.data());
    EXPECT_FALSE(error_with(at, 0xffffffffu).ok());
    EXPECT_FALSE(error_with(at, 0x40000000u).ok());
    EXPECT_FALSE(error_with(at, static_cast<std::uint32_t>(whole.size())).ok());
  }
}

// A package that can still be read must also be writable, and read back as the same.
template <typename Value>
void expect_survives(const Result<Value>& value, Result<Buffer> (*write)(const Value&),
                     const std::function<Result<Value>(const Bytes&)>& read) {
  if (!value.ok()) {
    EXPECT_FALSE(value.status().message().empty());
    return;
  }
  const auto bytes = write(*value);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto again = read(Bytes(*bytes));
  ASSERT_TRUE(again.ok()) << again.status().message();
  const auto bytes_again = write(*again);
  ASSERT_TRUE(bytes_again.ok());
  EXPECT_TRUE(*bytes_again == *bytes);
}

Result<Executable> read_whole_executable(const Bytes& bytes) { return read_executable(bytes); }
Result<Package> read_whole_package(const Bytes& bytes) { return read_package(bytes); }
Result<CustomOptions> read_whole_options(const Bytes& bytes) { return read_custom_options(bytes); }

TEST(DarwinnReader, RefusesEveryPrefix) {
  const CustomOptions options = make_full_options();
  // The last bytes of a FlatBuffer are those of the first list written: the instructions of the first chunk.
  const Bytes executable(must_write_executable(options.package.executables[0]));
  for (std::size_t size = 0; size < executable.size(); ++size) {
    EXPECT_FALSE(read_executable(executable.slice(0, size)).ok()) << size;
  }
  const Bytes package(write_package(options.package).value());
  for (std::size_t size = 0; size < package.size(); size += 13) {
    EXPECT_FALSE(read_package(package.slice(0, size)).ok()) << size;
  }
  const Bytes whole(must_write(options));
  for (std::size_t size = 0; size < whole.size(); size += size < whole.size() - 400 ? 13 : 1) {
    expect_survives<CustomOptions>(read_custom_options(whole.slice(0, size)), write_custom_options, read_whole_options);
  }
}

TEST(DarwinnReader, SurvivesEveryFlippedBit) {
  const Buffer executable = must_write_executable(make_full_options().package.executables[0]);
  for (std::size_t at = 0; at < executable.size(); ++at) {
    // Padding, parameters and instructions are most of the file and say nothing to the reader.
    if (executable[at] == 0 && at > 8 && executable[at - 1] == 0 && at % 7 != 0) continue;
    for (int bit = 0; bit < 8; ++bit) {
      Buffer damaged = executable;
      damaged[at] = static_cast<std::uint8_t>(damaged[at] ^ 1 << bit);
      expect_survives<Executable>(read_executable(Bytes(damaged)), write_executable, read_whole_executable);
    }
  }
}

TEST(DarwinnReader, SurvivesRandomDamage) {
  std::mt19937 random(7);
  const CustomOptions options = make_full_options();
  const Buffer whole = must_write(options), package = write_package(options.package).value();
  for (int i = 0; i < 3000; ++i) {
    Buffer damaged = i % 2 == 0 ? whole : package;
    for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
      // Half of the damage goes to the tables at either end.
      std::size_t at = random() % damaged.size();
      if (random() % 2 == 0) at = damaged.size() - 1 - random() % 100;
      damaged[at] = static_cast<std::uint8_t>(random());
    }
    if (i % 2 == 0) {
      expect_survives<CustomOptions>(read_custom_options(Bytes(damaged)), write_custom_options, read_whole_options);
    } else {
      expect_survives<Package>(read_package(Bytes(damaged)), write_package, read_whole_package);
    }
  }
}

}  // namespace
}  // namespace reef::darwinn
