// SPDX-License-Identifier: Apache-2.0
// MIRROR_PAD: continues a tensor beyond its edges by its mirror image. REFLECT does not repeat the element at the edge,
// SYMMETRIC does. No more can be added on a side than the mirror shows. (Old releases of TFLite do not check that;
// behind the last element they repeat the first one once the mirror is used up, before the first they read anything.)
#include <algorithm>
#include <cstring>

#include "ops/movement.h"
#include "ops/op_def.h"
#include "ops/pad_family.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kMirrorPadAttributes[] = {{"mode", "REFLECT or SYMMETRIC"}};

// One dimension: where each output index is taken from.
struct Mirror {
  std::int64_t size = 0;
  std::int64_t before = 0;
  std::int64_t edge = 0;  // 1 if the element at the edge is not repeated

  std::int64_t source(std::int64_t i) const {
    if (i < before) return before + edge - 1 - i;
    const std::int64_t inside = i - before;
    return inside < size ? inside : 2 * size - 1 - edge - inside;
  }
};

Status mirror_pad_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_value(1));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> paddings, paddings_of(ctx, 1, /*small_too=*/false));
  REEF_ASSIGN_OR_RETURN(Shape shape, padded_shape(ctx.input(0).shape, paddings));
  return give_shape(ctx, std::move(shape));
}

Status mirror_pad_run(RunContext& ctx, std::int64_t edge) {
  const Tensor& input = ctx.input(0);
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> paddings, paddings_of(ctx, 1, /*small_too=*/false));
  REEF_ASSIGN_OR_RETURN(const Shape shape, padded_shape(input.shape, paddings));
  REEF_RETURN_IF_ERROR(require_output_shape(ctx.output(0), shape));
  REEF_ASSIGN_OR_RETURN(std::int64_t run_bytes, element_bytes(input, "input"));
  if (shape.elements() == 0) return ok_status();
  // Inner dimensions without padding are copied in one run.
  int padded = shape.rank();
  while (padded > 1 && shape[padded - 1] == input.shape[padded - 1]) run_bytes *= shape[--padded];
  std::vector<Mirror> mirrors;
  for (int d = 0; d < padded; ++d) {
    const auto at = static_cast<std::size_t>(2 * d);
    const std::int64_t size = input.shape[d], before = paddings[at], behind = paddings[at + 1];
    REEF_REQUIRE(std::max(before, behind) <= std::max<std::int64_t>(size - edge, 0),
                 "padding of {} and {} is too much for dimension {} of {}", before, behind, d, input.shape.to_string());
    mirrors.push_back({size, before, edge});
  }
  const Mirror inner = mirrors.back();
  const std::int64_t row_runs = shape[padded - 1];
  const std::int64_t grain = std::max<std::int64_t>(1, 65536 / (row_runs * run_bytes));
  ctx.parallel_for(shape.product(0, padded - 1), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      std::int64_t rest = row, offset = 0, stride = inner.size * run_bytes;
      for (int d = padded - 1; d-- > 0;) {
        const Mirror& outer = mirrors[reef::at(d)];
        offset += outer.source(rest % shape[d]) * stride;
        rest /= shape[d];
        stride *= outer.size;
      }
      std::byte* to = ctx.output(0).data + row * row_runs * run_bytes;
      for (std::int64_t i = 0; i < row_runs; ++i, to += run_bytes) {
        std::memcpy(to, input.data + offset + inner.source(i) * run_bytes, static_cast<std::size_t>(run_bytes));
      }
    }
  });
  return ok_status();
}

Result<Kernel> mirror_pad_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  const std::string_view mode = ctx.attributes().get_enum("mode", "REFLECT");
  REEF_REQUIRE(mode == "REFLECT" || mode == "SYMMETRIC", "mode {} is not known", mode);
  const std::int64_t edge = mode == "REFLECT" ? 1 : 0;
  return Kernel([edge](RunContext& run_ctx) { return mirror_pad_run(run_ctx, edge); });
}

}  // namespace

constinit const OpDef mirror_pad_op =
    define({.name = name_of(Op::MIRROR_PAD),
            .summary = "Continues a tensor by its mirror image.",
            .inputs = {2, 2},
            .attributes = kMirrorPadAttributes,
            .types = kWholeByteTypes,
            .form = Form::kMove,
            .traits = trait_set({Trait::kScalesByChannel}),
            .infer = mirror_pad_infer,
            .prepare = mirror_pad_prepare,
            .chip = {.instead = "Use PAD, or padding SAME of the convolution behind it.", .rewrite = "mirror-pad"}});

}  // namespace reef::ops
