// SPDX-License-Identifier: Apache-2.0
#include "isa/text_parts.h"

#include <limits>

#include <fmt/format.h>

#include "isa/activation.h"
#include "isa/fence.h"
#include "isa/movers.h"
#include "isa/text_value.h"

namespace reef::isa::text {
namespace {

constexpr std::int64_t kAnyLow = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kAnyHigh = std::numeric_limits<std::int64_t>::max();

// Stores what a set() refused as a complaint about the place.
Status at(Place place, const Status& status) { return status.ok() ? status : complaint(place, status.message()); }

std::string_view memory_name(const Instruction& instruction, const NestFields& fields) {
  const bool scaling =
      instruction.opcode() == Opcode::kWideToNarrow && fields.name == "out" && instruction.test(movers::kToScaling);
  return scaling ? "scaling" : address_unit_name(fields.unit).memory;
}
std::string_view unit_name(const Instruction& instruction, const NestFields& fields) {
  return memory_name(instruction, fields) == "scaling" ? "pair" : address_unit_name(fields.unit).unit;
}

void print_dim(std::string& out, const NestFields& fields, const Nest::Dim& dim) {
  if (!fields.has_addresses) {
    fmt::format_to(std::back_inserter(out), "x{}", dim.count);
  } else if (dim.used) {
    fmt::format_to(std::back_inserter(out), "for x{} {:+}", dim.count, dim.stride);
  } else if (dim.stride != 0) {
    fmt::format_to(std::back_inserter(out), "rep x{} {:+}", dim.count, dim.stride);
  } else {
    fmt::format_to(std::back_inserter(out), "rep x{}", dim.count);
  }
}

Result<Nest::Dim> read_dim(Line& line, const NestFields& fields) {
  Nest::Dim dim;
  if (fields.has_addresses) {
    dim.used = line.accept_word("for");
    if (!dim.used && !line.accept_word("rep")) return line.expected("'for', 'rep', 'swap' or 'clip'");
  }
  if (!line.accept("x")) return line.expected("the number of steps, such as x16");
  REEF_ASSIGN_OR_RETURN(const std::int64_t count, line.number("steps", 1, std::int64_t{1} << 20));
  dim.count = static_cast<std::uint32_t>(count);
  if (fields.has_addresses && (line.peek() == '+' || line.peek() == '-')) {
    REEF_ASSIGN_OR_RETURN(dim.stride, line.number("a stride", kAnyLow, kAnyHigh));
  } else if (dim.used) {
    return line.expected("a stride with its sign, such as +4");
  }
  return dim;
}

Status read_swap(Line& line, Nest& nest) {
  REEF_ASSIGN_OR_RETURN(nest.buffer_stride, line.number("the distance of the second buffer", kAnyLow, kAnyHigh));
  REEF_RETURN_IF_ERROR(line.expect_word("each"));
  REEF_RETURN_IF_ERROR(line.expect_word("level"));
  REEF_ASSIGN_OR_RETURN(const std::int64_t level, line.number("a level", 0, kMaxDims));
  nest.buffer_level = static_cast<std::uint32_t>(level);
  return ok_status();
}

Status read_clip(Line& line, Nest& nest) {
  REEF_RETURN_IF_ERROR(line.expect_word("dim"));
  REEF_ASSIGN_OR_RETURN(const std::int64_t dim, line.number("a dimension", 0, kMaxDims - 1));
  REEF_RETURN_IF_ERROR(line.expect_word("to"));
  if (!line.accept("x")) return line.expected("the number of steps, such as x3");
  REEF_ASSIGN_OR_RETURN(const std::int64_t steps, line.number("steps", 1, std::int64_t{1} << 20));
  nest.clip_dim = static_cast<std::uint32_t>(dim);
  nest.clip_steps = static_cast<std::uint32_t>(steps);
  if (line.accept_word("short")) {
    REEF_ASSIGN_OR_RETURN(const std::int64_t deficit, line.number("what is left out", -(1 << 20), 1 << 20));
    nest.clip_deficit = static_cast<std::int32_t>(deficit);
  }
  return ok_status();
}

// Dimensions, then swap, then clip, with commas.
Status read_nest_items(Line& line, const NestFields& fields, Nest& nest) {
  int dims = 0;
  do {
    if (fields.has_addresses && fields.has_buffer && line.accept_word("swap")) {
      REEF_RETURN_IF_ERROR(read_swap(line, nest));
    } else if (line.accept_word("clip")) {
      REEF_RETURN_IF_ERROR(read_clip(line, nest));
    } else {
      if (dims == fields.dims) {
        return line.expected(fmt::format("at most {} dimensions for {}", fields.dims, fields.name));
      }
      REEF_ASSIGN_OR_RETURN(nest.dims[dims], read_dim(line, fields));
      ++dims;
    }
  } while (line.accept(","));
  return ok_status();
}

template <typename FieldOf>
std::string print_floats(const Instruction& instruction, int count, FieldOf&& field_of) {
  std::string out;
  for (int k = 0; k < count; ++k) {
    if (k > 0) out += ", ";
    out += print_float(instruction.bits(field_of(k)));
  }
  return out;
}

template <typename FieldOf>
Status read_floats(Line& line, Instruction& instruction, int count, FieldOf&& field_of) {
  for (int k = 0; k < count; ++k) {
    const Line here = line;
    REEF_ASSIGN_OR_RETURN(std::string_view token, line.token(fmt::format("number {} of {}", k + 1, count)));
    const bool comma = token.ends_with(',');
    if (comma) token.remove_suffix(1);
    std::uint32_t bits = 0;
    if (!read_float(token, bits) || comma != (k + 1 < count)) {
      return here.expected(fmt::format("number {} of {}, with commas between them", k + 1, count));
    }
    REEF_RETURN_IF_ERROR(instruction.set(field_of(k), bits));
  }
  return line.expect_end();
}

}  // namespace

bool is_empty(const Instruction& instruction, const NestFields& fields) {
  const Nest nest = instruction.read_nest(fields);
  return nest == Nest{};
}

std::string print_nest(const Instruction& instruction, const NestFields& fields) {
  const Nest nest = instruction.read_nest(fields);
  std::string out = fmt::format("{:<6} ", fields.name);
  std::string_view separator;
  const auto next_item = [&] {
    out += separator;
    separator = ", ";
  };
  if (fields.has_addresses) {
    fmt::format_to(std::back_inserter(out), "{} {} {}", memory_name(instruction, fields),
                   unit_name(instruction, fields), nest.base);
    separator = ": ";
  }
  for (int k = 0; k < nest.significant_dims(); ++k) {
    next_item();
    print_dim(out, fields, nest.dims[k]);
  }
  if (nest.buffer_level != 0 || nest.buffer_stride != 0) {
    next_item();
    fmt::format_to(std::back_inserter(out), "swap {:+} each level {}", nest.buffer_stride, nest.buffer_level);
  }
  if (nest.clip_dim != 0 || nest.clip_steps != 1 || nest.clip_deficit != 0) {
    next_item();
    fmt::format_to(std::back_inserter(out), "clip dim {} to x{}", nest.clip_dim, nest.clip_steps);
    if (nest.clip_deficit != 0) fmt::format_to(std::back_inserter(out), " short {}", nest.clip_deficit);
  }
  return out;
}

Status read_nest(Line& line, Instruction& instruction, const NestFields& fields) {
  const Place place = line.place();
  Nest nest;
  if (fields.has_addresses) {
    const AddressUnitName names = address_unit_name(fields.unit);
    const bool scaling =
        instruction.opcode() == Opcode::kWideToNarrow && fields.name == "out" && line.accept_word("scaling");
    if (!scaling) REEF_RETURN_IF_ERROR(line.expect_word(names.memory));
    REEF_RETURN_IF_ERROR(line.expect_word(scaling ? "pair" : names.unit));
    REEF_ASSIGN_OR_RETURN(const std::int64_t base, line.number("the base address", 0, fields.base.mask()));
    nest.base = static_cast<std::uint32_t>(base);
    if (line.accept(":")) REEF_RETURN_IF_ERROR(read_nest_items(line, fields, nest));
  } else {
    REEF_RETURN_IF_ERROR(read_nest_items(line, fields, nest));
  }
  REEF_RETURN_IF_ERROR(line.expect_end());
  return at(place, instruction.write_nest(fields, nest));
}

// ---- Watchers ----

std::string print_watcher(const Instruction& instruction, const WatcherFields& fields, int next_slot) {
  const Watcher watcher = instruction.read_watcher(fields);
  std::string out = "wait";
  if (fields.slot != next_slot) out += fmt::format("[{}]", fields.slot);
  out += out.size() > 4 ? " " : "   ";
  fmt::format_to(std::back_inserter(out), "{}{} >= {}", watcher.enabled ? "" : "off ",
                 counter_name(fields.is_scalar, watcher.counter), watcher.threshold);
  if (watcher.increment != 0) {
    fmt::format_to(std::back_inserter(out), " + {}*pass(level {})", watcher.increment, watcher.level);
  } else {
    fmt::format_to(std::back_inserter(out), " at level {}", watcher.level);
  }
  if (fields.has_side) out += watcher.on_destination ? " on out" : " on in";
  return out;
}

Status read_watcher(Line& line, Instruction& instruction, int& next_slot) {
  const Place place = line.place();
  const auto all = watchers(instruction.opcode());
  int slot = next_slot;
  if (line.accept("[")) {
    REEF_ASSIGN_OR_RETURN(const std::int64_t given,
                          line.number("a slot", next_slot, static_cast<std::int64_t>(all.size()) - 1));
    slot = static_cast<int>(given);
    REEF_RETURN_IF_ERROR(line.expect("]"));
  }
  if (slot >= static_cast<int>(all.size())) {
    return complaint(
        place, fmt::format("{} has {} waits, this is one too many", info(instruction.opcode()).mnemonic, all.size()));
  }
  const WatcherFields& fields = all[reef::at(slot)];
  Watcher watcher;
  watcher.enabled = !line.accept_word("off");
  REEF_ASSIGN_OR_RETURN(watcher.counter, read_counter(line, fields.is_scalar, fields.counter.mask()));
  REEF_RETURN_IF_ERROR(line.expect(">="));
  REEF_ASSIGN_OR_RETURN(const std::int64_t threshold, line.number("a threshold", -32768, 32767));
  watcher.threshold = static_cast<std::int32_t>(threshold);
  std::int64_t level = 0;
  if (line.accept("+")) {
    REEF_ASSIGN_OR_RETURN(const std::int64_t increment, line.number("an increment", 0, 65535));
    watcher.increment = static_cast<std::uint32_t>(increment);
    REEF_RETURN_IF_ERROR(line.expect("*"));
    REEF_RETURN_IF_ERROR(line.expect_word("pass"));
    REEF_RETURN_IF_ERROR(line.expect("("));
    REEF_RETURN_IF_ERROR(line.expect_word("level"));
    REEF_ASSIGN_OR_RETURN(level, line.number("a level", 0, fields.level.mask()));
    REEF_RETURN_IF_ERROR(line.expect(")"));
  } else if (line.accept_word("at")) {
    REEF_RETURN_IF_ERROR(line.expect_word("level"));
    REEF_ASSIGN_OR_RETURN(level, line.number("a level", 0, fields.level.mask()));
  } else {
    return line.expected("'+ INCREMENT*pass(level N)' or 'at level N'");
  }
  watcher.level = static_cast<std::uint32_t>(level);
  if (fields.has_side) {
    REEF_RETURN_IF_ERROR(line.expect_word("on"));
    watcher.on_destination = line.accept_word("out");
    if (!watcher.on_destination && !line.accept_word("in")) return line.expected("'in' or 'out'");
  }
  next_slot = slot + 1;
  REEF_RETURN_IF_ERROR(line.expect_end());
  return at(place, instruction.write_watcher(fields, watcher));
}

// ---- Producers ----

std::string print_producer(const Instruction& instruction, const ProducerFields& fields) {
  const Producer producer = instruction.read_producer(fields);
  return fmt::format("signal {} {}level {}", counter_name(fields.is_scalar, instruction.producer_counter(fields)),
                     producer.enabled ? "each " : "off ", producer.level);
}

Result<SignalCheck> read_producer(Line& line, Instruction& instruction) {
  const Place place = line.place();
  const std::string_view word = line.next_word();
  for (const ProducerFields& fields : producers(instruction.opcode())) {
    std::optional<std::uint32_t> counter;
    for (std::size_t value = 0; value < (fields.selector ? 4u : 1u) && !counter; ++value) {
      const std::uint32_t candidate = fields.selector ? fields.selected[value] : fields.counter;
      if (!word.empty() && word == counter_name(fields.is_scalar, candidate)) counter = candidate;
    }
    if (!counter) continue;
    REEF_RETURN_IF_ERROR(line.expect_word(word));
    Producer producer;
    producer.enabled = !line.accept_word("off");
    if (producer.enabled) REEF_RETURN_IF_ERROR(line.expect_word("each"));
    REEF_RETURN_IF_ERROR(line.expect_word("level"));
    REEF_ASSIGN_OR_RETURN(const std::int64_t level, line.number("a level", 0, fields.level.mask()));
    producer.level = static_cast<std::uint32_t>(level);
    REEF_RETURN_IF_ERROR(line.expect_end());
    REEF_RETURN_IF_ERROR(instruction.write_producer(fields, producer));
    return SignalCheck{&fields, *counter, place};
  }
  std::string names;
  for (const ProducerFields& fields : producers(instruction.opcode())) {
    names += (names.empty() ? "" : ", ") + counter_name(fields.is_scalar, instruction.producer_counter(fields));
  }
  return line.expected(fmt::format("a counter that {} counts ({})", info(instruction.opcode()).mnemonic, names));
}

Status check_signal(const Instruction& instruction, const SignalCheck& check) {
  const std::uint32_t counted = instruction.producer_counter(*check.producer);
  if (counted == check.counter) return ok_status();
  return complaint(check.place, fmt::format("the instruction counts {} here, because of {}; expected that name",
                                            counter_name(check.producer->is_scalar, counted),
                                            check.producer->selector ? check.producer->selector->full_name() : ""));
}

// ---- Scalar fence ----

std::vector<std::string> print_compares(const Instruction& instruction) {
  std::vector<std::string> lines;
  for (int k = 0; k < kScalarCounterCount; ++k) {
    if (instruction.test(scalar_fence::compare(k))) {
      lines.push_back(
          fmt::format("wait   {} >= {}", kScalarCounterNames[k], instruction.get(scalar_fence::threshold(k))));
    }
  }
  return lines;
}

Status read_compare(Line& line, Instruction& instruction) {
  REEF_ASSIGN_OR_RETURN(const std::uint32_t counter, read_counter(line, true, kScalarCounterCount - 1));
  REEF_RETURN_IF_ERROR(line.expect(">="));
  REEF_ASSIGN_OR_RETURN(const std::int64_t threshold, line.number("a threshold", -32768, 32767));
  REEF_RETURN_IF_ERROR(line.expect_end());
  REEF_RETURN_IF_ERROR(instruction.set(scalar_fence::compare(static_cast<int>(counter)), 1));
  return instruction.set(scalar_fence::threshold(static_cast<int>(counter)), threshold);
}

// ---- Activation table ----

std::vector<std::string> print_table(const Instruction& instruction) {
  std::vector<std::string> lines;
  for (int segment = 0; segment < activation::kSegments; ++segment) {
    const auto coefficient = [segment](int power) { return activation::coefficient(segment, power); };
    bool any = false;
    for (int power = 0; power < activation::kCoefficients; ++power) any |= instruction.test(coefficient(power));
    if (any) {
      lines.push_back(
          fmt::format("segment {}: {}", segment, print_floats(instruction, activation::kCoefficients, coefficient)));
    }
  }
  bool any = false;
  for (int k = 0; k < activation::kBreakpoints; ++k) any |= instruction.test(activation::breakpoint(k));
  if (any) lines.push_back("breaks " + print_floats(instruction, activation::kBreakpoints, activation::breakpoint));
  return lines;
}

Status read_segment(Line& line, Instruction& instruction) {
  REEF_ASSIGN_OR_RETURN(const std::int64_t segment, line.number("a segment", 0, activation::kSegments - 1));
  REEF_RETURN_IF_ERROR(line.expect(":"));
  return read_floats(line, instruction, activation::kCoefficients,
                     [segment](int power) { return activation::coefficient(static_cast<int>(segment), power); });
}

Status read_breaks(Line& line, Instruction& instruction) {
  return read_floats(line, instruction, activation::kBreakpoints, activation::breakpoint);
}

}  // namespace reef::isa::text
