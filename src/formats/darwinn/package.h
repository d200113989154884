// SPDX-License-Identifier: Apache-2.0
// The contents of an Edge TPU custom op as plain structures: everything its bytes say (docs/formats/darwinn.md).
//
// CustomOptions > Package > Executable > InstructionChunk. Instructions and parameters are slices of the bytes they
// were read from. Fields are named as in package.fbs; what they mean beyond that file is said here.
//
// A default value need not be written: a file may hold the field all the same, and an empty list or text may be absent
// or present. Which of the two is no part of the meaning, but of the bytes; `written_defaults` keeps it, so that
// reading and writing gives the same bytes. Code that does not care leaves it alone: what it says about a field that
// does not hold its default is ignored.
//
// A structure built by hand may be nonsense; one from the reader has passed the checks listed in reader.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/at.h"
#include "base/bytes.h"
#include "chip/machine.h"

namespace reef::darwinn {

// The chip of all Coral products. Names of other chips exist in Google's tools; Reef knows nothing of those chips.
inline constexpr std::string_view kChipName = chip::kChipName;

// A set of a table's fields: bit n is the field in slot n, numbered by the table's `Field` enum.
using FieldSet = std::uint32_t;
template <typename... Fields>
constexpr FieldSet field_set(Fields... fields) {
  return (FieldSet{0} | ... | (FieldSet{1} << static_cast<unsigned>(fields)));
}

// ---- Addresses that the driver fills in ----

enum class BaseAddress : std::int16_t { kOutput = 0, kInput = 1, kParameter = 2, kScratch = 3 };
enum class AddressHalf : std::int16_t { kLower = 0, kUpper = 1 };

// The address of which buffer, and which half of it.
struct AddressUse {
  enum Field { kBase, kBatch, kName, kHalf };
  BaseAddress base = BaseAddress::kOutput;
  std::int32_t batch = 0;
  std::string name;  // of the layer; empty for parameters and scratch memory
  AddressHalf half = AddressHalf::kLower;
  FieldSet written_defaults = field_set(kName);
  friend bool operator==(const AddressUse&, const AddressUse&) = default;
};

// An instruction's 32-bit immediate that takes (half of) an address.
struct FieldOffset {
  enum Field { kUse, kBitOffset };
  std::optional<AddressUse> use = AddressUse{};  // absent: the field has no purpose that this format can express
  std::int32_t bit_offset = 0;                   // from the start of the chunk
  FieldSet written_defaults = 0;
  friend bool operator==(const FieldOffset&, const FieldOffset&) = default;
};

// Long programs come in several chunks, of some 256 KiB each in the one file seen that has more than one.
struct InstructionChunk {
  enum Field { kBitstream, kFieldOffsets };
  Bytes bitstream;
  std::vector<FieldOffset> field_offsets;
  FieldSet written_defaults = field_set(kBitstream, kFieldOffsets);
  friend bool operator==(const InstructionChunk&, const InstructionChunk&) = default;
};

// ---- The order of transfers between host and chip ----

struct DescriptorHint {
  enum Field { kUse, kOffsetBytes, kSizeBytes };
  std::optional<AddressUse> use = AddressUse{};
  std::int32_t offset_bytes = 0;  // from the base address
  std::int32_t size_bytes = 0;
  FieldSet written_defaults = 0;
  friend bool operator==(const DescriptorHint&, const DescriptorHint&) = default;
};
struct InstructionHint {
  enum Field { kChunkIndex };
  std::int32_t chunk_index = 0;  // of Executable::instruction_chunks
  FieldSet written_defaults = 0;
  friend bool operator==(const InstructionHint&, const InstructionHint&) = default;
};
struct InterruptHint {
  enum Field { kInterrupt };
  std::int16_t interrupt = 0;  // 0..3
  FieldSet written_defaults = 0;
  friend bool operator==(const InterruptHint&, const InterruptHint&) = default;
};
// Everything before it must be complete before anything after it starts.
struct FenceHint {
  friend bool operator==(const FenceHint&, const FenceHint&) = default;
};

enum class Direction : std::int16_t { kToDevice = 0, kToHost = 1 };

struct DmaHint {
  enum Field { kAnyHintType, kAnyHint, kDirection };
  std::variant<std::monostate, DescriptorHint, InstructionHint, InterruptHint, FenceHint> hint;  // index = union code
  Direction direction = Direction::kToDevice;
  FieldSet written_defaults = 0;
  friend bool operator==(const DmaHint&, const DmaHint&) = default;
};

struct DmaHints {
  enum Field { kHints, kIsComplete };
  std::vector<DmaHint> hints;
  bool is_complete = true;  // the list covers every transfer of the program
  FieldSet written_defaults = field_set(kHints);
  friend bool operator==(const DmaHints&, const DmaHints&) = default;
};

// ---- Inputs and outputs ----

// Where the elements of an output are in what the chip sends, which is tile after tile. All in elements, not bytes: the
// runtime multiplies by the size of one (and so does the only int16 output seen; Google's schema says bytes).
struct OutputLayout {
  enum Field { kYToTile, kXToTile, kTileOffset, kXToLocalOffset, kYToLocalRow, kXToRowSize };
  std::vector<std::int32_t> y_to_tile, x_to_tile, tile_offset, x_to_local_offset, y_to_local_row, x_to_row_size;
  FieldSet written_defaults = field_set(kYToTile, kXToTile, kTileOffset, kXToLocalOffset, kYToLocalRow, kXToRowSize);

  // Index of element (y, x, 0); the other z follow. Nothing where the tables do not cover it.
  std::optional<std::int64_t> index_of(std::size_t y, std::size_t x) const {
    if (y >= y_to_tile.size() || y >= y_to_local_row.size() || x >= x_to_tile.size() || x >= x_to_local_offset.size() ||
        x >= x_to_row_size.size()) {
      return std::nullopt;
    }
    const std::int64_t tile = std::int64_t{y_to_tile[y]} + x_to_tile[x];
    if (tile < 0 || tile >= static_cast<std::int64_t>(tile_offset.size())) return std::nullopt;
    return tile_offset[at(tile)] + std::int64_t{y_to_local_row[y]} * x_to_row_size[x] + x_to_local_offset[x];
  }
  friend bool operator==(const OutputLayout&, const OutputLayout&) = default;
};

// Both ends belong to it.
struct Range {
  std::int32_t first = 0, last = 0;
  friend bool operator==(const Range&, const Range&) = default;
};
struct TensorShape {
  enum Field { kDimensions };
  std::vector<Range> dimensions;
  FieldSet written_defaults = field_set(kDimensions);
  friend bool operator==(const TensorShape&, const TensorShape&) = default;
};
struct SliceLayout {
  enum Field { kShape, kStride };
  std::optional<TensorShape> shape;
  std::vector<std::int32_t> stride;  // in elements
  FieldSet written_defaults = field_set(kStride);
  friend bool operator==(const SliceLayout&, const SliceLayout&) = default;
};
struct OutputSlices {
  enum Field { kLayouts, kOffsets };
  std::vector<SliceLayout> layouts;
  std::vector<std::int32_t> offsets;  // in bytes
  FieldSet written_defaults = field_set(kLayouts, kOffsets);
  friend bool operator==(const OutputSlices&, const OutputSlices&) = default;
};

// real = dequantization_factor * (stored - zero_point), where the chip stores unsigned numbers: for int8 and int16
// tensors, zero_point is the model's plus 128 and 32768, and the runtime flips the highest bit of every element.
struct Numerics {
  enum Field { kZeroPoint, kDequantizationFactor };
  std::int32_t zero_point = 0;
  float dequantization_factor = 0;
  FieldSet written_defaults = 0;
  friend bool operator==(const Numerics&, const Numerics&) = default;
};

enum class DataType : std::int16_t {
  kUint8 = 0,
  kUint16 = 1,
  kInt32 = 2,
  kBfloat16 = 3,
  kFloat16 = 4,
  kFloat32 = 5,
  kInt8 = 8,
  kInt16 = 9
};

struct OutputInfo {
  enum Field { kLayout, kDataType, kSlices };
  std::optional<OutputLayout> layout;
  DataType data_type = DataType::kUint8;  // superseded by Layer::data_type
  std::optional<OutputSlices> slices;
  FieldSet written_defaults = 0;
  friend bool operator==(const OutputInfo&, const OutputInfo&) = default;
};
struct InputInfo {
  friend bool operator==(const InputInfo&, const InputInfo&) = default;
};

struct Layer {
  enum Field {
    kName,
    kSizeBytes,
    kYDim,
    kXDim,
    kZDim,
    kNumerics,
    kDataType,
    kAnyInfoType,
    kAnyInfo,
    kExecutionsPerInference,
    kCacheOnDram,
    kShape,
    // Without a package, a layer has no data type and nothing behind the information.
    kBareAnyInfoType = kDataType,
    kBareAnyInfo
  };
  std::string name;
  std::int32_t size_bytes = 0;  // with padding, for one element of the batch
  std::int32_t y_dim = 0, x_dim = 0, z_dim = 0;
  std::optional<Numerics> numerics;
  DataType data_type = DataType::kUint8;
  std::variant<std::monostate, OutputInfo, InputInfo> info;  // index = union code
  std::int32_t executions_per_inference = 1;
  bool cache_on_dram = false;
  std::optional<TensorShape> shape;
  FieldSet written_defaults = field_set(kName);
  friend bool operator==(const Layer&, const Layer&) = default;
};

// ---- Programs ----

enum class ExecutableType : std::int16_t {
  kStandAlone = 0,        // complete in itself
  kParameterCaching = 1,  // only moves parameters into the chip's memory
  kExecutionOnly = 2      // relies on the parameter-caching program with the same token having run
};

// As Google's tools spell it: "EXECUTION_ONLY".
constexpr std::string_view name_of(ExecutableType type) {
  switch (type) {
    case ExecutableType::kStandAlone:
      return "STAND_ALONE";
    case ExecutableType::kParameterCaching:
      return "PARAMETER_CACHING";
    case ExecutableType::kExecutionOnly:
      return "EXECUTION_ONLY";
  }
  return "UNKNOWN";
}

struct Executable {
  enum Field {
    kVersion,
    kName,
    kSerializedModel,
    kBatchSize,
    kScratchSizeBytes,
    kInstructionChunks,
    kParameters,
    kDmaHints,
    kInputLayers,
    kOutputLayers,
    kChip,
    kEstimatedCycles32,
    kUsedNarrowMemoryBytes,
    kType,
    kParameterCachingToken,
    kUseTpuDramForParameters,
    kEstimatedCycles
  };
  std::int32_t version = 0;
  std::string name;
  Bytes serialized_model;  // empty in every file seen
  std::int32_t batch_size = 1;
  std::int32_t scratch_size_bytes = 0;  // host memory that the program uses between its own transfers
  std::vector<InstructionChunk> instruction_chunks;
  Bytes parameters;  // what the program fetches from BaseAddress::kParameter
  std::optional<DmaHints> dma_hints;
  std::vector<Layer> input_layers, output_layers;
  std::string chip{kChipName};
  std::int32_t estimated_cycles_32 = 0;       // superseded by estimated_cycles
  std::int32_t used_narrow_memory_bytes = 0;  // per tile: all addresses used lie below it
  ExecutableType type = ExecutableType::kStandAlone;
  std::uint64_t parameter_caching_token = 0;  // equal tokens: may be cached side by side
  bool use_tpu_dram_for_parameters = false;
  std::int64_t estimated_cycles = 0;
  // As Google's compilers: an execution-only or stand-alone program also writes its empty serialized_model, see
  // new_executable().
  FieldSet written_defaults = field_set(kName, kParameters, kInstructionChunks);
  friend bool operator==(const Executable&, const Executable&) = default;
};

// A program as Google's newest compiler starts one: named as it names them, with the same empty fields.
inline Executable new_executable(ExecutableType type) {
  Executable executable;
  executable.type = type;
  const bool only_caches = type == ExecutableType::kParameterCaching;
  executable.name = only_caches ? "Unknown" : "model";
  if (!only_caches) executable.written_defaults |= field_set(Executable::kSerializedModel);
  return executable;
}

// ---- The package ----

struct Package {
  enum Field {
    kMinRuntimeVersion,
    kMultiExecutable,
    kSignature,
    kKeypairVersion,
    kCompilerVersion,
    kVirtualChipId,
    kMultiChipPackages,
    kModelIdentifier
  };
  std::int32_t min_runtime_version = 14;  // seen: 10, 12, 13, 14
  // Files of 2018 and 2019 have no package: their options hold the programs themselves, that for execution under "4"
  // and that which caches parameters, if there is one, under "3". Type, token and chip are not in such programs; the
  // reader fills them in, and the writer leaves them out again.
  bool is_bare = false;
  std::vector<Executable> executables;  // execution-only or stand-alone first, then parameter-caching, in every file
  Bytes signature;                      // of the serialized executables; empty in every file seen
  std::int32_t keypair_version = 0;
  std::string compiler_version = "cl/";
  std::int32_t virtual_chip_id = 0;        // -1: for several chips, see multi_chip_packages
  std::vector<Bytes> multi_chip_packages;  // each is a package for read_package()
  std::string model_identifier;
  FieldSet written_defaults =
      field_set(kSignature, kKeypairVersion, kCompilerVersion, kVirtualChipId, kModelIdentifier);
  friend bool operator==(const Package&, const Package&) = default;

  // The first program of that type, or nullptr.
  const Executable* find(ExecutableType type) const {
    for (const Executable& executable : executables) {
      if (executable.type == type) return &executable;
    }
    return nullptr;
  }
  Executable* find(ExecutableType type) {
    return const_cast<Executable*>(static_cast<const Package*>(this)->find(type));
  }
};

// ---- The custom op's options ----

// Value of "6" for the Edge TPU, as every file that has the key says. Google's open runtime does not name the numbers.
inline constexpr std::int32_t kBeagleChipVersion = 18;

// A FlexBuffers map; the number before each field is its key. An absent field: the file lacks the key.
struct CustomOptions {
  std::int32_t version = 0;                               // "1"
  std::optional<std::string> chip_name;                   // "2": oldest generation only
  std::optional<Bytes> parameter_caching_package;         // "3": no file seen has it beside a package
  Package package;                                        // "4"
  std::optional<std::int32_t> execution_preference = -1;  // "5": NNAPI's; -1 none
  // "6": the chips that "4" and each of "7" are for
  std::optional<std::vector<std::int32_t>> chip_versions = std::vector<std::int32_t>{kBeagleChipVersion};
  std::optional<std::vector<Bytes>> other_packages = std::vector<Bytes>();  // "7": for further chips; not read
  friend bool operator==(const CustomOptions&, const CustomOptions&) = default;
};

}  // namespace reef::darwinn
