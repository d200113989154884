// SPDX-License-Identifier: Apache-2.0
// Program -> text. Each instruction is a line "mnemonic field=value ..." and, where it has them, indented lines for its
// loop nests, waits, signals and remaining fields. Left out is only what the assembler fills in by itself: fields at
// their usual value, sequence numbers that count on, the length in `start`, branch offsets (labels) and the length of
// repeated bodies (braces).
#include "isa/disassembler.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/printable.h"
#include "isa/dma_trace.h"
#include "isa/fence.h"
#include "isa/frame.h"
#include "isa/scalar.h"
#include "isa/tensor_op.h"
#include "isa/text_parts.h"
#include "isa/text_scalar.h"
#include "isa/text_value.h"

namespace reef::isa {
namespace {

constexpr std::size_t kLineLength = 116;
constexpr std::size_t kCommentColumn = 72;
// Deeper nesting of repeated bodies is printed with explicit lengths: indentation must not grow with the program.
constexpr std::size_t kMaxDepth = 8;

// The fields of an opcode that are printed one by one: those that belong to no nest, watcher, producer or table and
// that no special rule prints.
std::vector<const Field*> loose_fields(Opcode opcode) {
  std::set<int> covered = {common::kOpcode.bit};
  FieldList grouped;
  grouped.add(nests(opcode));
  grouped.add(watchers(opcode));
  grouped.add(producers(opcode));
  for (const Field& field : grouped.fields()) covered.insert(field.bit);
  std::vector<const Field*> loose;
  for (const Field& field : fields(opcode)) {
    const bool in_table = opcode == Opcode::kLoadActivation && field.kind == Kind::kFloat32;
    if (!in_table && !covered.contains(field.bit)) loose.push_back(&field);
  }
  return loose;
}

const std::vector<const Field*>& loose_fields_of(Opcode opcode) {
  static const auto all = [] {
    std::array<std::vector<const Field*>, 64> table;
    for (const OpcodeInfo& op : all_opcodes()) table[at(op.opcode)] = loose_fields(op.opcode);
    return table;
  }();
  return all[at(opcode)];
}

class Printer {
 public:
  Printer(std::span<const Instruction> program, const DisassemblyOptions& options)
      : program_(program), options_(options), total_rows_(row_count(program)) {
    starts_.reserve(program.size() + 1);
    int row = 0;
    for (const Instruction& instruction : program) {
      starts_.push_back(row);
      row += instruction.rows();
    }
    starts_.push_back(row);
    for (std::size_t i = 0; i < program.size(); ++i) {
      if (const auto target = branch_target(i)) labels_.insert(*target);
    }
  }

  std::string print() {
    for (std::size_t i = 0; i < program_.size(); ++i) {
      close_bodies(starts_[i]);
      print_label(starts_[i]);
      print_instruction(i);
    }
    close_bodies(total_rows_);
    print_label(total_rows_);
    return std::move(out_);
  }

 private:
  bool is_boundary(int row) const { return std::binary_search(starts_.begin(), starts_.end(), row); }

  // The row that instruction i branches to, if a label can stand there.
  std::optional<int> branch_target(std::size_t i) const {
    if (program_[i].opcode() != Opcode::kBranch) return std::nullopt;
    const auto row = starts_[i] + static_cast<int>(program_[i].get(control::kBranchOffset));
    if (!is_boundary(row)) return std::nullopt;
    return row;
  }

  // The row behind the body of repeat i, if it can be printed in braces.
  std::optional<int> body_end(std::size_t i) const {
    const auto rows = static_cast<int>(program_[i].get(control::kRepeatRows));
    const int end = starts_[i + 1] + rows;
    const int limit = bodies_.empty() ? total_rows_ : bodies_.back();
    if (rows == 0 || end > limit || !is_boundary(end) || bodies_.size() >= kMaxDepth) return std::nullopt;
    return end;
  }

  std::string indent() const { return std::string(2 * bodies_.size(), ' '); }

  void close_bodies(int row) {
    while (!bodies_.empty() && bodies_.back() == row) {
      bodies_.pop_back();
      out_ += indent() + "}\n";
      trace_.forget();
    }
  }

  void print_label(int row) {
    if (!labels_.contains(row)) return;
    out_ += fmt::format("L{}:\n", row);
    trace_.forget();
  }

  void end_first_line(std::size_t line_start, std::size_t i) {
    const std::string remark = trace_.follow(program_[i]);
    if (options_.comments) {
      const std::size_t length = out_.size() - line_start;
      out_.append(length < kCommentColumn ? kCommentColumn - length : 1, ' ');
      fmt::format_to(std::back_inserter(out_), "; row {}", starts_[i]);
      if (!remark.empty()) fmt::format_to(std::back_inserter(out_), ": {}", remark);
    }
    out_ += '\n';
  }

  void statement(std::string_view text) { fmt::format_to(std::back_inserter(out_), "{}  {}\n", indent(), text); }

  void print_instruction(std::size_t i) {
    const Instruction& in = program_[i];
    const std::size_t line_start = out_.size();
    out_ += indent();
    if (in.test(common::kPredicated)) {
      fmt::format_to(std::back_inserter(out_), "if {}p{} ", in.test(common::kPredicateSense) ? "" : "!",
                     in.bits(common::kPredicate));
    }
    out_ += info(in.opcode()).mnemonic;
    if (in.opcode() == Opcode::kScalar) {
      out_ += ' ' + text::print_bundle(in);
      end_first_line(line_start, i);
      return;
    }
    std::vector<std::string> items = print_items(i);
    std::optional<int> body;
    if (in.opcode() == Opcode::kBranch) print_branch(i);
    if (in.opcode() == Opcode::kRepeat) {
      body = body_end(i);
      fmt::format_to(std::back_inserter(out_), " {}", in.get(control::kRepeatCount));
    }
    // The many fields of a tensor instruction read better behind its nests.
    std::size_t next = 0;
    const std::size_t on_first = is_tensor_op(in.opcode()) ? leading_items(in) : items.size();
    while (next < on_first && out_.size() - line_start + items[next].size() + 1 < kLineLength) {
      out_ += ' ' + items[next++];
    }
    if (body) out_ += " {";
    end_first_line(line_start, i);
    print_parts(in);
    print_rest(items, next);
    if (body) bodies_.push_back(*body);
  }

  // How many of the items of a tensor instruction go to its first line: tiles and sequence.
  std::size_t leading_items(const Instruction& in) const {
    return (in.bits(tile::kTiles) != 0 ? 1 : 0) + (sequence_printed_ ? 1 : 0);
  }

  void print_branch(std::size_t i) {
    const Instruction& in = program_[i];
    if (const auto target = branch_target(i)) fmt::format_to(std::back_inserter(out_), " to L{}", *target);
    if (in.test(control::kBranchPredicated)) {
      fmt::format_to(std::back_inserter(out_), " if {}p{}", in.test(control::kBranchSense) ? "" : "!",
                     in.bits(control::kBranchPredicate));
    }
  }

  // Whether another rule already says what the field holds.
  bool is_said(std::size_t i, const Field& field) {
    const Instruction& in = program_[i];
    if (field == common::kPredicated) return true;
    if (field == common::kPredicate || field == common::kPredicateSense) return in.test(common::kPredicated);
    switch (in.opcode()) {
      case Opcode::kStart:
        return field == control::kStartLength && in.bits(field) == automatic_length(total_rows_);
      case Opcode::kBranch:
        if (field == control::kBranchOffset) return branch_target(i).has_value();
        return field == control::kBranchPredicated ||
               ((field == control::kBranchPredicate || field == control::kBranchSense) &&
                in.test(control::kBranchPredicated));
      case Opcode::kRepeat:
        return field == control::kRepeatCount || (field == control::kRepeatRows && body_end(i).has_value());
      case Opcode::kScalarFence:
        for (int k = 0; k < kScalarCounterCount; ++k) {
          if (field == scalar_fence::compare(k)) return true;
          if (field == scalar_fence::threshold(k)) return in.test(scalar_fence::compare(k));
        }
        return false;
      default:
        return false;
    }
  }

  std::vector<std::string> print_items(std::size_t i) {
    const Instruction& in = program_[i];
    const Field* const sequence = sequence_field(in.opcode());
    sequence_printed_ = false;
    std::vector<std::string> items;
    for (const Field* field : loose_fields_of(in.opcode())) {
      bool wanted = in.bits(*field) != field->usual && !is_said(i, *field);
      if (field->kind == Kind::kEnum) wanted = true;  // value 0 has a name worth reading
      if (in.opcode() == Opcode::kStart && *field == control::kStartLength) wanted = !is_said(i, *field);
      if (in.opcode() == Opcode::kBranch && *field == control::kBranchOffset) wanted = !is_said(i, *field);
      if (sequence != nullptr && *field == *sequence) {
        const std::uint32_t value = in.bits(*field);
        wanted = value != next_sequence_ || options_.always_sequence;
        next_sequence_ = (value + 1) & 0xffff;
        sequence_printed_ = wanted;
      }
      if (!wanted) continue;
      std::string item;
      text::print_item(item, in, *field);
      items.push_back(std::move(item));
    }
    return items;
  }

  void print_parts(const Instruction& in) {
    for (const NestFields& nest : nests(in.opcode())) {
      if (text::is_empty(in, nest)) continue;
      std::string line = text::print_nest(in, nest);
      if (options_.comments && nest.unit == AddressUnit::kWideQuarter && in.test(nest.base)) {
        line += fmt::format("  ; line {}", in.bits(nest.base) / 4);
      }
      statement(line);
    }
    int next_slot = 0;
    for (const WatcherFields& watcher : watchers(in.opcode())) {
      if (in.read_watcher(watcher) == Watcher{}) continue;
      statement(text::print_watcher(in, watcher, next_slot));
      next_slot = watcher.slot + 1;
    }
    for (const ProducerFields& producer : producers(in.opcode())) {
      if (!(in.read_producer(producer) == Producer{})) statement(text::print_producer(in, producer));
    }
    if (in.opcode() == Opcode::kScalarFence) {
      for (const std::string& line : text::print_compares(in)) statement(line);
    }
    if (in.opcode() == Opcode::kLoadActivation) {
      for (const std::string& line : text::print_table(in)) statement(line);
    }
  }

  void print_rest(const std::vector<std::string>& items, std::size_t next) {
    while (next < items.size()) {
      std::string line = "set   ";
      do {
        line += ' ' + items[next++];
      } while (next < items.size() && line.size() + items[next].size() + 1 + indent().size() + 2 < kLineLength);
      statement(line);
    }
  }

  std::span<const Instruction> program_;
  const DisassemblyOptions& options_;
  int total_rows_;
  std::vector<int> starts_;  // row of each instruction, and the row behind the last
  std::set<int> labels_;     // rows that branches go to
  std::vector<int> bodies_;  // rows behind the open repeated bodies, innermost last
  std::uint32_t next_sequence_ = 0;
  bool sequence_printed_ = false;
  DmaTrace trace_;
  std::string out_;
};

std::string quote(std::string_view text) {
  std::string out = "\"";
  const bool is_printable = printable(text) == text;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !is_printable)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(byte));
    } else {
      out += c;
    }
  }
  return out + '"';
}

bool is_plain(std::string_view text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') && std::all_of(text.begin(), text.end(), plain);
}

}  // namespace

std::string disassemble(std::span<const Instruction> program, const DisassemblyOptions& options) {
  return Printer(program, options).print();
}

std::string print_listing(const Listing& listing, const DisassemblyOptions& options) {
  std::string out;
  for (const NamedProgram& program : listing.programs) {
    if (!out.empty()) out += '\n';
    out += ".program " + quote(program.name);
    for (const auto& [key, value] : program.attributes) {
      out += ' ' + (is_plain(key) ? key : quote(key)) + '=' + quote(value);
    }
    out += '\n' + disassemble(program.program, options);
  }
  return out;
}

}  // namespace reef::isa
