// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/reader.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <new>

#include "base/sha256.h"
#include "formats/darwinn/executable_reader.h"
#include "formats/darwinn/wire.h"
#include "formats/flexbuffer/flex_view.h"

namespace reef::darwinn {
namespace {

using flexbuffer::FlexEntry;
using flexbuffer::FlexView;

constexpr char kPackageIdentifier[] = "DWN1";
// Every file seen has at most 5 keys and 2 programs; the format has 7 keys. Chips beside the Edge TPU: none seen.
constexpr std::size_t kMaxKeys = 64, kMaxExecutables = 64, kMaxChips = 64, kMaxTextBytes = 256;

void read_executables(const FlatBuffer& package, const Bytes& serialized, Package& result) {
  const auto base = static_cast<std::size_t>(serialized.data() - package.bytes().data()) + package.base();
  const FlatBuffer buffer(serialized, base, "multi-executable", package.state());
  FieldSet written_defaults = 0;
  Table table = buffer.root("MultiExecutable", "", written_defaults);
  const std::vector<Bytes> executables = table.byte_lists(0, "serialized_executables");
  table.note_newer_fields(1);
  if (executables.size() > kMaxExecutables) {
    return table.fail_field(0, "serialized_executables", fmt::format("{} programs", executables.size()));
  }
  for (const Bytes& bytes : executables) {
    if (!buffer.ok()) return;
    const auto at = static_cast<std::size_t>(bytes.data() - serialized.data());
    const FlatBuffer executable(bytes, base + at, fmt::format("executable {}", result.executables.size()),
                                package.state());
    result.executables.push_back(read_executable_buffer(executable));
  }
}

Package read_package_buffer(const FlatBuffer& buffer) {
  Package result;
  Table table = buffer.root("Package", kPackageIdentifier, result.written_defaults);
  result.min_runtime_version = table.number<std::int32_t>(Package::kMinRuntimeVersion, "min_runtime_version");
  const Bytes executables = table.bytes(Package::kMultiExecutable, "serialized_multi_executable");
  result.signature = table.bytes(Package::kSignature, "signature");
  result.keypair_version = table.number<std::int32_t>(Package::kKeypairVersion, "keypair_version");
  result.compiler_version = table.text(Package::kCompilerVersion, "compiler_version");
  result.virtual_chip_id = table.number<std::int32_t>(Package::kVirtualChipId, "virtual_chip_id");
  for (const std::size_t at : table.children(Package::kMultiChipPackages, "multi_chip_packages", sizeof(Bytes))) {
    FieldSet written_defaults = 0;
    Table row(buffer, at, "SerializedPackage", written_defaults);
    result.multi_chip_packages.push_back(row.bytes(0, "serialized_package"));
    row.note_newer_fields(1);
    if (!table.ok()) break;
  }
  result.model_identifier = table.text(Package::kModelIdentifier, "model_identifier");
  table.note_newer_fields(Package::kModelIdentifier + 1);
  if (!executables.empty() && table.ok()) read_executables(buffer, executables, result);
  // The list in it is what counts.
  if (result.executables.empty() && table.has(Package::kMultiExecutable)) {
    result.written_defaults |= field_set(Package::kMultiExecutable);
  }
  return result;
}

Result<std::int32_t> read_int(const FlexView& value, std::string_view key) {
  const std::optional<std::int64_t> number = value.as_int();
  REEF_REQUIRE(number && *number >= std::numeric_limits<std::int32_t>::min() &&
                   *number <= std::numeric_limits<std::int32_t>::max(),
               "byte {} of the custom options: the value of key {} is not a 32-bit number", value.offset(), key);
  return static_cast<std::int32_t>(*number);
}

Result<Bytes> read_bytes(const Bytes& options, const FlexView& value, std::string_view key) {
  const std::optional<FlexView::Range> range = value.as_bytes();
  REEF_REQUIRE(range, "byte {} of the custom options: the value of key {} is not a string within the options",
               value.offset(), key);
  return options.slice(range->offset, range->size);
}

bool has_identifier(const Bytes& package) {
  const std::string_view wanted = kPackageIdentifier;
  const auto bytes = package.span();
  return bytes.size() >= 4 + wanted.size() && std::equal(wanted.begin(), wanted.end(), bytes.begin() + 4);
}

// Programs that were compiled together have a token in common. Bare ones have none, and what the chip holds must not be
// taken for another model's: theirs comes from the bytes of the parameters.
std::uint64_t token_of(const Bytes& parameters) {
  const std::string digest = sha256_hex(parameters.span());
  std::uint64_t token = 0;
  std::from_chars(digest.data(), digest.data() + 16, token, 16);
  return token == 0 ? 1 : token;
}

// The programs of files without packages: `execution` under key 4, and perhaps one that caches parameters under key 3.
Package read_bare_programs(const Bytes& options, const Bytes& execution, const std::optional<Bytes>& caching,
                           ReadState& state) {
  Package result;
  result.is_bare = true;
  result.min_runtime_version = 0;
  result.compiler_version.clear();
  result.written_defaults = 0;
  const auto read = [&](const Bytes& bytes, const char* name) {
    const auto at = static_cast<std::size_t>(bytes.data() - options.data());
    result.executables.push_back(read_executable_buffer(FlatBuffer(bytes, at, name, state), true));
  };
  read(execution, "bare program");
  if (caching) read(*caching, "bare parameter-caching program");
  result.executables[0].type = caching ? ExecutableType::kExecutionOnly : ExecutableType::kStandAlone;
  if (caching) result.executables[1].type = ExecutableType::kParameterCaching;
  const std::uint64_t token = caching ? token_of(result.executables[1].parameters) : 0;
  for (Executable& executable : result.executables) executable.parameter_caching_token = token;
  return result;
}

struct Reading {
  const Bytes& options;
  ReadState& state;
  CustomOptions result;
  std::optional<Bytes> package;
};

Status read_entry(Reading& reading, const FlexEntry& entry) {
  CustomOptions& result = reading.result;
  if (entry.key == "1") {
    REEF_ASSIGN_OR_RETURN(result.version, read_int(entry.value, entry.key));
  } else if (entry.key == "2") {
    REEF_ASSIGN_OR_RETURN(const Bytes name, read_bytes(reading.options, entry.value, entry.key));
    REEF_REQUIRE(name.size() <= kMaxTextBytes, "byte {} of the custom options: the chip's name (key 2) has {} bytes",
                 entry.value.offset(), name.size());
    result.chip_name = std::string(name.span().begin(), name.span().end());
  } else if (entry.key == "3") {
    REEF_ASSIGN_OR_RETURN(result.parameter_caching_package, read_bytes(reading.options, entry.value, entry.key));
  } else if (entry.key == "4") {
    REEF_ASSIGN_OR_RETURN(reading.package, read_bytes(reading.options, entry.value, entry.key));
  } else if (entry.key == "5") {
    REEF_ASSIGN_OR_RETURN(result.execution_preference, read_int(entry.value, entry.key));
  } else if (entry.key == "6") {
    REEF_ASSIGN_OR_RETURN(const std::vector<FlexView> chips, entry.value.elements(kMaxChips));
    result.chip_versions.emplace();
    for (const FlexView& chip : chips) {
      REEF_ASSIGN_OR_RETURN(const std::int32_t version, read_int(chip, entry.key));
      result.chip_versions->push_back(version);
    }
  } else if (entry.key == "7") {
    REEF_ASSIGN_OR_RETURN(const std::vector<FlexView> packages, entry.value.elements(kMaxChips));
    result.other_packages.emplace();
    for (const FlexView& package : packages) {
      REEF_ASSIGN_OR_RETURN(Bytes bytes, read_bytes(reading.options, package, entry.key));
      if (!reading.state.charge(bytes.size())) return reading.state.status;
      result.other_packages->push_back(std::move(bytes));
    }
  } else {
    reading.state.note(fmt::format("the custom options' key '{}' is not known and not kept when saving", entry.key));
  }
  return ok_status();
}

Result<CustomOptions> read_options(const Bytes& bytes, ReadState& state) {
  REEF_ASSIGN_OR_RETURN(const FlexView root, FlexView::root(bytes.span()));
  REEF_ASSIGN_OR_RETURN(const std::vector<FlexEntry> entries, root.entries(kMaxKeys));
  Reading reading{bytes, state, {}, std::nullopt};
  reading.result.execution_preference.reset();
  reading.result.chip_versions.reset();
  reading.result.other_packages.reset();
  for (const FlexEntry& entry : entries) REEF_RETURN_IF_ERROR(read_entry(reading, entry));
  REEF_REQUIRE(reading.package, "the custom options hold no package: key 4 is missing among {} keys", entries.size());
  const auto at = static_cast<std::size_t>(reading.package->data() - bytes.data());
  if (has_identifier(*reading.package)) {
    reading.result.package = read_package_buffer(FlatBuffer(*reading.package, at, "package", state));
    return std::move(reading.result);
  }
  reading.result.package = read_bare_programs(bytes, *reading.package, reading.result.parameter_caching_package, state);
  reading.result.parameter_caching_package.reset();
  if (!state.status.ok()) {
    state.status = state.status.in(fmt::format(
        "the identifier {} is missing: this is no package, and no program as files of 2018 and 2019 hold it either",
        kPackageIdentifier));
  }
  return std::move(reading.result);
}

// Runs `read` with a fresh state and turns what is in it into a Result.
template <typename T, typename Read>
Result<T> read_with_state(const Bytes& bytes, std::vector<std::string>* notes, Read read) {
  try {
    ReadState state(bytes.size());
    Result<T> result = read(state);
    if (notes != nullptr) *notes = std::move(state.notes);
    if (!state.status.ok()) return state.status;
    return result;
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kResourceExhausted, "not enough memory to read the package");
  }
}

}  // namespace

Result<CustomOptions> read_custom_options(const Bytes& bytes, std::vector<std::string>* notes) {
  return read_with_state<CustomOptions>(bytes, notes, [&](ReadState& state) { return read_options(bytes, state); });
}

Result<Package> read_package(const Bytes& bytes, std::size_t base, std::vector<std::string>* notes) {
  return read_with_state<Package>(bytes, notes, [&](ReadState& state) -> Result<Package> {
    return read_package_buffer(FlatBuffer(bytes, base, "package", state));
  });
}

Result<Executable> read_executable(const Bytes& bytes, std::size_t base, std::vector<std::string>* notes) {
  return read_with_state<Executable>(bytes, notes, [&](ReadState& state) -> Result<Executable> {
    return read_executable_buffer(FlatBuffer(bytes, base, "executable", state));
  });
}

}  // namespace reef::darwinn
