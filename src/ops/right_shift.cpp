// SPDX-License-Identifier: Apache-2.0
// RIGHT_SHIFT: elements of the first input shifted right by the second, with broadcasting.
//
// Signed numbers keep their sign. A count below 0 is taken as 0, one beyond the type's width as the width less 1.
#include <algorithm>

#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

template <typename T>
T shift_right(T x, T count) {
  constexpr std::int64_t kMaxCount = 8 * sizeof(T) - 1;
  return static_cast<T>(x >> std::clamp<std::int64_t>(count, 0, kMaxCount));
}

Result<Kernel> right_shift_prepare(PrepareContext& ctx) {
  return prepare_uniform<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t>(
      ctx, []<typename T>(T x, T count) { return shift_right(x, count); });
}

}  // namespace

constinit const OpDef right_shift_op = define({.name = name_of(Op::RIGHT_SHIFT),
                                               .summary = "Shifts elements right, with broadcasting.",
                                               .types = "int8; uint8; int16; uint16; int32; uint32",
                                               .form = Form::kBinary,
                                               .prepare = right_shift_prepare,
                                               .chip = {.instead = "Keep integer logic out of the network."}});

}  // namespace reef::ops
