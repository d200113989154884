// SPDX-License-Identifier: Apache-2.0
#include "isa/seen.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "isa/format.h"

namespace reef::isa {
namespace {

// Fields that hold numbers (addresses, distances, counts), or more values than these, are kept as a range.
constexpr std::size_t kMostValues = 24;
constexpr int kWidestList = 5;  // bits
bool is_number(const Field& field) {
  return (field.kind == Kind::kUnsigned || field.kind == Kind::kSigned) && field.width > kWidestList;
}

struct OpcodeLine {
  std::string_view mnemonic;
  std::int64_t instructions, files;
};
struct FieldLine {
  std::string_view mnemonic, field;
  std::string_view values;  // "value:instructions/files value:..." or "lowest..highest"
};

#define SEEN_TOTALS(files, programs, instructions) \
  constexpr std::int64_t kSeenFiles = files, kPrograms = programs, kInstructions = instructions;
#define SEEN_OPCODE(mnemonic, instructions, files)
#define SEEN_FIELD(mnemonic, field, values)
#include "isa/seen.def"
#undef SEEN_TOTALS
#undef SEEN_OPCODE
#undef SEEN_FIELD

#define SEEN_TOTALS(files, programs, instructions)
#define SEEN_OPCODE(mnemonic, instructions, files) {mnemonic, instructions, files},
#define SEEN_FIELD(mnemonic, field, values)
constexpr OpcodeLine kOpcodeLines[] = {
#include "isa/seen.def"
};
#undef SEEN_OPCODE
#undef SEEN_FIELD
#define SEEN_OPCODE(mnemonic, instructions, files)
#define SEEN_FIELD(mnemonic, field, values) {mnemonic, field, values},
constexpr FieldLine kFieldLines[] = {
#include "isa/seen.def"
};
#undef SEEN_TOTALS
#undef SEEN_OPCODE
#undef SEEN_FIELD

std::int64_t take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc() ? number : 0;
}

// Our own file: what does not fit is left out, and a test finds it.
void read_values(std::string_view text, SeenField& to) {
  if (const std::size_t dots = text.find(".."); dots != std::string_view::npos) {
    to.lowest = take_number(text);
    text.remove_prefix(2);
    to.highest = take_number(text);
    return;
  }
  while (!text.empty()) {
    SeenValue value;
    value.value = take_number(text);
    if (text.empty() || text[0] != ':') return;
    text.remove_prefix(1);
    value.instructions = take_number(text);
    if (text.empty() || text[0] != '/') return;
    text.remove_prefix(1);
    value.files = take_number(text);
    to.values.push_back(value);
    if (!text.empty()) text.remove_prefix(1);
  }
}

SeenTable read_table() {
  SeenTable table{kSeenFiles, kPrograms, kInstructions, {}, {}, {}};
  for (const OpcodeLine& line : kOpcodeLines) {
    if (const auto opcode = opcode_from_mnemonic(line.mnemonic)) {
      table.opcodes.push_back({*opcode, line.instructions, line.files});
    }
  }
  for (const FieldLine& line : kFieldLines) {
    const auto opcode = opcode_from_mnemonic(line.mnemonic);
    if (!opcode) continue;
    SeenField& field = table.fields.emplace_back();
    field.opcode = *opcode;
    field.field = find_field(*opcode, line.field);
    if (field.field == nullptr) {
      table.fields.pop_back();
      continue;
    }
    read_values(line.values, field);
    table.places.emplace(std::pair(*opcode, static_cast<int>(field.field->bit)), table.fields.size() - 1);
  }
  return table;
}

// Floats and masks of tiles may be anything, and a sequence number counts: neither is worth a table.
bool is_counted(Opcode opcode, const Field& field) {
  if (field.kind == Kind::kFloat32 || field.kind == Kind::kTileMask || field == common::kOpcode) return false;
  const Field* sequence = sequence_field(opcode);
  return sequence == nullptr || !(field == *sequence);
}

std::int64_t usual_value(const Field& field) { return static_cast<std::int64_t>(field.usual) + field.plus; }

bool was_seen(const SeenField& seen, std::int64_t value) {
  if (seen.values.empty()) return value >= seen.lowest && value <= seen.highest;
  return std::any_of(seen.values.begin(), seen.values.end(), [&](const SeenValue& v) { return v.value == value; });
}

std::string value_text(const Field& field, std::int64_t value) {
  if (field.kind == Kind::kMask || field.kind == Kind::kRaw) return fmt::format("{:#x}", value);
  const auto index = static_cast<std::size_t>(value);
  const bool is_named =
      field.kind == Kind::kEnum && value >= 0 && index < field.values.size() && !field.values[index].empty();
  return is_named ? fmt::format("{} ({})", value, field.values[index]) : fmt::format("{}", value);
}

}  // namespace

const SeenField* SeenTable::find(Opcode opcode, const Field& field) const {
  const auto found = places.find({opcode, field.bit});
  return found == places.end() ? nullptr : &fields[found->second];
}

const SeenTable& seen_table() {
  static const SeenTable table = read_table();
  return table;
}

std::vector<Unseen> unseen_in(const Instruction& instruction) {
  std::vector<Unseen> found;
  for (const Field& field : fields(instruction.opcode())) {
    if (!is_counted(instruction.opcode(), field)) continue;
    const std::int64_t value = instruction.get(field);
    if (value == usual_value(field)) continue;
    const SeenField* seen = seen_table().find(instruction.opcode(), field);
    if (seen == nullptr || !was_seen(*seen, value)) found.push_back({&field, value, seen});
  }
  return found;
}

std::string describe_seen(const Field& field, const SeenField* seen) {
  if (seen == nullptr) return fmt::format("always {}", value_text(field, usual_value(field)));
  if (seen->values.empty()) return fmt::format("{} to {}", seen->lowest, seen->highest);
  std::string text;
  for (const SeenValue& value : seen->values) {
    text +=
        fmt::format("{}{} in {}{} of {}{}", text.empty() ? "" : ", ", value_text(field, value.value),
                    value.instructions, text.empty() ? " instructions" : "", value.files, text.empty() ? " files" : "");
  }
  return text;
}

void SeenCounter::add_file(std::span<const Program> programs) {
  const std::int64_t file = files_++;
  for (const Program& program : programs) {
    ++programs_;
    for (const Instruction& instruction : program) {
      ++instructions_;
      const Opcode opcode = instruction.opcode();
      opcodes_[opcode].add(file);
      const auto list = fields(opcode);
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (!is_counted(opcode, list[i])) continue;
        const std::int64_t value = instruction.get(list[i]);
        auto [at, is_new] = fields_.try_emplace({opcode, i});
        FieldCounts& counts = at->second;
        counts.lowest = is_new ? value : std::min(counts.lowest, value);
        counts.highest = is_new ? value : std::max(counts.highest, value);
        if (counts.has_many) continue;
        counts.values[value].add(file);
        if (counts.values.size() <= (is_number(list[i]) ? 1 : kMostValues)) continue;
        counts.has_many = true;
        counts.values.clear();
      }
    }
  }
}

std::string SeenCounter::to_def() const {
  std::string text = fmt::format(
      "// SPDX-License-Identifier: Apache-2.0\n// Written by tools/count_seen.cpp; see seen.h. Do not edit.\n"
      "SEEN_TOTALS({}, {}, {})\n",
      files_, programs_, instructions_);
  for (const auto& [opcode, counts] : opcodes_) {
    text += fmt::format("SEEN_OPCODE(\"{}\", {}, {})\n", info(opcode).mnemonic, counts.instructions, counts.files);
  }
  for (const auto& [key, counts] : fields_) {
    const Field& field = fields(key.first)[key.second];
    const bool is_always_usual =
        !counts.has_many && counts.values.size() == 1 && counts.values.begin()->first == usual_value(field);
    if (is_always_usual) continue;
    std::string values;
    if (counts.has_many) {
      values = fmt::format("{}..{}", counts.lowest, counts.highest);
    } else {
      for (const auto& [value, c] : counts.values) {
        values += fmt::format("{}{}:{}/{}", values.empty() ? "" : " ", value, c.instructions, c.files);
      }
    }
    text += fmt::format("SEEN_FIELD(\"{}\", \"{}\", \"{}\")\n", info(key.first).mnemonic, field.full_name(), values);
  }
  return text;
}

}  // namespace reef::isa
