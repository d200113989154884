// SPDX-License-Identifier: Apache-2.0
// A slot is printed in words only where the words say all of its bits; otherwise its fields are listed after "set". So
// any bits survive, and the code of real programs stays readable.
#include "isa/text_scalar.h"

#include <bitset>
#include <vector>

#include <fmt/format.h>

#include "isa/scalar.h"
#include "isa/text_value.h"

namespace reef::isa::text {
namespace {

using namespace bundle;

constexpr std::uint32_t kRegisters = 32;

struct SlotText {
  std::string words;    // empty: nothing to say
  bool listed = false;  // its fields must be listed instead
};

std::string print_integer(std::uint32_t value) {
  return value < 100000 ? fmt::format("{}", value) : fmt::format("{:#x}", value);
}

SlotText alu_slot(const Instruction& in) {
  const std::uint32_t alu = in.bits(kAlu);
  const std::uint32_t source = in.bits(kAluSource);
  const std::uint32_t operand = in.bits(kAluOperand);
  const bool immediate = in.test(kAluImmediate);
  if (alu == 0) return {"", immediate || in.test(kAluDest) || source != 0 || operand != 0};
  if (alu >= std::size(kAluNames) || (is_unary(alu) && source != 0) || (!immediate && operand >= kRegisters)) {
    return {"", true};
  }
  std::string second = fmt::format("r{}", operand);
  if (immediate) second = takes_float(alu) ? print_float(operand) : print_integer(operand);
  std::string words = fmt::format("{}{} = {} ", writes_predicate(alu) ? 'p' : 'r', in.bits(kAluDest), kAluNames[alu]);
  if (!is_unary(alu)) words += fmt::format("r{}, ", source);
  return {words + second, false};
}

SlotText load_slot(const Instruction& in) {
  const std::uint32_t address = in.bits(kLoadAddress);
  const std::uint32_t dest = in.bits(kLoadDest);
  switch (static_cast<Load>(in.bits(kLoad))) {
    case Load::kNone:
      return {"", address != 0 || dest != 0};
    case Load::kAddress:
      return {fmt::format("r{} = load [{}]", dest, address), false};
    case Load::kRegister:
      if (address >= kRegisters) return {"", true};
      return {fmt::format("r{} = load [r{}]", dest, address), false};
    case Load::kRegisterStep:
      return {fmt::format("r{} = load [r{} += {}]", dest, address % kRegisters, address / kRegisters), false};
  }
  return {"", true};
}

SlotText store_slot(const Instruction& in) {
  const std::uint32_t address = in.bits(kStoreAddress);
  const std::uint32_t source = in.bits(kStoreSource);
  switch (static_cast<Store>(in.bits(kStore))) {
    case Store::kNone:
      return {"", address != 0 || source != 0};
    case Store::kAddress:
      return {fmt::format("store [{}] = r{}", address, source), false};
    case Store::kRegister:
      if (address >= kRegisters) return {"", true};
      return {fmt::format("store [r{}] = r{}", address, source), false};
    case Store::kRegisterStep:
      return {fmt::format("store [r{} += {}] = r{}", address % kRegisters, address / kRegisters, source), false};
    case Store::kPush:
      if (address != 0) return {"", true};
      return {fmt::format("push r{}", source), false};
    case Store::kDescriptor:
      if (address >= std::size(kDescriptorWords)) return {"", true};
      return {fmt::format("dma.{} = r{}", kDescriptorWords[address], source), false};
    case Store::kIssue:
      if (address != 0 || source != 0) return {"", true};
      return {"dma.issue", false};
  }
  return {"", true};
}

SlotText math_slot(const Instruction& in) {
  const std::uint32_t math = in.bits(kMath);
  if (math == 0) return {"", in.test(kMathDest) || in.test(kMathSource)};
  if (math >= std::size(kMathNames) || kMathNames[math].empty()) return {"", true};
  return {fmt::format("r{} = {} r{}", in.bits(kMathDest), kMathNames[math], in.bits(kMathSource)), false};
}

struct Slot {
  SlotText (*text)(const Instruction&);
  std::vector<Field> fields;
};
const std::vector<Slot>& slots() {
  static const std::vector<Slot> all = {{alu_slot, {kAlu, kAluImmediate, kAluDest, kAluSource, kAluOperand}},
                                        {load_slot, {kLoad, kLoadDest, kLoadAddress}},
                                        {store_slot, {kStore, kStoreAddress, kStoreSource}},
                                        {math_slot, {kMath, kMathDest, kMathSource}}};
  return all;
}

// ---- Reading ----

enum SlotIndex { kAluSlot, kLoadSlot, kStoreSlot, kMathSlot, kSlotCount };
using UsedSlots = std::bitset<kSlotCount>;

// Collects what the rules of the slots read, before it goes into the instruction.
class BundleReader {
 public:
  BundleReader(Line& line, Instruction& instruction) : line_(line), instruction_(instruction) {}

  Status slot() {
    if (line_.accept_word("store")) return store();
    if (line_.accept_word("push")) {
      REEF_RETURN_IF_ERROR(claim(kStoreSlot));
      return store_from(Store::kPush, 0);
    }
    if (line_.next_word().starts_with("dma.")) return descriptor();
    if (is_operand('p')) return predicate();
    if (is_operand('r')) return to_register();
    return line_.expected("a slot: rN = ..., pN = ..., store, push, dma.WORD = rN, dma.issue, set or nop");
  }

 private:
  bool is_operand(char kind) const {
    const std::string_view word = line_.next_word();
    return word.size() > 1 && word[0] == kind && word[1] >= '0' && word[1] <= '9';
  }

  Result<std::uint32_t> operand(char kind) {
    const std::string what = fmt::format("{}0 to {}31", kind, kind);
    std::int64_t number = 0;
    const std::string_view word = line_.next_word();
    if (word.size() < 2 || word[0] != kind || !read_integer(word.substr(1), number) || number < 0 || number > 31) {
      return line_.expected(what);
    }
    REEF_RETURN_IF_ERROR(line_.expect_word(word));
    return static_cast<std::uint32_t>(number);
  }

  Status claim(SlotIndex slot) {
    constexpr std::string_view kNames[] = {"arithmetic", "load", "store", "math"};
    if (used_.test(slot)) {
      return complaint(line_.place(),
                       fmt::format("expected another kind of slot: a bundle has one {} slot", kNames[slot]));
    }
    used_.set(slot);
    return ok_status();
  }

  Status predicate() {
    REEF_ASSIGN_OR_RETURN(const std::uint32_t dest, operand('p'));
    REEF_RETURN_IF_ERROR(line_.expect("="));
    const std::string_view name = line_.next_word();
    for (std::uint32_t alu = 1; alu < std::size(kAluNames); ++alu) {
      if (writes_predicate(alu) && kAluNames[alu] == name) return arithmetic(alu, dest);
    }
    return line_.expected("a comparison: eq, ne, gt, lt, ge or geu");
  }

  Status to_register() {
    REEF_ASSIGN_OR_RETURN(const std::uint32_t dest, operand('r'));
    REEF_RETURN_IF_ERROR(line_.expect("="));
    if (line_.accept_word("load")) return load(dest);
    const std::string_view name = line_.next_word();
    for (std::uint32_t math = 1; math < std::size(kMathNames); ++math) {
      if (!kMathNames[math].empty() && kMathNames[math] == name) return math_function(math, dest);
    }
    for (std::uint32_t alu = 1; alu < std::size(kAluNames); ++alu) {
      if (!writes_predicate(alu) && kAluNames[alu] == name) return arithmetic(alu, dest);
    }
    return line_.expected(
        "an operation: load, mov, add, sub, and, or, xor, shl, shr, asr, i2f, f2i, fadd, fsub, fmul, "
        "fmax, fmin, reciprocal or exp2");
  }

  Status arithmetic(std::uint32_t alu, std::uint32_t dest) {
    REEF_RETURN_IF_ERROR(claim(kAluSlot));
    REEF_RETURN_IF_ERROR(line_.expect_word(kAluNames[alu]));
    std::uint32_t source = 0;
    if (!is_unary(alu)) {
      REEF_ASSIGN_OR_RETURN(source, operand('r'));
      REEF_RETURN_IF_ERROR(line_.expect(","));
    }
    std::uint32_t second = 0;
    const bool immediate = !is_operand('r');
    if (!immediate) {
      REEF_ASSIGN_OR_RETURN(second, operand('r'));
    } else if (takes_float(alu)) {
      const Line here = line_;
      REEF_ASSIGN_OR_RETURN(const std::string_view token, line_.token("a register or a float"));
      if (!read_float(token, second)) return here.expected("a register, a float, or 32 bits in hexadecimal");
    } else {
      REEF_ASSIGN_OR_RETURN(const std::int64_t value,
                            line_.number("a register or an immediate", -(std::int64_t{1} << 31), 0xffffffffll));
      second = static_cast<std::uint32_t>(value & 0xffffffffll);
    }
    REEF_RETURN_IF_ERROR(instruction_.set(kAlu, alu));
    REEF_RETURN_IF_ERROR(instruction_.set(kAluImmediate, immediate));
    REEF_RETURN_IF_ERROR(instruction_.set(kAluDest, dest));
    REEF_RETURN_IF_ERROR(instruction_.set(kAluSource, source));
    return instruction_.set(kAluOperand, second);
  }

  // "[word]", "[rN]" or "[rN += step]", with the bits that loads and stores have for it alike.
  struct Place {
    enum Kind { kWord, kInRegister, kInRegisterStep } kind = kWord;
    std::int64_t address = 0;
  };
  Result<Place> bracketed_place() {
    static_assert(kLoadAddress.width == kStoreAddress.width);
    REEF_RETURN_IF_ERROR(line_.expect("["));
    Place place;
    if (is_operand('r')) {
      REEF_ASSIGN_OR_RETURN(place.address, operand('r'));
      place.kind = line_.accept("+=") ? Place::kInRegisterStep : Place::kInRegister;
      if (place.kind == Place::kInRegisterStep) {
        REEF_ASSIGN_OR_RETURN(const std::int64_t step, line_.number("a step", 0, kLoadAddress.mask() / kRegisters));
        place.address += step * kRegisters;
      }
    } else {
      REEF_ASSIGN_OR_RETURN(place.address, line_.number("a register or a word address", 0, kLoadAddress.mask()));
    }
    REEF_RETURN_IF_ERROR(line_.expect("]"));
    return place;
  }

  Status load(std::uint32_t dest) {
    REEF_RETURN_IF_ERROR(claim(kLoadSlot));
    REEF_ASSIGN_OR_RETURN(const Place place, bracketed_place());
    constexpr Load kKinds[] = {Load::kAddress, Load::kRegister, Load::kRegisterStep};
    REEF_RETURN_IF_ERROR(instruction_.set(kLoad, static_cast<std::int64_t>(kKinds[place.kind])));
    REEF_RETURN_IF_ERROR(instruction_.set(kLoadDest, dest));
    return instruction_.set(kLoadAddress, place.address);
  }

  Status store() {
    REEF_RETURN_IF_ERROR(claim(kStoreSlot));
    REEF_ASSIGN_OR_RETURN(const Place place, bracketed_place());
    REEF_RETURN_IF_ERROR(line_.expect("="));
    constexpr Store kKinds[] = {Store::kAddress, Store::kRegister, Store::kRegisterStep};
    return store_from(kKinds[place.kind], place.address);
  }

  Status descriptor() {
    REEF_RETURN_IF_ERROR(claim(kStoreSlot));
    if (line_.accept_word("dma.issue")) return instruction_.set(kStore, static_cast<std::int64_t>(Store::kIssue));
    for (std::size_t word = 0; word < std::size(kDescriptorWords); ++word) {
      if (line_.next_word().substr(4) != kDescriptorWords[word]) continue;
      REEF_RETURN_IF_ERROR(line_.expect_word(line_.next_word()));
      REEF_RETURN_IF_ERROR(line_.expect("="));
      return store_from(Store::kDescriptor, static_cast<std::int64_t>(word));
    }
    return line_.expected("dma.address_lo, dma.address_hi, dma.bytes, dma.tag or dma.issue");
  }

  Status store_from(Store kind, std::int64_t address) {
    REEF_ASSIGN_OR_RETURN(const std::uint32_t source, operand('r'));
    REEF_RETURN_IF_ERROR(instruction_.set(kStore, static_cast<std::int64_t>(kind)));
    REEF_RETURN_IF_ERROR(instruction_.set(kStoreAddress, address));
    return instruction_.set(kStoreSource, source);
  }

  Status math_function(std::uint32_t math, std::uint32_t dest) {
    REEF_RETURN_IF_ERROR(claim(kMathSlot));
    REEF_RETURN_IF_ERROR(line_.expect_word(kMathNames[math]));
    REEF_ASSIGN_OR_RETURN(const std::uint32_t source, operand('r'));
    REEF_RETURN_IF_ERROR(instruction_.set(kMath, math));
    REEF_RETURN_IF_ERROR(instruction_.set(kMathDest, dest));
    return instruction_.set(kMathSource, source);
  }

  Line& line_;
  Instruction& instruction_;
  UsedSlots used_;
};

}  // namespace

std::string print_bundle(const Instruction& instruction) {
  std::string out;
  std::string listed;
  const auto list = [&](const Field& field) {
    if (!instruction.test(field)) return;
    listed += ' ';
    print_item(listed, instruction, field);
  };
  for (const Slot& slot : slots()) {
    const SlotText text = slot.text(instruction);
    if (!text.words.empty()) out += (out.empty() ? "" : " | ") + text.words;
    if (!text.listed) continue;
    for (const Field& field : slot.fields) list(field);
  }
  for (const Field& field : fields(Opcode::kScalar)) {
    if (field.kind == Kind::kRaw) list(field);
  }
  if (!instruction.test(common::kPredicated)) {
    list(common::kPredicate);
    list(common::kPredicateSense);
  }
  if (!listed.empty()) out += (out.empty() ? "set" : " | set") + listed;
  return out.empty() ? "nop" : out;
}

Status read_bundle(Line& line, Instruction& instruction) {
  BundleReader reader(line, instruction);
  if (line.accept_word("nop")) return line.expect_end();
  do {
    if (line.accept_word("set")) {
      do {
        REEF_ASSIGN_OR_RETURN([[maybe_unused]] const Field* field, read_item(line, instruction));
      } while (!line.at_end());
      return ok_status();
    }
    REEF_RETURN_IF_ERROR(reader.slot());
  } while (line.accept("|"));
  return line.expect_end();
}

}  // namespace reef::isa::text
