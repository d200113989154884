// SPDX-License-Identifier: Apache-2.0
#include "isa/misreading.h"

#include <algorithm>
#include <array>
#include <limits>

#include "isa/format.h"

namespace reef::isa {
namespace {

constexpr std::array kMisreadings = {
#define MISREADING(constant, name, deed, refuted) MisreadingInfo{Misreading::constant, name, deed, refuted},
#include "isa/misreadings.def"
#undef MISREADING
};

// Where the opcode has such a field.
void put(Instruction& instruction, std::string_view name, std::int64_t value) {
  if (const Field* const field = find_field(instruction.opcode(), name)) (void)instruction.set(*field, value);
}

void put_float(Instruction& instruction, std::string_view name, float value) {
  if (const Field* const field = find_field(instruction.opcode(), name)) (void)instruction.set_float(*field, value);
}

bool is_tensor_operation(Opcode opcode) {
  return opcode == Opcode::kMultiplyAdd || opcode == Opcode::kMaximum || opcode == Opcode::kSum;
}

void apply_to_tensor_operation(Misreading misreading, Instruction& instruction) {
  switch (misreading) {
    case Misreading::kNoBias:
      return put(instruction, "bias", 0);
    case Misreading::kNoConstant:
      return put(instruction, "constant", 0);
    case Misreading::kOneScale:
      return put(instruction, "scale_per_cell", 0);
    case Misreading::kNoClamp:
      put_float(instruction, "min", std::numeric_limits<float>::lowest());
      return put_float(instruction, "max", std::numeric_limits<float>::max());
    case Misreading::kZeroPointOneLess: {
      const std::int64_t zero = instruction.get(*find_field(instruction.opcode(), "out_zero"));
      return put(instruction, "out_zero", std::max<std::int64_t>(zero - 1, 0));
    }
    case Misreading::kInputZeroIgnored:
      return put(instruction, "in_zero", 0);
    case Misreading::kOneParameterZero:
      return put(instruction, "param_zero_per_cell", 0);
    case Misreading::kNoTable:
      return put(instruction, "activation", 0);
    case Misreading::kNotOdd:
      return put(instruction, "odd_symmetry", 0);
    case Misreading::kPlainRoot:
      return put(instruction, "reciprocal_root", 0);
    default:
      return;
  }
}

}  // namespace

std::span<const MisreadingInfo> misreadings() { return kMisreadings; }

void apply(Misreading misreading, Instruction& instruction) {
  const Opcode opcode = instruction.opcode();
  if (is_tensor_operation(opcode)) apply_to_tensor_operation(misreading, instruction);
  if (misreading == Misreading::kCubicTable && opcode == Opcode::kLoadActivation) {
    for (const Field& field : fields(opcode)) {
      if (field.full_name().ends_with(".c4")) (void)instruction.set_float(field, 0);
    }
  }
  if (misreading == Misreading::kFillsWithZeros && opcode >= Opcode::kMeshSouth && opcode <= Opcode::kMeshEast) {
    put(instruction, "fill_value", 0);
  }
  if (misreading == Misreading::kNearestOnly && opcode == Opcode::kResample) {
    for (const char* name : {"x.nearest", "y.nearest", "select"}) put(instruction, name, 1);
  }
}

Result<std::vector<std::uint8_t>> apply(Misreading misreading, std::span<const std::uint8_t> bytes) {
  REEF_ASSIGN_OR_RETURN(Program program, decode(bytes));
  for (Instruction& instruction : program) apply(misreading, instruction);
  return encode(program);
}

}  // namespace reef::isa
