// SPDX-License-Identifier: Apache-2.0
// PAD: input 1 is a [rank, 2] table of how many zeros to put before and behind each dimension. In quantized tensors a
// zero is the output's zero point. TFLite lets PAD carry a value as PADV2 does.
#include <fmt/format.h>

#include "ops/chip_rules.h"
#include "ops/movement.h"
#include "ops/op_def.h"
#include "ops/pad_family.h"

namespace reef::ops {

namespace {

std::string pads_channels(const OpContext& ctx) {
  const auto paddings = chip::constant_integers(ctx, 1);
  if (!paddings || paddings->size() < 2) return "";
  const std::int64_t before = (*paddings)[paddings->size() - 2], after = paddings->back();
  if (before == 0 && after == 0) return "";
  return fmt::format("the innermost dimension of input {} is padded by {} and {}", chip::shape_text(ctx.input(0).shape),
                     before, after);
}

constexpr ChipRule kPadChipRules[] = {
    chip::kNoPaddingOfBatch,
    {
        .id = "pad-channels",
        .says = "Only height and width are padded.",
        .suggestion = "Compile for runtime 12 or later, or join the channels with constant zeros (CONCATENATION).",
        .broken = pads_channels,
        .evidence = "Table 1 says so up to runtime 12.",
        .runtimes = kUpTo11,
    },
};

}  // namespace

constinit const OpDef pad_op =
    define({.name = name_of(Op::PAD),
            .summary = "Surrounds a tensor with zeros.",
            .inputs = {2, 3},
            .types = kWholeByteTypes,
            .form = Form::kMove,
            .traits = trait_set({Trait::kScalesByChannel}),
            .infer = infer_pad,
            .prepare = prepare_pad,
            .chip = {.first_runtime = 10, .rules = kPadChipRules, .parameters = input_set({1})}});

}  // namespace reef::ops
