// SPDX-License-Identifier: Apache-2.0
// Opcodes 20 to 23, 3e and 3f: the scalar core.
//
// A bundle (20) has up to four slots that act in one step: arithmetic, a load, a store or host queue access, and a math
// function. 32 registers of 32 bits (r0..r31), 8 predicates (p0..p7), 4096 words of memory.
// Where the layout comes from: the register fields, the immediate and the integer operations were measured on a chip by
// others and published (edgetpuxray). The floating-point operations, math functions and memory addressing are inferred
// from the softmax that old compilers run on this core (with 1.442695 as factor before math function 3, 255 and 0 as
// limits before the conversion to integer, and so on): the code makes sense with these readings, but nobody has run it.
#pragma once

#include "isa/layout.h"

namespace reef::isa {

namespace bundle {

using layout::field;
using layout::flag;
using layout::with_values;

enum class Alu : std::uint8_t {
  kNone,
  kAdd,
  kSub,
  kAnd,
  kOr,
  kXor,
  kShiftLeft,
  kShiftRight,
  kShiftRightSigned,
  kEqual,  // 9 to 14 write a predicate
  kNotEqual,
  kGreater,
  kLess,
  kGreaterEqual,
  kGreaterEqualUnsigned,
  kMove,
  kIntToFloat,
  kFloatToInt,
  kFloatAdd,
  kFloatSub,
  kFloatMul,
  kFloatMax,
  kFloatMin,
};
inline constexpr std::string_view kAluNames[] = {"none", "add", "sub",  "and",  "or",   "xor",  "shl", "shr",
                                                 "asr",  "eq",  "ne",   "gt",   "lt",   "ge",   "geu", "mov",
                                                 "i2f",  "f2i", "fadd", "fsub", "fmul", "fmax", "fmin"};
constexpr bool writes_predicate(std::uint32_t alu) { return alu >= 9 && alu <= 14; }
// Uses only the second operand.
constexpr bool is_unary(std::uint32_t alu) { return alu >= 15 && alu <= 17; }
constexpr bool takes_float(std::uint32_t alu) { return alu >= 18 && alu <= 22; }

inline constexpr std::string_view kLoadNames[] = {"none", "address", "register", "register_step"};
enum class Load : std::uint8_t { kNone, kAddress, kRegister, kRegisterStep };

// Words of the host DMA descriptor that kDescriptor writes.
inline constexpr std::string_view kDescriptorWords[] = {"address_lo", "address_hi", "bytes", "tag"};
enum class DescriptorTag : std::uint8_t { kInput = 1, kParameters = 2, kOutput = 3, kInterrupt = 4 };
inline constexpr std::string_view kDescriptorTags[] = {"", "input", "parameters", "output", "interrupt"};

enum class Store : std::uint8_t {
  kNone = 0,
  kAddress = 2,
  kRegister = 4,
  kRegisterStep = 6,
  kPush = 8,
  kDescriptor = 10,
  kIssue = 12
};
inline constexpr std::string_view kStoreNames[] = {
    "none", "", "store_address", "", "store_register", "", "store_register_step", "",
    "push", "", "descriptor",    "", "issue"};
inline constexpr std::string_view kMathNames[] = {"none", "", "reciprocal", "exp2"};

inline constexpr Field kLoad = with_values(
    field("load", 12, 2, Kind::kEnum, "",
          "load slot: 1 from load_address, 2 from the address in the register load_address[0:5], 3 the same "
          "and then adds load_address[5:12] to that register",
          Evidence::kInferred),
    kLoadNames);
inline constexpr Field kLoadDest =
    field("load_dest", 14, 5, Kind::kUnsigned, "register", "where the loaded word goes", Evidence::kPublished);
inline constexpr Field kLoadAddress =
    field("load_address", 19, 12, Kind::kUnsigned, "word", "word address, or register and step", Evidence::kInferred);
inline constexpr Field kStore =
    with_values(field("store", 31, 5, Kind::kEnum, "",
                      "store slot: 2 to memory word store_address, 4 to the address in the register "
                      "store_address[0:5], 6 the same and then adds store_address[5:12] to that register (the twin of "
                      "load 3), 8 to the host's output queue, 10 to a word of the DMA descriptor, 12 issues the "
                      "descriptor",
                      Evidence::kInferred),
                kStoreNames);
inline constexpr Field kStoreAddress =
    field("store_address", 36, 12, Kind::kUnsigned, "word", "word address, register and step, or descriptor word",
          Evidence::kInferred);
inline constexpr Field kStoreSource =
    field("store_source", 49, 5, Kind::kUnsigned, "register", "what is stored", Evidence::kPublished);
inline constexpr Field kAlu =
    with_values(field("alu", 54, 5, Kind::kEnum, "",
                      "arithmetic slot; 1 to 15 published, 16 to 22 inferred. eq to geu write predicate alu_dest",
                      Evidence::kPublished),
                kAluNames);
inline constexpr Field kAluImmediate = flag(
    "alu_immediate", 59, "1: the second operand is alu_operand, 0: the register of that number", Evidence::kPublished);
inline constexpr Field kAluDest = field("alu_dest", 60, 5, Kind::kUnsigned, "register",
                                        "register or predicate that is written", Evidence::kPublished);
inline constexpr Field kAluSource =
    field("alu_source", 65, 5, Kind::kUnsigned, "register", "first operand", Evidence::kPublished);
// The immediates that the runtime patches with host addresses (the package's field offsets) are these.
inline constexpr Field kAluOperand =
    field("alu_operand", 70, 32, Kind::kUnsigned, "", "second operand: a number or a register", Evidence::kPublished);
inline constexpr Field kMath = with_values(
    field("math", 102, 3, Kind::kEnum, "", "math slot: 2 gives 1 / x, 3 gives 2^x", Evidence::kInferred), kMathNames);
inline constexpr Field kMathDest =
    field("math_dest", 105, 5, Kind::kUnsigned, "register", "where the result goes", Evidence::kInferred);
inline constexpr Field kMathSource =
    field("math_source", 110, 5, Kind::kUnsigned, "register", "the argument", Evidence::kInferred);

}  // namespace bundle

namespace control {

using layout::field;
using layout::flag;
using layout::with_usual;

// 21
inline constexpr Field kHaltCode =
    field("code", 12, 16, Kind::kUnsigned, "",
          "16 in the last program of an executable; 4, or 0 from old compilers, where another one follows",
          Evidence::kObserved);
// 22
inline constexpr Field kBranchPredicated =
    flag("branch_predicated", 12, "branches only if the predicate agrees with branch_sense", Evidence::kObserved);
inline constexpr Field kBranchPredicate =
    field("branch_predicate", 13, 3, Kind::kUnsigned, "predicate", "which predicate register", Evidence::kInferred);
inline constexpr Field kBranchSense =
    flag("branch_sense", 16, "1: branches if the predicate is set, 0: if it is clear", Evidence::kInferred);
inline constexpr Field kBranchOffset =
    field("offset", 17, 15, Kind::kSigned, "rows", "target row minus own row", Evidence::kObserved);
inline constexpr Field kBranchRaw33 = raw("raw_33", 33, 1, "always 1", 1);
// 23
inline constexpr Field kRepeatCount =
    field("count", 12, 16, Kind::kUnsigned, "times", "how often the body is executed", Evidence::kObserved);
inline constexpr Field kRepeatRows =
    field("body_rows", 28, 10, Kind::kUnsigned, "rows", "length of the body that follows; it holds scalar bundles only",
          Evidence::kObserved);
// 3e, 3f
inline constexpr Field kStartLength =
    field("length", 19, 21, Kind::kUnsigned, "bits", "all rows but the first and the last, times 128, modulo 2^21",
          Evidence::kObserved);
inline constexpr Field kEndLength = with_usual(
    field("length", 19, 21, Kind::kUnsigned, "bits", "always 128: the row itself", Evidence::kObserved), 128);

}  // namespace control

}  // namespace reef::isa
