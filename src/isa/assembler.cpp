// SPDX-License-Identifier: Apache-2.0
// Text -> programs, line by line. A line is a directive (.program), a label, a closing brace, the first line of an
// instruction (its mnemonic), or a statement that adds to the instruction above it. What the text may leave out
// (sequence numbers, the length in `start`, branch offsets, lengths of repeated bodies) is filled in when the
// instruction or the program is complete.
#include "isa/assembler.h"

#include <bitset>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "isa/frame.h"
#include "isa/scalar.h"
#include "isa/text_line.h"
#include "isa/text_parts.h"
#include "isa/text_scalar.h"
#include "isa/text_value.h"

namespace reef::isa {
namespace {

using text::complaint;
using text::Line;
using text::Place;

// The instruction that lines are being added to.
struct Pending {
  explicit Pending(Opcode opcode) : instruction(opcode) { instruction.set_usual(); }

  Instruction instruction;
  std::bitset<kMaxRows * kRowBits> given;  // first bits of the fields that were set by name
  std::bitset<kMaxDims> nests_given;
  int next_wait = 0;
  std::vector<text::SignalCheck> signals;
};

class ProgramBuilder {
 public:
  // Takes one line that is not a directive.
  Status line(Line& line) {
    if (line.at_end()) return ok_status();
    if (line.accept("}")) return close_body(line);
    const std::string_view word = line.next_word();
    if (!word.empty() && is_label(line, word)) return label(line, word);
    if (line.at_word("if") || opcode_from_mnemonic(word)) return instruction(line);
    return statement(line);
  }

  bool is_empty() const { return program_.empty() && !pending_ && labels_.empty(); }

  Result<Program> finish() {
    REEF_RETURN_IF_ERROR(complete());
    if (!bodies_.empty()) return complaint(bodies_.back().place, "expected a '}' that closes the body of this repeat");
    for (const Reference& reference : references_) {
      const auto found = labels_.find(reference.label);
      if (found == labels_.end()) {
        return complaint(reference.place,
                         fmt::format("expected a label of this program, '{}' is none", reference.label));
      }
      const Status set = program_[reference.index].set(control::kBranchOffset, found->second - reference.row);
      if (!set.ok()) {
        return complaint(reference.place, fmt::format("'{}' is {} rows away; expected a label within -16384 to 16383",
                                                      reference.label, found->second - reference.row));
      }
    }
    for (const std::size_t index : automatic_starts_) {
      REEF_RETURN_IF_ERROR(program_[index].set(control::kStartLength, automatic_length(rows_)));
    }
    return std::move(program_);
  }

 private:
  struct Reference {
    std::size_t index;  // of the branch
    int row;            // of the branch
    std::string label;
    Place place;
  };
  struct Body {
    std::size_t index;  // of the repeat
    int first_row;
    Place place;
  };

  static bool is_label(Line line, std::string_view word) {
    return line.accept_word(word) && line.accept(":") && line.at_end();
  }

  Status label(Line& line, std::string_view word) {
    const Place place = line.place();
    REEF_RETURN_IF_ERROR(complete());
    if (!labels_.emplace(word, rows_).second) {
      return complaint(place, fmt::format("expected a new label, '{}' is already one of this program", word));
    }
    return ok_status();
  }

  Status instruction(Line& line) {
    REEF_RETURN_IF_ERROR(complete());
    std::optional<std::pair<bool, std::uint32_t>> predicate;
    if (line.accept_word("if")) {
      REEF_ASSIGN_OR_RETURN(predicate, read_predicate(line));
    }
    const auto opcode = opcode_from_mnemonic(line.next_word());
    if (!opcode) return line.expected("an instruction");
    REEF_RETURN_IF_ERROR(line.expect_word(line.next_word()));
    pending_.emplace(*opcode);
    if (predicate) {
      REEF_RETURN_IF_ERROR(pending_->instruction.set(common::kPredicated, 1));
      REEF_RETURN_IF_ERROR(pending_->instruction.set(common::kPredicateSense, predicate->first));
      REEF_RETURN_IF_ERROR(pending_->instruction.set(common::kPredicate, predicate->second));
    }
    switch (*opcode) {
      case Opcode::kScalar:
        return text::read_bundle(line, pending_->instruction);
      case Opcode::kBranch:
        REEF_RETURN_IF_ERROR(branch(line));
        break;
      case Opcode::kRepeat: {
        REEF_ASSIGN_OR_RETURN(const std::int64_t count, line.number("how often", 0, control::kRepeatCount.mask()));
        REEF_RETURN_IF_ERROR(pending_->instruction.set(control::kRepeatCount, count));
        break;
      }
      default:
        break;
    }
    return items(line);
  }

  // p3 or !p3
  static Result<std::pair<bool, std::uint32_t>> read_predicate(Line& line) {
    const bool sense = !line.accept("!");
    const std::string_view word = line.next_word();
    if (word.size() != 2 || word[0] != 'p' || word[1] < '0' || word[1] > '7') {
      return line.expected("a predicate: p0 to p7 or !p0 to !p7");
    }
    REEF_RETURN_IF_ERROR(line.expect_word(word));
    return std::pair(sense, static_cast<std::uint32_t>(word[1] - '0'));
  }

  Status branch(Line& line) {
    if (line.accept_word("to")) {
      const Place place = line.place();
      REEF_ASSIGN_OR_RETURN(const std::string_view target, line.word("a label"));
      references_.push_back({program_.size(), rows_, std::string(target), place});
      pending_->given.set(control::kBranchOffset.bit);
    }
    if (!line.accept_word("if")) return ok_status();
    REEF_ASSIGN_OR_RETURN(const auto predicate, read_predicate(line));
    REEF_RETURN_IF_ERROR(pending_->instruction.set(control::kBranchPredicated, 1));
    REEF_RETURN_IF_ERROR(pending_->instruction.set(control::kBranchSense, predicate.first));
    return pending_->instruction.set(control::kBranchPredicate, predicate.second);
  }

  // field=value ... up to the end of the line, or to the '{' of a repeat.
  Status items(Line& line) {
    while (!line.at_end()) {
      const Place place = line.place();
      if (pending_->instruction.opcode() == Opcode::kRepeat && line.accept("{")) {
        bodies_.push_back({program_.size(), rows_ + pending_->instruction.rows(), place});
        return line.expect_end();
      }
      REEF_ASSIGN_OR_RETURN(const Field* field, text::read_item(line, pending_->instruction));
      if (pending_->given.test(field->bit)) {
        return complaint(place, fmt::format("expected {} once only", field->full_name()));
      }
      pending_->given.set(field->bit);
    }
    return ok_status();
  }

  Status statement(Line& line) {
    if (!pending_) return line.expected("an instruction, a label or a directive");
    Instruction& instruction = pending_->instruction;
    const Opcode opcode = instruction.opcode();
    const Place place = line.place();
    if (line.accept_word("set")) return items(line);
    for (std::size_t k = 0; k < nests(opcode).size(); ++k) {
      if (!line.accept_word(nests(opcode)[k].name)) continue;
      if (pending_->nests_given.test(k)) {
        return complaint(place, fmt::format("expected {} once only", nests(opcode)[k].name));
      }
      pending_->nests_given.set(k);
      return text::read_nest(line, instruction, nests(opcode)[k]);
    }
    if (!watchers(opcode).empty() && line.accept_word("wait")) {
      return text::read_watcher(line, instruction, pending_->next_wait);
    }
    if (!producers(opcode).empty() && line.accept_word("signal")) {
      REEF_ASSIGN_OR_RETURN(const text::SignalCheck check, text::read_producer(line, instruction));
      pending_->signals.push_back(check);
      return ok_status();
    }
    if (opcode == Opcode::kScalarFence && line.accept_word("wait")) return text::read_compare(line, instruction);
    if (opcode == Opcode::kLoadActivation && line.accept_word("segment")) return text::read_segment(line, instruction);
    if (opcode == Opcode::kLoadActivation && line.accept_word("breaks")) return text::read_breaks(line, instruction);
    return line.expected(fmt::format("an instruction, a label, a directive or a statement of {}: {}",
                                     info(opcode).mnemonic, statement_names(opcode)));
  }

  static std::string statement_names(Opcode opcode) {
    std::string names = "set";
    for (const NestFields& nest : nests(opcode)) names += fmt::format(", {}", nest.name);
    if (!watchers(opcode).empty() || opcode == Opcode::kScalarFence) names += ", wait";
    if (!producers(opcode).empty()) names += ", signal";
    if (opcode == Opcode::kLoadActivation) names += ", segment, breaks";
    return names;
  }

  Status close_body(Line& line) {
    REEF_RETURN_IF_ERROR(complete());
    if (bodies_.empty()) return complaint(line.place(), "expected an instruction: no repeat is open here");
    const Body body = bodies_.back();
    bodies_.pop_back();
    const int length = rows_ - body.first_row;
    if (!program_[body.index].set(control::kRepeatRows, length).ok()) {
      return complaint(body.place, fmt::format("the body of this repeat has {} rows; expected at most {}", length,
                                               control::kRepeatRows.mask()));
    }
    return line.expect_end();
  }

  // The pending instruction gets what was left out and joins the program.
  Status complete() {
    if (!pending_) return ok_status();
    Instruction& instruction = pending_->instruction;
    for (const text::SignalCheck& check : pending_->signals) {
      REEF_RETURN_IF_ERROR(text::check_signal(instruction, check));
    }
    if (const Field* const sequence = sequence_field(instruction.opcode())) {
      if (!pending_->given.test(sequence->bit)) REEF_RETURN_IF_ERROR(instruction.set(*sequence, next_sequence_));
      next_sequence_ = (instruction.bits(*sequence) + 1) & 0xffff;
    }
    if (instruction.opcode() == Opcode::kStart && !pending_->given.test(control::kStartLength.bit)) {
      automatic_starts_.push_back(program_.size());
    }
    rows_ += instruction.rows();
    program_.push_back(instruction);
    pending_.reset();
    return ok_status();
  }

  Program program_;
  std::optional<Pending> pending_;
  int rows_ = 0;
  std::uint32_t next_sequence_ = 0;
  std::unordered_map<std::string, int> labels_;
  std::vector<Reference> references_;
  std::vector<Body> bodies_;
  std::vector<std::size_t> automatic_starts_;
};

// Calls body(line) for every line; stops at the first failure.
template <typename Body>
Status for_each_line(std::string_view text, Body&& body) {
  int number = 1;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    Line line(text.substr(0, end), number++);
    REEF_RETURN_IF_ERROR(body(line));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return ok_status();
}

Result<NamedProgram> read_directive(Line& line) {
  NamedProgram program;
  REEF_ASSIGN_OR_RETURN(program.name, line.quoted("the program's name"));
  while (!line.at_end()) {
    std::string key;
    if (line.peek() == '"') {
      REEF_ASSIGN_OR_RETURN(key, line.quoted("a key"));
    } else {
      REEF_ASSIGN_OR_RETURN(const std::string_view word, line.word("a key, such as chunk=\"0\""));
      key = word;
    }
    REEF_RETURN_IF_ERROR(line.expect("="));
    std::string value;
    if (line.peek() == '"') {
      REEF_ASSIGN_OR_RETURN(value, line.quoted("a value"));
    } else {
      REEF_ASSIGN_OR_RETURN(const std::string_view token, line.token("a value"));
      value = token;
    }
    program.attributes.emplace_back(std::move(key), std::move(value));
  }
  return program;
}

}  // namespace

Result<Program> assemble(std::string_view text) {
  ProgramBuilder builder;
  REEF_RETURN_IF_ERROR(for_each_line(text, [&builder](Line& line) -> Status {
    if (line.peek() == '.') return line.expected("an instruction (this text holds one program without directives)");
    return builder.line(line);
  }));
  return builder.finish();
}

Result<Listing> parse_listing(std::string_view text) {
  Listing listing;
  std::optional<NamedProgram> current;
  ProgramBuilder builder;
  const auto close = [&]() -> Status {
    if (!current && builder.is_empty()) return ok_status();
    if (!current) current.emplace();
    REEF_ASSIGN_OR_RETURN(current->program, builder.finish());
    listing.programs.push_back(std::move(*current));
    current.reset();
    builder = ProgramBuilder();
    return ok_status();
  };
  REEF_RETURN_IF_ERROR(for_each_line(text, [&](Line& line) -> Status {
    if (line.peek() != '.') return builder.line(line);
    if (!line.accept(".program")) return line.expected("the directive .program");
    REEF_RETURN_IF_ERROR(close());
    REEF_ASSIGN_OR_RETURN(current, read_directive(line));
    return ok_status();
  }));
  REEF_RETURN_IF_ERROR(close());
  return listing;
}

}  // namespace reef::isa
