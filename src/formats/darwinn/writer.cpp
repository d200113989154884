// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/writer.h"

#include <new>

#include <flatbuffers/flexbuffers.h>

#include "formats/darwinn/executable_writer.h"

namespace reef::darwinn {
namespace {

constexpr char kWrittenIdentifier[] = "DWN1";
// Offsets have 32 bits, signed in places; tables, texts and page alignment need some room beside the data.
constexpr std::uint64_t kMaxContentBytes = (std::uint64_t{1} << 31) - (std::uint64_t{1} << 26);

Status check_size(std::uint64_t bytes, const char* what) {
  if (bytes <= kMaxContentBytes) return ok_status();
  return make_error(StatusCode::kResourceExhausted,
                    "{} with {} bytes of content cannot be written: the format's offsets reach 2 GiB", what, bytes);
}

std::uint64_t size_of(const std::optional<AddressUse>& use) { return use ? 32 + use->name.size() : 0; }

std::uint64_t size_of(const Layer& layer) {
  std::uint64_t bytes = 256 + layer.name.size();
  if (layer.shape) bytes += 8 * layer.shape->dimensions.size();
  const auto* output = std::get_if<OutputInfo>(&layer.info);
  if (output != nullptr && output->layout) {
    const OutputLayout& layout = *output->layout;
    bytes += 4 * (layout.y_to_tile.size() + layout.x_to_tile.size() + layout.tile_offset.size() +
                  layout.x_to_local_offset.size() + layout.y_to_local_row.size() + layout.x_to_row_size.size());
  }
  if (output != nullptr && output->slices) {
    bytes += 4 * output->slices->offsets.size();
    for (const SliceLayout& row : output->slices->layouts) {
      bytes += 64 + 4 * row.stride.size() + (row.shape ? 8 * row.shape->dimensions.size() : 0);
    }
  }
  return bytes;
}

// Not less than the bytes that it will take, alignment of the whole excepted.
std::uint64_t size_of(const Executable& executable) {
  std::uint64_t bytes = 4096 + executable.name.size() + executable.chip.size() + executable.serialized_model.size() +
                        executable.parameters.size();
  for (const InstructionChunk& chunk : executable.instruction_chunks) {
    bytes += 64 + chunk.bitstream.size();
    for (const FieldOffset& field : chunk.field_offsets) bytes += 64 + size_of(field.use);
  }
  for (const Layer& layer : executable.input_layers) bytes += size_of(layer);
  for (const Layer& layer : executable.output_layers) bytes += size_of(layer);
  if (!executable.dma_hints) return bytes;
  for (const DmaHint& row : executable.dma_hints->hints) {
    bytes += 128;
    if (const auto* descriptor = std::get_if<DescriptorHint>(&row.hint)) bytes += size_of(descriptor->use);
  }
  return bytes;
}

Result<Bytes> write_multi_executable(const std::vector<Executable>& executables) {
  std::uint64_t total = 0;
  for (const Executable& executable : executables) total += size_of(executable) + 2 * kPageBytes;
  REEF_RETURN_IF_ERROR(check_size(total, "a package"));
  BufferWriter buffer;
  std::vector<Place> places;
  for (const Executable& executable : executables) {
    REEF_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> bytes, write_executable(executable));
    places.push_back(buffer.page_text(bytes));
  }
  const Place list = buffer.list(places);
  TableWriter table(buffer, 0);
  table.reference(0, list);
  return Bytes(buffer.finish(table.finish()));
}

// The builder also reads the byte behind the data, which must be zero: hence the copy.
void add_string(flexbuffers::Builder& builder, std::span<const std::uint8_t> data) {
  const std::string text(data.begin(), data.end());
  builder.String(text.c_str(), text.size());
}

// Runs `write`; running out of memory becomes an error.
template <typename Write>
Result<std::vector<std::uint8_t>> guarded(Write write) {
  try {
    return write();
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kResourceExhausted, "not enough memory to write the package");
  }
}

// Leaves out again what read_bare_programs() filled in.
Result<std::vector<std::uint8_t>> write_bare_program(Executable executable) {
  executable.type = ExecutableType::kStandAlone;
  executable.parameter_caching_token = 0;
  executable.chip.clear();
  REEF_RETURN_IF_ERROR(check_size(size_of(executable), "an executable"));
  BufferWriter buffer;
  const Place root = write_executable_table(buffer, executable, true);
  return buffer.finish(root);
}

Result<std::vector<std::uint8_t>> write_package_buffer(const Package& package) {
  std::uint64_t total = package.signature.size() + package.compiler_version.size() + package.model_identifier.size();
  for (const Bytes& chip : package.multi_chip_packages) total += 64 + chip.size();
  BufferWriter buffer;
  TableWriter table(buffer, package.written_defaults);
  if (!package.executables.empty() || table.writes_default(Package::kMultiExecutable)) {
    REEF_ASSIGN_OR_RETURN(const Bytes executables, write_multi_executable(package.executables));
    total += executables.size();
    REEF_RETURN_IF_ERROR(check_size(total, "a package"));
    table.reference(Package::kMultiExecutable, buffer.bytes(executables, kPageBytes));
  }
  REEF_RETURN_IF_ERROR(check_size(total, "a package"));
  if (!package.signature.empty() || table.writes_default(Package::kSignature)) {
    table.reference(Package::kSignature, buffer.bytes(package.signature));
  }
  if (!package.compiler_version.empty() || table.writes_default(Package::kCompilerVersion)) {
    table.reference(Package::kCompilerVersion, buffer.text(package.compiler_version));
  }
  if (!package.multi_chip_packages.empty() || table.writes_default(Package::kMultiChipPackages)) {
    std::vector<Place> chips;
    for (const Bytes& chip : package.multi_chip_packages) {
      TableWriter row(buffer, 0);
      row.reference(0, buffer.bytes(chip));
      chips.push_back(row.finish());
    }
    table.reference(Package::kMultiChipPackages, buffer.list(chips));
  }
  if (!package.model_identifier.empty() || table.writes_default(Package::kModelIdentifier)) {
    table.reference(Package::kModelIdentifier, buffer.text(package.model_identifier));
  }
  table.number(Package::kMinRuntimeVersion, package.min_runtime_version);
  table.number(Package::kKeypairVersion, package.keypair_version);
  table.number(Package::kVirtualChipId, package.virtual_chip_id);
  return buffer.finish(table.finish(), kWrittenIdentifier);
}

}  // namespace

Result<std::vector<std::uint8_t>> write_executable(const Executable& executable) {
  return guarded([&]() -> Result<std::vector<std::uint8_t>> {
    REEF_RETURN_IF_ERROR(check_size(size_of(executable), "an executable"));
    BufferWriter buffer;
    const Place root = write_executable_table(buffer, executable);
    return buffer.finish(root);
  });
}

Result<std::vector<std::uint8_t>> write_package(const Package& package) {
  return guarded([&] { return write_package_buffer(package); });
}

Result<std::vector<std::uint8_t>> write_custom_options(const CustomOptions& options) {
  return guarded([&]() -> Result<std::vector<std::uint8_t>> {
    const Package& contents = options.package;
    Bytes bare_caching;
    const Bytes* caching = options.parameter_caching_package ? &*options.parameter_caching_package : nullptr;
    std::vector<std::uint8_t> package;
    if (contents.is_bare) {
      const bool has_caching = contents.executables.size() == 2;
      REEF_REQUIRE(has_caching || contents.executables.size() == 1, "{} programs without a package",
                   contents.executables.size());
      REEF_ASSIGN_OR_RETURN(package, write_bare_program(contents.executables[0]));
      if (has_caching) {
        REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> bytes, write_bare_program(contents.executables[1]));
        bare_caching = Bytes(std::move(bytes));
        caching = &bare_caching;
      }
    } else {
      REEF_ASSIGN_OR_RETURN(package, write_package(contents));
    }
    std::uint64_t total = package.size();
    if (options.chip_name) total += options.chip_name->size();
    if (caching != nullptr) total += caching->size();
    if (options.chip_versions) total += 4 * options.chip_versions->size();
    for (const Bytes& other : options.other_packages.value_or(std::vector<Bytes>())) total += other.size() + 64;
    REEF_RETURN_IF_ERROR(check_size(total, "a custom op"));
    flexbuffers::Builder builder;
    const std::size_t map = builder.StartMap();
    builder.Int("1", options.version);
    if (options.chip_name) builder.String("2", *options.chip_name);
    if (caching != nullptr) {
      builder.Key("3");
      add_string(builder, caching->span());
    }
    builder.Key("4");
    add_string(builder, package);
    if (options.execution_preference) builder.Int("5", *options.execution_preference);
    if (options.chip_versions) {
      builder.Vector("6", [&] {
        for (const std::int32_t chip : *options.chip_versions) builder.Int(chip);
      });
    }
    if (options.other_packages) {
      builder.Vector("7", [&] {
        for (const Bytes& other : *options.other_packages) add_string(builder, other.span());
      });
    }
    builder.EndMap(map);
    builder.Finish();
    return builder.GetBuffer();
  });
}

}  // namespace reef::darwinn
