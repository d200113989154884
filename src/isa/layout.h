// SPDX-License-Identifier: Apache-2.0
// The recurring groups of fields: loop nests, watchers and producers, and the table that collects an opcode's fields.
//
// Every loop nest of every instruction has the same order of fields (only their widths and the number of dimensions
// differ): base, then {delta, limit} per dimension, a mask of dimensions, the double buffer's level and stride, and the
// clip's limit, dimension and deficit. So a nest is fully described by where it starts and four widths.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "isa/counters.h"
#include "isa/field.h"

namespace reef::isa {

inline constexpr int kMaxDims = 8;

// The unit in which the addresses of a nest count.
enum class AddressUnit : std::uint8_t {
  kNone,         // loop counts only
  kNarrowByte,   // byte of narrow memory
  kNarrowWord,   // 4 bytes of narrow memory
  kWideLine,     // 256 bytes of wide memory: 64 cells of 4 bytes
  kWideQuarter,  // one byte lane of the 64 cells of a wide line: address / 4 is the line, address % 4 the lane
  kBufferUnit,   // unit of a buffer of the scalar core: 64 B (parameters), 8 B (activations), 4 B (loop-back)
};
struct AddressUnitName {
  std::string_view memory;
  std::string_view unit;
};
AddressUnitName address_unit_name(AddressUnit unit);

struct NestFields {
  std::string_view name;
  AddressUnit unit = AddressUnit::kNone;
  std::uint8_t dims = 0;
  bool has_addresses = true;  // base, delta, used and, where has_buffer, the double buffer
  bool has_buffer = true;
  Field base;
  std::array<Field, kMaxDims> delta;
  std::array<Field, kMaxDims> limit;
  Field used;
  Field buffer_level;
  Field buffer_stride;
  Field clip_limit;
  Field clip_dim;
  Field clip_deficit;
};

struct WatcherFields {
  std::uint8_t slot = 0;
  bool has_side = false;
  bool is_scalar = false;  // waits for a ScalarCounter, else for a TileCounter
  // Index into the opcode's nests of the one whose passes are counted, by side bit.
  std::array<std::uint8_t, 2> nest = {0, 0};
  Field counter;
  Field level;
  Field threshold;
  Field increment;
  Field enabled;
  Field side;  // only if has_side
};

struct ProducerFields {
  bool is_scalar = false;
  std::uint8_t nest = 0;     // index into the opcode's nests: whose passes are counted
  std::uint8_t counter = 0;  // a TileCounter or ScalarCounter
  // Where one or two bits of the instruction choose the counter: that field, and the counters by its value.
  std::optional<Field> selector;
  std::array<std::uint8_t, 4> selected = {};
  Field enabled;
  Field level;
};

// Collects fields in any order; finished tables are sorted by bit.
class FieldList {
 public:
  static constexpr std::size_t kCapacity = 224;

  constexpr void add(const Field& field) { items_[size_++] = field; }
  constexpr void add(const NestFields& nest) {
    if (nest.has_addresses) add(nest.base);
    for (int k = 0; k < nest.dims; ++k) {
      if (nest.has_addresses) add(nest.delta[k]);
      add(nest.limit[k]);
    }
    if (nest.has_addresses) add(nest.used);
    if (nest.has_addresses && nest.has_buffer) {
      add(nest.buffer_level);
      add(nest.buffer_stride);
    }
    add(nest.clip_limit);
    add(nest.clip_dim);
    if (nest.has_addresses) add(nest.clip_deficit);
  }
  constexpr void add(const WatcherFields& watcher) {
    for (const Field& field : {watcher.counter, watcher.level, watcher.threshold, watcher.increment, watcher.enabled}) {
      add(field);
    }
    if (watcher.has_side) add(watcher.side);
  }
  constexpr void add(const ProducerFields& producer) {
    add(producer.enabled);
    add(producer.level);
  }
  template <typename Range>
  requires requires(const Range& range) { range.begin(); }
  constexpr void add(const Range& range) {
    for (const auto& item : range) add(item);
  }
  template <typename... Items>
  static constexpr FieldList of(const Items&... items) {
    FieldList list;
    (list.add(items), ...);
    list.sort();
    return list;
  }

  constexpr std::size_t size() const { return size_; }
  constexpr std::span<const Field> fields() const { return {items_.data(), size_}; }
  // Whether the fields cover bits 0 to `bits` - 1 exactly once and none is wider than a field may be.
  constexpr bool tiles(int bits) const {
    int next = 0;
    for (const Field& field : fields()) {
      if (field.bit != next || field.width == 0 || field.width > kMaxFieldWidth) return false;
      next = field.end();
    }
    return next == bits;
  }

 private:
  constexpr void sort() {
    for (std::size_t i = 1; i < size_; ++i) {
      const Field field = items_[i];
      std::size_t j = i;
      for (; j > 0 && items_[j - 1].bit > field.bit; --j) items_[j] = items_[j - 1];
      items_[j] = field;
    }
  }

  std::array<Field, kCapacity> items_{};
  std::size_t size_ = 0;
};

// ---- Builders ----

namespace layout {

inline constexpr std::string_view kDeltaNames[] = {"delta_0", "delta_1", "delta_2", "delta_3",
                                                   "delta_4", "delta_5", "delta_6", "delta_7"};
inline constexpr std::string_view kLimitNames[] = {"limit_0", "limit_1", "limit_2", "limit_3",
                                                   "limit_4", "limit_5", "limit_6", "limit_7"};
inline constexpr std::string_view kDimNames[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
inline constexpr std::string_view kWaitNames[] = {"wait_0", "wait_1", "wait_2", "wait_3", "wait_4", "wait_5"};

// Places fields one behind the other.
struct Cursor {
  int bit;
  std::string_view group;
  constexpr Field next(std::string_view name, int width, Kind kind, std::string_view unit, std::string_view meaning,
                       Evidence evidence) {
    const Field field{.name = name,
                      .bit = static_cast<std::uint16_t>(bit),
                      .width = static_cast<std::uint8_t>(width),
                      .kind = kind,
                      .unit = unit,
                      .meaning = meaning,
                      .evidence = evidence,
                      .group = group};
    bit += width;
    return field;
  }
};

struct NestShape {
  std::string_view name;
  AddressUnit unit;
  int first_bit;
  int dims;
  int base_width;
  int delta_width;
  int limit_width;
  int level_width;
  bool has_buffer = true;
  int gap_for_buffer = 0;  // bits skipped where has_buffer is false
};

constexpr std::string_view unit_text(AddressUnit unit) {
  switch (unit) {
    case AddressUnit::kNarrowByte:
      return "B";
    case AddressUnit::kNarrowWord:
      return "word";
    case AddressUnit::kWideLine:
      return "line";
    case AddressUnit::kWideQuarter:
      return "quarter line";
    case AddressUnit::kBufferUnit:
      return "unit";
    case AddressUnit::kNone:
      break;
  }
  return "";
}

constexpr NestFields nest(const NestShape& shape) {
  Cursor at{shape.first_bit, shape.name};
  const std::string_view unit = unit_text(shape.unit);
  NestFields fields;
  fields.name = shape.name;
  fields.unit = shape.unit;
  fields.dims = static_cast<std::uint8_t>(shape.dims);
  fields.has_buffer = shape.has_buffer;
  fields.base =
      at.next("base", shape.base_width, Kind::kUnsigned, unit, "address of the first step", Evidence::kExecuted);
  for (int k = 0; k < shape.dims; ++k) {
    fields.delta[k] = at.next(kDeltaNames[k], shape.delta_width, Kind::kSigned, unit,
                              "added when this dimension advances and all inner ones return to 0; the stride is this "
                              "plus the sum of stride * limit of the inner dimensions",
                              Evidence::kExecuted);
    fields.limit[k] = at.next(kLimitNames[k], shape.limit_width, Kind::kUnsigned, "steps - 1",
                              "last index of this dimension; dimension 0 is innermost", Evidence::kExecuted);
  }
  fields.used =
      at.next("used", shape.dims, Kind::kMask, "dimensions",
              "dimensions that carry an address; has no effect on any program that was emulated", Evidence::kObserved);
  fields.used.values = std::span<const std::string_view>(kDimNames, static_cast<std::size_t>(shape.dims));
  if (shape.has_buffer) {
    fields.buffer_level =
        at.next("buffer_level", shape.level_width, Kind::kUnsigned, "level",
                "double buffer: after each complete pass of this many inner dimensions the other half is used",
                Evidence::kExecuted);
    fields.buffer_stride =
        at.next("buffer_stride", shape.delta_width, Kind::kSigned, unit,
                "double buffer: distance of the second half; 0 is no double buffer", Evidence::kExecuted);
  } else {
    at.bit += shape.gap_for_buffer;
  }
  fields.clip_limit =
      at.next("clip_limit", shape.limit_width, Kind::kUnsigned, "steps - 1",
              "clip: last index of dimension 0 (in transpose mode of dimension 1) while the clip dimension is at its "
              "last index",
              Evidence::kExecuted);
  fields.clip_dim = at.next("clip_dim", shape.level_width, Kind::kUnsigned, "dimension",
                            "clip: the dimension at whose last index the clip acts; 0 is no clip", Evidence::kExecuted);
  fields.clip_deficit = at.next("clip_deficit", shape.limit_width, Kind::kSigned, unit,
                                "clip: (steps - clipped steps) * stride of the dimension that is clipped; negative "
                                "where the clip makes it longer. It tells which dimension is meant",
                                Evidence::kObserved);
  return fields;
}

struct WatcherShape {
  int first_bit;
  int id_width;
  int level_width;
  bool has_side;
  bool is_scalar;
  std::array<std::uint8_t, 2> nest;
};

constexpr WatcherFields watcher(const WatcherShape& shape, int slot) {
  const int width = shape.id_width + shape.level_width + 33 + (shape.has_side ? 1 : 0);
  Cursor at{shape.first_bit + slot * width, kWaitNames[slot]};
  WatcherFields fields;
  fields.slot = static_cast<std::uint8_t>(slot);
  fields.has_side = shape.has_side;
  fields.is_scalar = shape.is_scalar;
  fields.nest = shape.nest;
  fields.counter =
      at.next("counter", shape.id_width, Kind::kEnum, "counter", "what is waited for", Evidence::kExecuted);
  fields.counter.values = shape.is_scalar ? std::span<const std::string_view>(kScalarCounterNames)
                                          : std::span<const std::string_view>(kTileCounterNames);
  fields.level = at.next("level", shape.level_width, Kind::kUnsigned, "level",
                         "waits before every pass of this many inner dimensions; 0 is every step", Evidence::kExecuted);
  fields.threshold =
      at.next("threshold", 16, Kind::kSigned, "count", "value needed before pass 0", Evidence::kExecuted);
  fields.increment = at.next("increment", 16, Kind::kUnsigned, "count", "added to the needed value with every pass",
                             Evidence::kExecuted);
  fields.enabled = at.next("enabled", 1, Kind::kFlag, "", "the watcher is in use", Evidence::kExecuted);
  if (shape.has_side) {
    fields.side = at.next("side", 1, Kind::kFlag, "",
                          "0: gates reading (levels of the source nest), 1: gates writing "
                          "(levels of the destination nest)",
                          Evidence::kExecuted);
  }
  return fields;
}

template <std::size_t kCount>
constexpr std::array<WatcherFields, kCount> watchers(const WatcherShape& shape) {
  std::array<WatcherFields, kCount> all;
  for (std::size_t k = 0; k < kCount; ++k) all[k] = watcher(shape, static_cast<int>(k));
  return all;
}

struct ProducerShape {
  std::string_view name;
  int first_bit;
  int level_width;
  bool is_scalar;
  std::uint8_t counter;
  std::uint8_t nest;
  Evidence evidence = Evidence::kExecuted;
};

constexpr ProducerFields producer(const ProducerShape& shape) {
  Cursor at{shape.first_bit, shape.name};
  ProducerFields fields;
  fields.is_scalar = shape.is_scalar;
  fields.nest = shape.nest;
  fields.counter = shape.counter;
  fields.enabled = at.next("enabled", 1, Kind::kFlag, "", "the counter is counted up", shape.evidence);
  fields.level =
      at.next("level", shape.level_width, Kind::kUnsigned, "level",
              "by one after every complete pass of this many inner dimensions; 0 is every step", shape.evidence);
  return fields;
}

constexpr ProducerFields choose_counter(ProducerFields fields, const Field& selector,
                                        std::array<std::uint8_t, 4> selected) {
  fields.selector = selector;
  fields.selected = selected;
  return fields;
}

constexpr Field field(std::string_view name, int bit, int width, Kind kind, std::string_view unit,
                      std::string_view meaning, Evidence evidence) {
  return Cursor{bit, {}}.next(name, width, kind, unit, meaning, evidence);
}
constexpr Field flag(std::string_view name, int bit, std::string_view meaning, Evidence evidence) {
  return field(name, bit, 1, Kind::kFlag, "", meaning, evidence);
}
constexpr Field with_values(Field base, std::span<const std::string_view> values) {
  base.values = values;
  return base;
}
// A count of at least 1 that is stored less one.
constexpr Field plus_one(Field base) {
  base.plus = 1;
  return base;
}
constexpr Field with_usual(Field base, std::uint32_t usual) {
  base.usual = usual;
  return base;
}

}  // namespace layout

// ---- Fields that every instruction starts with ----

namespace common {

using layout::field;
using layout::flag;

// Published for scalar bundles by others who measured it on a chip; the other instructions keep these bits 0.
inline constexpr Field kPredicated =
    flag("predicated", 0, "executed only if the predicate agrees with predicate_sense", Evidence::kPublished);
inline constexpr Field kPredicate =
    field("predicate", 1, 3, Kind::kUnsigned, "predicate", "which predicate register", Evidence::kPublished);
inline constexpr Field kPredicateSense =
    flag("predicate_sense", 4, "1: executed if the predicate is set, 0: if it is clear", Evidence::kPublished);
inline constexpr Field kOpcode =
    field("opcode", 6, 6, Kind::kUnsigned, "", "what the instruction is; alone decides how many rows it has",
          Evidence::kExecuted);
inline constexpr std::array kPrefix = {kPredicated, kPredicate, kPredicateSense, raw("raw_5", 5, 1), kOpcode};

}  // namespace common

// Tile instructions other than the tile fence continue with these.
namespace tile {

using layout::field;
using layout::flag;

inline constexpr Field kTiles =
    field("tiles", 12, 16, Kind::kTileMask, "tiles", "who executes it", Evidence::kExecuted);
inline constexpr Field kBaseRegister =
    field("base_register", 28, 5, Kind::kUnsigned, "register",
          "scalar register that holds the base address; used where base_from_register is set", Evidence::kInferred);
inline constexpr Field kTilesRegister =
    field("tiles_register", 33, 5, Kind::kUnsigned, "register",
          "scalar register that holds the tile mask; used where tiles_from_register is set", Evidence::kInferred);
inline constexpr Field kTilesFromRegister =
    flag("tiles_from_register", 38,
         "the tile mask comes from tiles_register (two instructions of one recurrent network, mask 0 in both)",
         Evidence::kInferred);
inline constexpr Field kSequence =
    field("sequence", 46, 16, Kind::kUnsigned, "",
          "number of the tile instruction, one more than the one before; wraps", Evidence::kObserved);
inline constexpr std::array kPrefix = {
    common::kPredicated, common::kPredicate, common::kPredicateSense, raw("raw_5", 5, 1),   common::kOpcode, kTiles,
    kBaseRegister,       kTilesRegister,     kTilesFromRegister,      raw("raw_39", 39, 7), kSequence};

}  // namespace tile

}  // namespace reef::isa
