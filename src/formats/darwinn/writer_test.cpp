// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/writer.h"

#include "formats/darwinn/package_generated.h"
#include "formats/darwinn/table_writer.h"
#include "formats/darwinn/test_packages.h"
#include "formats/flexbuffer/flex_view.h"

namespace reef::darwinn {
namespace {

namespace fb = darwinn_schema;
using namespace testing;

void expect_round_trip(const CustomOptions& options) {
  const std::vector<std::uint8_t> bytes = must_write(options);
  const CustomOptions again = must_read(bytes);
  EXPECT_TRUE(again == options);
  EXPECT_EQ(must_write(again), bytes);
}

TEST(DarwinnWriter, GivesBackWhatWasRead) {
  expect_round_trip(make_options());
  expect_round_trip(make_full_options());
  expect_round_trip(CustomOptions{});
}

// The sets of keys of the generations seen: min_runtime 10; 12 and 13; 12 to 14.
TEST(DarwinnWriter, WritesTheKeysOfEveryGeneration) {
  CustomOptions oldest = make_options();
  oldest.chip_name = kChipName;
  oldest.chip_versions.reset();
  oldest.other_packages.reset();
  oldest.package.min_runtime_version = 10;
  oldest.package.written_defaults &= ~field_set(Package::kModelIdentifier);
  expect_round_trip(oldest);
  CustomOptions middle = oldest;
  middle.chip_name.reset();
  expect_round_trip(middle);
  middle.execution_preference.reset();
  expect_round_trip(middle);

  const std::vector<std::uint8_t> bytes = must_write(make_options());
  const auto entries = flexbuffer::FlexView::root(bytes)->entries(9);
  ASSERT_TRUE(entries.ok());
  std::string keys;
  for (const flexbuffer::FlexEntry& entry : *entries) keys += entry.key;
  EXPECT_EQ(keys, "14567");
  EXPECT_EQ((*entries)[0].value.as_int(), 0);
  EXPECT_TRUE((*entries)[1].value.as_bytes());
  EXPECT_EQ((*entries)[2].value.as_int(), -1);
  EXPECT_EQ((*entries)[3].value.elements(1).value()[0].as_int(), kBeagleChipVersion);
  EXPECT_TRUE((*entries)[4].value.elements(1)->empty());
}

// Defaults that are in the file stay in the file, and the others stay out of it.
TEST(DarwinnWriter, KeepsWhichDefaultsAreWritten) {
  Executable bare;
  bare.batch_size = 0;
  bare.instruction_chunks.resize(1);
  bare.instruction_chunks[0].bitstream = counted_bytes(8, 0);
  bare.instruction_chunks[0].field_offsets.resize(1);
  Layer& bare_layer = bare.input_layers.emplace_back();
  bare_layer.numerics.emplace();
  OutputInfo bare_info;
  bare_info.layout.emplace();
  bare_info.slices.emplace();
  bare_layer.info = bare_info;
  bare_layer.shape.emplace();
  bare.dma_hints.emplace();
  bare.dma_hints->is_complete = false;
  const auto with_defaults = [&](FieldSet set) {
    Executable result = bare;
    result.written_defaults = set;
    InstructionChunk& chunk = result.instruction_chunks[0];
    chunk.written_defaults = set;
    chunk.field_offsets[0].written_defaults = set;
    chunk.field_offsets[0].use->written_defaults = set;
    result.dma_hints->written_defaults = set;
    Layer& layer = result.input_layers[0];
    layer.written_defaults = set;
    layer.numerics->written_defaults = set;
    layer.shape->written_defaults = set;
    auto& info = std::get<OutputInfo>(layer.info);
    info.written_defaults = set;
    info.layout->written_defaults = set;
    info.slices->written_defaults = set;
    return result;
  };
  const auto none = write_executable(with_defaults(0)), all = write_executable(with_defaults(~FieldSet{0}));
  ASSERT_TRUE(none.ok() && all.ok());
  EXPECT_GT(all->size(), none->size());
  for (const auto& bytes : {*none, *all}) {
    const auto again = read_executable(Bytes(bytes));
    ASSERT_TRUE(again.ok()) << again.status().message();
    const FieldSet numbers = field_set(Executable::kVersion, Executable::kBatchSize, Executable::kEstimatedCycles);
    EXPECT_EQ(again->written_defaults & numbers, bytes == *all ? numbers : 0);
    const auto bytes_again = write_executable(*again);
    ASSERT_TRUE(bytes_again.ok());
    EXPECT_EQ(*bytes_again, bytes);
  }
}

TEST(DarwinnWriter, PutsProgramsAndParametersOnPages) {
  const auto bytes = write_package(make_full_options().package);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->size() % kPageBytes, 0u);
  const auto offset = [&](const void* place) { return static_cast<const std::uint8_t*>(place) - bytes->data(); };
  const auto* multi_bytes = fb::GetPackage(bytes->data())->serialized_multi_executable();
  EXPECT_EQ(offset(multi_bytes->data()) % kPageBytes, 0);
  for (const auto* text : *flatbuffers::GetRoot<fb::MultiExecutable>(multi_bytes->data())->serialized_executables()) {
    EXPECT_EQ(offset(text->data()) % kPageBytes, 0);
    EXPECT_EQ(text->size() % kPageBytes, 0u);
    EXPECT_EQ(offset(flatbuffers::GetRoot<fb::Executable>(text->data())->parameters()->data()) % kPageBytes, 0);
  }
}

TEST(DarwinnWriter, RefusesWhatOffsetsCannotReach) {
  // The same 64 MiB, many times over: nothing of the size is allocated.
  Executable huge;
  huge.parameters = Bytes(std::vector<std::uint8_t>(std::size_t{1} << 26));
  huge.instruction_chunks.resize(31);
  for (InstructionChunk& chunk : huge.instruction_chunks) chunk.bitstream = huge.parameters;
  EXPECT_EQ(write_executable(huge).status().code(), StatusCode::kResourceExhausted);
  Package package;
  package.executables = {huge};
  EXPECT_EQ(write_package(package).status().code(), StatusCode::kResourceExhausted);
}

// ---- The generated code, which knows the schema, finds every value where the writer put it ----

std::string text_of(const flatbuffers::String* text) { return text == nullptr ? "absent" : text->str(); }
template <typename T>
std::vector<T> values_of(const flatbuffers::Vector<T>* values) {
  return values == nullptr ? std::vector<T>() : std::vector<T>(values->begin(), values->end());
}
Bytes bytes_of(const flatbuffers::Vector<std::uint8_t>* values) { return Bytes(values_of(values)); }

template <typename A, typename B>
void expect_same_enum(A a, B b) {
  EXPECT_EQ(static_cast<int>(a), static_cast<int>(b));
}

void expect_same(const fb::AddressUse* wire, const std::optional<AddressUse>& use) {
  ASSERT_EQ(wire != nullptr, use.has_value());
  if (!use) return;
  expect_same_enum(wire->base(), use->base);
  EXPECT_EQ(wire->batch(), use->batch);
  EXPECT_EQ(text_of(wire->name()), use->name);
  expect_same_enum(wire->half(), use->half);
}

void expect_same(const fb::TensorShape* wire, const std::optional<TensorShape>& shape) {
  ASSERT_EQ(wire != nullptr, shape.has_value());
  if (!shape) return;
  ASSERT_EQ(wire->dimensions()->size(), shape->dimensions.size());
  for (std::uint32_t i = 0; i < wire->dimensions()->size(); ++i) {
    EXPECT_EQ(wire->dimensions()->Get(i)->first(), shape->dimensions[i].first);
    EXPECT_EQ(wire->dimensions()->Get(i)->last(), shape->dimensions[i].last);
  }
}

void expect_same(const fb::OutputInfo& wire, const OutputInfo& info) {
  expect_same_enum(wire.data_type(), info.data_type);
  ASSERT_EQ(wire.layout() != nullptr, info.layout.has_value());
  if (info.layout) {
    EXPECT_EQ(values_of(wire.layout()->y_to_tile()), info.layout->y_to_tile);
    EXPECT_EQ(values_of(wire.layout()->x_to_tile()), info.layout->x_to_tile);
    EXPECT_EQ(values_of(wire.layout()->tile_offset()), info.layout->tile_offset);
    EXPECT_EQ(values_of(wire.layout()->x_to_local_offset()), info.layout->x_to_local_offset);
    EXPECT_EQ(values_of(wire.layout()->y_to_local_row()), info.layout->y_to_local_row);
    EXPECT_EQ(values_of(wire.layout()->x_to_row_size()), info.layout->x_to_row_size);
  }
  ASSERT_EQ(wire.slices() != nullptr, info.slices.has_value());
  if (!info.slices) return;
  EXPECT_EQ(values_of(wire.slices()->offsets()), info.slices->offsets);
  ASSERT_EQ(wire.slices()->layouts()->size(), info.slices->layouts.size());
  for (std::uint32_t i = 0; i < wire.slices()->layouts()->size(); ++i) {
    const SliceLayout& row = info.slices->layouts[i];
    expect_same(wire.slices()->layouts()->Get(i)->shape(), row.shape);
    EXPECT_EQ(values_of(wire.slices()->layouts()->Get(i)->stride()), row.stride);
  }
}

void expect_same(const fb::Layer& wire, const Layer& layer) {
  EXPECT_EQ(text_of(wire.name()), layer.name);
  EXPECT_EQ(wire.size_bytes(), layer.size_bytes);
  EXPECT_EQ(wire.y_dim(), layer.y_dim);
  EXPECT_EQ(wire.x_dim(), layer.x_dim);
  EXPECT_EQ(wire.z_dim(), layer.z_dim);
  ASSERT_EQ(wire.numerics() != nullptr, layer.numerics.has_value());
  if (layer.numerics) {
    EXPECT_EQ(wire.numerics()->zero_point(), layer.numerics->zero_point);
    EXPECT_EQ(wire.numerics()->dequantization_factor(), layer.numerics->dequantization_factor);
  }
  expect_same_enum(wire.data_type(), layer.data_type);
  expect_same_enum(wire.any_info_type(), layer.info.index());
  if (const auto* info = std::get_if<OutputInfo>(&layer.info)) expect_same(*wire.any_info_as_OutputInfo(), *info);
  EXPECT_EQ(wire.any_info_as_InputInfo() != nullptr, std::holds_alternative<InputInfo>(layer.info));
  EXPECT_EQ(wire.executions_per_inference(), layer.executions_per_inference);
  EXPECT_EQ(wire.cache_on_dram(), layer.cache_on_dram);
  expect_same(wire.shape(), layer.shape);
}

void expect_same(const fb::DmaHint& wire, const DmaHint& row) {
  expect_same_enum(wire.any_hint_type(), row.hint.index());
  expect_same_enum(wire.direction(), row.direction);
  if (const auto* descriptor = std::get_if<DescriptorHint>(&row.hint)) {
    const fb::DescriptorHint& hint = *wire.any_hint_as_DescriptorHint();
    expect_same(hint.use(), descriptor->use);
    EXPECT_EQ(hint.offset_bytes(), descriptor->offset_bytes);
    EXPECT_EQ(hint.size_bytes(), descriptor->size_bytes);
  }
  if (const auto* instruction = std::get_if<InstructionHint>(&row.hint)) {
    EXPECT_EQ(wire.any_hint_as_InstructionHint()->chunk_index(), instruction->chunk_index);
  }
  if (const auto* interrupt = std::get_if<InterruptHint>(&row.hint)) {
    EXPECT_EQ(wire.any_hint_as_InterruptHint()->interrupt(), interrupt->interrupt);
  }
  EXPECT_EQ(wire.any_hint_as_FenceHint() != nullptr, std::holds_alternative<FenceHint>(row.hint));
}

void expect_same(const fb::FieldOffset& wire, const FieldOffset& field) {
  expect_same(wire.use(), field.use);
  EXPECT_EQ(wire.bit_offset(), field.bit_offset);
}
void expect_same(const fb::InstructionChunk& wire, const InstructionChunk& chunk);

template <typename Wire, typename Rows>
void expect_same_rows(const flatbuffers::Vector<flatbuffers::Offset<Wire>>* wire, const Rows& rows) {
  ASSERT_EQ(wire == nullptr ? 0 : wire->size(), rows.size());
  for (std::uint32_t i = 0; i < rows.size(); ++i) expect_same(*wire->Get(i), rows[i]);
}

void expect_same(const fb::InstructionChunk& wire, const InstructionChunk& chunk) {
  EXPECT_EQ(bytes_of(wire.bitstream()), chunk.bitstream);
  expect_same_rows(wire.field_offsets(), chunk.field_offsets);
}

void expect_same(const fb::Executable& wire, const Executable& executable) {
  EXPECT_EQ(wire.version(), executable.version);
  EXPECT_EQ(text_of(wire.name()), executable.name);
  EXPECT_EQ(bytes_of(wire.serialized_model()), executable.serialized_model);
  EXPECT_EQ(wire.batch_size(), executable.batch_size);
  EXPECT_EQ(wire.scratch_size_bytes(), executable.scratch_size_bytes);
  expect_same_rows(wire.instruction_chunks(), executable.instruction_chunks);
  EXPECT_EQ(bytes_of(wire.parameters()), executable.parameters);
  EXPECT_EQ(wire.dma_hints()->is_complete(), executable.dma_hints->is_complete);
  expect_same_rows(wire.dma_hints()->hints(), executable.dma_hints->hints);
  expect_same_rows(wire.input_layers(), executable.input_layers);
  expect_same_rows(wire.output_layers(), executable.output_layers);
  EXPECT_EQ(text_of(wire.chip()), executable.chip);
  EXPECT_EQ(wire.estimated_cycles_32(), executable.estimated_cycles_32);
  EXPECT_EQ(wire.used_narrow_memory_bytes(), executable.used_narrow_memory_bytes);
  expect_same_enum(wire.type(), executable.type);
  EXPECT_EQ(wire.parameter_caching_token(), executable.parameter_caching_token);
  EXPECT_EQ(wire.use_tpu_dram_for_parameters(), executable.use_tpu_dram_for_parameters);
  EXPECT_EQ(wire.estimated_cycles(), executable.estimated_cycles);
}

TEST(DarwinnWriter, AgreesWithTheSchema) {
  const Package package = make_full_options().package;
  const auto bytes = write_package(package);
  ASSERT_TRUE(bytes.ok());
  flatbuffers::Verifier verifier(bytes->data(), bytes->size());
  ASSERT_TRUE(fb::VerifyPackageBuffer(verifier));
  const fb::Package& wire = *fb::GetPackage(bytes->data());
  EXPECT_EQ(wire.min_runtime_version(), package.min_runtime_version);
  EXPECT_EQ(bytes_of(wire.signature()), package.signature);
  EXPECT_EQ(wire.keypair_version(), package.keypair_version);
  EXPECT_EQ(text_of(wire.compiler_version()), package.compiler_version);
  EXPECT_EQ(wire.virtual_chip_id(), package.virtual_chip_id);
  ASSERT_EQ(wire.multi_chip_packages()->size(), package.multi_chip_packages.size());
  for (std::uint32_t i = 0; i < wire.multi_chip_packages()->size(); ++i) {
    EXPECT_EQ(bytes_of(wire.multi_chip_packages()->Get(i)->serialized_package()), package.multi_chip_packages[i]);
  }
  EXPECT_EQ(text_of(wire.model_identifier()), package.model_identifier);
  const auto* multi_bytes = wire.serialized_multi_executable();
  flatbuffers::Verifier multi_verifier(multi_bytes->data(), multi_bytes->size());
  ASSERT_TRUE(multi_verifier.VerifyBuffer<fb::MultiExecutable>());
  const auto* texts = flatbuffers::GetRoot<fb::MultiExecutable>(multi_bytes->data())->serialized_executables();
  ASSERT_EQ(texts->size(), package.executables.size());
  for (std::uint32_t i = 0; i < texts->size(); ++i) {
    const auto* data = texts->Get(i)->Data();
    flatbuffers::Verifier executable_verifier(data, texts->Get(i)->size());
    ASSERT_TRUE(executable_verifier.VerifyBuffer<fb::Executable>());
    expect_same(*flatbuffers::GetRoot<fb::Executable>(data), package.executables[i]);
  }
}

}  // namespace
}  // namespace reef::darwinn
