// SPDX-License-Identifier: Apache-2.0
#include "report/documents.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "isa/format.h"

namespace reef::report {
namespace {

using isa::Field;
using isa::NestFields;
using isa::OpcodeInfo;
using isa::ProducerFields;
using isa::WatcherFields;

constexpr std::string_view kIsaIntroduction = R"(# Instructions of the Edge TPU

Generated from the tables in `src/isa/` by `make docs`; a test fails when it is stale. The text form of these instructions is
described in [assembly.md](assembly.md).

There is no public manual. What stands here comes from studying compiled models next to their sources; **nothing was
run on a chip for it**. Every field says how its meaning is known:

| evidence | means |
| --- | --- |
| executed | an emulator that relies on it reproduces the outputs of whole compiled programs |
| observed | holds without exception in the compiled programs studied, but no experiment tells it from another reading |
| published | public source code or public measurements by others say so |
| inferred | the only reading that makes sense of few occurrences |
| unknown | purpose unknown; such fields are named `raw_` and their first bit, and are kept as they are |

## Framing

A program is a sequence of rows of 128 bits (16 bytes, little-endian). An instruction is one or more rows; bits are
numbered through all of them: row r, bit b of an instruction is bit 128 r + b. Bits 6 to 11 are the opcode, and the opcode
alone decides how many rows follow. Every bit belongs to exactly one field.
A program starts with `start` and ends with `end`; between them are at most 16384 rows.
With these rules 112 programs of 58 compiled models (219,344 rows, compilers of four generations) decode to the last row,
rebuild field by field, and survive disassembling and assembling.

## Execution

- The **scalar core** reads the rows in order. Instructions with opcodes below 0x20 are broadcast to the tiles of their
  mask. `infeed`, `pop` and `outfeed` are queued to units beside the scalar core. The rest it executes itself.
- **Tiles** form a 4x4 grid; tile t is in row t / 4 and column t % 4. Each tile hands its instructions, in order, to ten
  units: tensor, wide_to_narrow, ring_send, ring_receive_a, ring_receive_b, narrow_to_wide and four mesh units. Units run
  concurrently, each in order; tiles do not run in step. Only a tile fence stalls a tile's dispatch.
- **Memories of a tile**: narrow memory, 192 KiB in words of 4 bytes; wide memory, 2080 lines of 256 bytes (64 cells of 4
  bytes); scaling memory for one line of float32 scales and one of int32 biases, both double buffered.
- There are no interlocks on addresses. What may be read or overwritten when is decided by counters alone.

## Loop nests

Every unit walks loop nests. Dimension 0 is innermost. A nest is stored as base, then per dimension {delta, limit}, then
`used`, the double buffer, and the clip. `delta` is what is added to the address when that dimension advances and all inner
ones start over, so

    stride[k] = delta[k] + sum over j < k of stride[j] * limit[j]

- **Level** L means one complete pass of dimensions 0 to L - 1; level 0 is every step. Waits, signals and double buffers
  all use it.
- **Double buffer**: buffer_stride is added to the address in every second pass of level buffer_level. The phase goes on
  from instruction to instruction and starts over at a tile fence that drains the unit, unless it drains the tensor unit
  alone.
- **Clip**: while dimension clip_dim is at its last index, dimension 0 makes clip_limit + 1 steps. In the source of a
  `narrow_to_wide` with `transpose` it is dimension 1 that does (dimension 0 is the four pixels that are transposed).
- **Addresses** count bytes or words (4 bytes) of narrow memory; lines (256 bytes) of wide memory, or quarters of them (quarter
  4 n + q is byte lane q of the 64 cells of line n); or units of a buffer of the scalar core (64 bytes for parameters, 8 for
  activations, 4 for loop-back).

{nest_fields}
## Waits and signals

A **watcher** (`wait`) holds its unit before pass j = 0, 1, ... of its level until

    counter - (threshold + increment * j) >= 0      as a signed 16-bit difference, modulo 2^16

A **producer** (`signal`) adds one to its counter after every complete pass of its level. RING_PRODUCER_A and
RING_PRODUCER_B are counted in all tiles and in the scalar core at once; they order the senders of a ring channel.
Counters of a tile, by number: {tile_counters}.
Counters of the scalar core: {scalar_counters}.

{sync_fields}
)";

std::string counters(std::span<const std::string_view> names) {
  std::string text;
  for (std::size_t k = 0; k < names.size(); ++k) text += fmt::format("{}{} {}", k == 0 ? "" : ", ", k, names[k]);
  return text;
}

std::string field_row(const Field& field, std::string_view position, std::string_view name) {
  std::string meaning(field.meaning);
  if (field.plus != 0) meaning += fmt::format("; stored less {}", field.plus);
  if (!field.values.empty() && field.kind == isa::Kind::kEnum && field.group.empty()) {
    std::string values;
    for (std::size_t k = 0; k < field.values.size(); ++k) {
      if (!field.values[k].empty()) values += fmt::format("{}{} {}", values.empty() ? "" : ", ", k, field.values[k]);
    }
    meaning += fmt::format(" ({})", values);
  }
  return fmt::format("| {} | `{}` | {} | {} | {} | {} |\n", position, name, kind_name(field.kind), field.unit, meaning,
                     evidence_name(field.evidence));
}

constexpr std::string_view kFieldHead =
    "| bits | field | kind | unit | meaning | evidence |\n| --- | --- | --- | --- | --- | --- |\n";
constexpr std::string_view kGroupHead =
    "| order | field | kind | unit | meaning | evidence |\n| --- | --- | --- | --- | --- | --- |\n";

// The fields of a nest, watcher or producer, explained once for all instructions.
std::string group_table(std::initializer_list<Field> fields) {
  std::string text(kGroupHead);
  int order = 0;
  for (Field field : fields) {
    if (field.unit == "B") field.unit = "address";  // the sample nest counts bytes
    std::string name(field.name);
    if (name.ends_with("_0")) name.back() = 'k';
    text += field_row(field, fmt::format("{}", ++order), name);
  }
  return text;
}

std::string introduction() {
  std::string text(kIsaIntroduction);
  const auto replace = [&text](std::string_view mark, const std::string& with) {
    text.replace(text.find(mark), mark.size(), with);
  };
  replace("{tile_counters}", counters(isa::kTileCounterNames));
  replace("{scalar_counters}", counters(isa::kScalarCounterNames));
  const NestFields& nest = isa::nests(isa::Opcode::kMultiplyAdd)[1];
  replace("{nest_fields}", group_table({nest.base, nest.delta[0], nest.limit[0], nest.used, nest.buffer_level,
                                        nest.buffer_stride, nest.clip_limit, nest.clip_dim, nest.clip_deficit}));
  const WatcherFields& watcher = isa::watchers(isa::Opcode::kNarrowToWide)[0];
  const ProducerFields& producer = isa::producers(isa::Opcode::kNarrowToWide)[0];
  replace("{sync_fields}", "Fields of a watcher, then of a producer:\n\n" +
                               group_table({watcher.counter, watcher.level, watcher.threshold, watcher.increment,
                                            watcher.enabled, watcher.side}) +
                               "\n" + group_table({producer.enabled, producer.level}));
  return text;
}

std::string opcode_table() {
  std::string text =
      "## Opcodes\n\n| code | mnemonic | rows | executed by | what it does |\n| --- | --- | --- | --- | --- |\n";
  for (const OpcodeInfo& op : isa::all_opcodes()) {
    text += fmt::format("| {:02x} | `{}` | {} | {} | {} |\n", static_cast<unsigned>(op.opcode), op.mnemonic, op.rows,
                        isa::unit_name(op.unit), op.summary);
  }
  return text + "\n";
}

std::string place_of_bits(const Field& field) { return fmt::format("{}:{}", field.bit, field.width); }
// "209+37k:19" for a field that repeats.
std::string place_of_bits(const Field& first, const Field& second) {
  return fmt::format("{}+{}k:{}", first.bit, second.bit - first.bit, first.width);
}

std::string nest_lines(std::span<const NestFields> nests) {
  std::string text;
  for (const NestFields& nest : nests) {
    const isa::AddressUnitName unit = isa::address_unit_name(nest.unit);
    text += fmt::format("- Nest `{}`: {} dimensions", nest.name, nest.dims);
    if (!nest.has_addresses) {
      text += fmt::format(", counts only. limit_k {}", place_of_bits(nest.limit[0], nest.limit[1]));
    } else {
      text += fmt::format(", addresses in {} memory by the {}. base {}, delta_k {}, limit_k {}, used {}", unit.memory,
                          unit.unit, place_of_bits(nest.base), place_of_bits(nest.delta[0], nest.delta[1]),
                          place_of_bits(nest.limit[0], nest.limit[1]), place_of_bits(nest.used));
    }
    if (nest.has_addresses && nest.has_buffer) {
      text += fmt::format(", buffer_level {}, buffer_stride {}", place_of_bits(nest.buffer_level),
                          place_of_bits(nest.buffer_stride));
    }
    text += fmt::format(", clip_limit {}, clip_dim {}", place_of_bits(nest.clip_limit), place_of_bits(nest.clip_dim));
    if (nest.has_addresses) text += fmt::format(", clip_deficit {}", place_of_bits(nest.clip_deficit));
    text += ".\n";
  }
  return text;
}

std::string watcher_line(std::span<const WatcherFields> watchers, std::span<const NestFields> nests) {
  if (watchers.empty()) return "";
  const WatcherFields& first = watchers.front();
  const auto place = [&watchers](const Field WatcherFields::*field) {
    return watchers.size() == 1 ? place_of_bits(watchers[0].*field)
                                : place_of_bits(watchers[0].*field, watchers[1].*field);
  };
  std::string text = fmt::format(
      "- Watchers `wait_k`, k < {}, on {} counters: counter {}, level {}, threshold {}, increment {}, enabled {}",
      watchers.size(), first.is_scalar ? "scalar" : "tile", place(&WatcherFields::counter),
      place(&WatcherFields::level), place(&WatcherFields::threshold), place(&WatcherFields::increment),
      place(&WatcherFields::enabled));
  if (first.has_side) text += fmt::format(", side {}", place(&WatcherFields::side));
  if (first.nest[0] == first.nest[1])
    return text + fmt::format(". Levels are those of `{}`.\n", nests[first.nest[0]].name);
  return text + fmt::format(". Levels are those of `{}` with side 0, of `{}` with side 1.\n", nests[first.nest[0]].name,
                            nests[first.nest[1]].name);
}

std::string_view counter_name(const ProducerFields& producer, std::uint8_t counter) {
  return producer.is_scalar ? isa::kScalarCounterNames[counter] : isa::kTileCounterNames[counter];
}

// The counter of a producer, for every opcode that shares the layout.
std::string counted(std::span<const OpcodeInfo* const> ops, std::size_t index) {
  const ProducerFields& producer = isa::producers(ops[0]->opcode)[index];
  if (producer.selector) {
    std::string text;
    for (std::size_t value = 0; value < producer.selector->values.size() || value < 2; ++value) {
      const std::string_view chosen = value < producer.selector->values.size() ? producer.selector->values[value]
                                      : value == 0                             ? "0"
                                                                               : "1";
      text += fmt::format("{}{} ({}={})", value == 0 ? "" : ", ", counter_name(producer, producer.selected[value]),
                          producer.selector->full_name(), chosen);
    }
    return text;
  }
  std::string text(counter_name(producer, producer.counter));
  for (std::size_t i = 1; i < ops.size(); ++i) {
    const ProducerFields& other = isa::producers(ops[i]->opcode)[index];
    if (other.counter == producer.counter) continue;
    if (i == 1) text += fmt::format(" ({})", ops[0]->mnemonic);
    text += fmt::format(", {} ({})", counter_name(other, other.counter), ops[i]->mnemonic);
  }
  return text;
}

std::string producer_lines(std::span<const OpcodeInfo* const> ops) {
  std::string text;
  const auto producers = isa::producers(ops[0]->opcode);
  for (std::size_t k = 0; k < producers.size(); ++k) {
    const ProducerFields& producer = producers[k];
    text += fmt::format("- Producer `{}`: enabled {}, level {}, counts {} by passes of `{}` ({}).\n",
                        producer.enabled.group, place_of_bits(producer.enabled), place_of_bits(producer.level),
                        counted(ops, k), isa::nests(ops[0]->opcode)[producer.nest].name,
                        evidence_name(producer.enabled.evidence));
  }
  return text;
}

bool is_grouped(isa::Opcode opcode, const Field& field) {
  if (field.group.empty()) return false;
  const auto named = [&field](const auto& item) { return item.name == field.group; };
  const auto watched = [&field](const WatcherFields& item) { return item.counter.group == field.group; };
  const auto produced = [&field](const ProducerFields& item) { return item.enabled.group == field.group; };
  return std::ranges::any_of(isa::nests(opcode), named) || std::ranges::any_of(isa::watchers(opcode), watched) ||
         std::ranges::any_of(isa::producers(opcode), produced);
}

// Fields that are explained once for many instructions.
bool is_common(isa::Opcode opcode, const Field& field) {
  if (field.end() <= isa::common::kOpcode.end()) return true;
  return is_tile_instruction(opcode) && opcode != isa::Opcode::kTileFence && field.end() <= isa::tile::kSequence.end();
}

std::string common_fields() {
  std::string text = fmt::format("### All instructions\n\n{}", kFieldHead);
  for (const Field& field : isa::common::kPrefix) text += field_row(field, place_of_bits(field), field.full_name());
  text += fmt::format("\n### All tile instructions but 1a tile_fence\n\n{}", kFieldHead);
  for (const Field& field : isa::tile::kPrefix) {
    if (field.bit >= isa::common::kOpcode.end()) text += field_row(field, place_of_bits(field), field.full_name());
  }
  return text + "\n";
}

std::string field_rows(isa::Opcode opcode) {
  std::string rows;
  for (const Field& field : isa::fields(opcode)) {
    if (!is_grouped(opcode, field) && !is_common(opcode, field))
      rows += field_row(field, place_of_bits(field), field.full_name());
  }
  return fmt::format("{}{}{}\n", isa::nests(opcode).empty() ? "" : "\n", kFieldHead, rows);
}

// One section per layout: opcodes that share a table share a section.
std::string section(std::span<const OpcodeInfo* const> ops) {
  std::string text = "###";
  for (const OpcodeInfo* op : ops) {
    text += fmt::format("{} {:02x} {}", op == ops[0] ? "" : ",", static_cast<unsigned>(op->opcode), op->mnemonic);
  }
  text += "\n\n";
  const isa::Opcode opcode = ops[0]->opcode;
  text += nest_lines(isa::nests(opcode));
  text += watcher_line(isa::watchers(opcode), isa::nests(opcode));
  text += producer_lines(ops);
  return text + field_rows(opcode);
}

}  // namespace

std::string isa_reference() {
  std::string text = introduction() + opcode_table() +
                     "## Fields\n\nPositions are first bit:width; k counts dimensions or watchers.\n\n" +
                     common_fields();
  const auto all = isa::all_opcodes();
  for (std::size_t i = 0; i < all.size();) {
    std::vector<const OpcodeInfo*> ops = {&all[i]};
    const auto* const table = isa::fields(all[i].opcode).data();
    for (++i; i < all.size() && isa::fields(all[i].opcode).data() == table; ++i) ops.push_back(&all[i]);
    text += section(ops);
  }
  text.pop_back();  // one newline at the end of the file
  return text;
}

}  // namespace reef::report
