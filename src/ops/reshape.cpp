// SPDX-License-Identifier: Apache-2.0
// RESHAPE: the same elements in the same order under another shape.
//
// The shape comes from input 1 if that is an int32 vector, else from the attribute. One size may be -1: it becomes
// whatever makes the element counts equal. Old converters wrote the attribute [0] for a scalar, which is honoured; a
// vector that holds a 0 means what it says.
#include <fmt/format.h>

#include "ops/chip_rules.h"
#include "ops/movement.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kReshapeAttributes[] = {
    {"new_shape", "shape of the result when input 1 gives none; one size may be -1"}};

// True if input 1 is there and of a form that TFLite heeds.
bool has_shape_tensor(const OpContext& ctx) {
  return ctx.has_input(1) && ctx.input(1).type == DataType::kInt32 && ctx.input(1).shape.rank() == 1;
}

// The size that -1 stands for: the rest of the elements. Sizes of 0 leave it open, and then the other sizes decide.
std::int64_t open_size(const Shape& input, std::int64_t product_of_others, std::int64_t product_of_nonzero_others) {
  if (input.elements() == 0 && product_of_others != 0) return 0;
  std::int64_t product = 1;
  for (const std::int32_t dim : input) product *= dim == 0 ? 1 : dim;
  return product / product_of_nonzero_others;
}

Result<Shape> new_shape(const OpContext& ctx) {
  std::vector<std::int64_t> dims = ctx.attributes().get_ints("new_shape");
  if (has_shape_tensor(ctx)) {
    REEF_ASSIGN_OR_RETURN(dims, integers(ctx.input(1), "shape"));
  } else if (dims == std::vector<std::int64_t>{0}) {
    dims.clear();
  }
  constexpr std::int64_t kMaxProduct = std::int64_t{1} << 31;  // beyond what any tensor holds
  std::int64_t product = 1, nonzero_product = 1;
  std::size_t open = dims.size();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == -1) {
      REEF_REQUIRE(open == dims.size(), "more than one size of the new shape is -1");
      open = i;
      continue;
    }
    REEF_REQUIRE(dims[i] >= 0, "size {} of the new shape is {}", i, dims[i]);
    REEF_REQUIRE(dims[i] == 0 || nonzero_product <= kMaxProduct / dims[i], "the new shape has too many elements");
    product *= dims[i];
    nonzero_product *= dims[i] == 0 ? 1 : dims[i];
  }
  if (open < dims.size()) dims[open] = open_size(ctx.input(0).shape, product, nonzero_product);
  REEF_ASSIGN_OR_RETURN(Shape shape, shape_from(dims));
  REEF_REQUIRE(shape.elements() == ctx.input(0).elements(), "{} has {} elements and cannot take shape {}",
               ctx.input(0).shape.to_string(), ctx.input(0).elements(), shape.to_string());
  return shape;
}

Status reshape_infer(InferContext& ctx) {
  if (has_shape_tensor(ctx)) REEF_RETURN_IF_ERROR(ctx.require_value(1));
  REEF_ASSIGN_OR_RETURN(Shape shape, new_shape(ctx));
  return give_shape(ctx, std::move(shape));
}

// Most elements of a tensor that must be laid out anew: 1,296,000 map.
constexpr std::int64_t kReshapeMostElementsOnChip = 1 << 21;

// Height and width may be merged or split freely only as long as the channels stay together.
std::string is_large_relayout(const OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const Shape& output = ctx.output(0).shape;
  if (input.shape.rank() == 0 || output.rank() == 0 || input.shape.last() == output.last()) return "";
  if (input.elements() <= kReshapeMostElementsOnChip) return "";
  return fmt::format("input is {}, and output {} has other channels", chip::tensor_text(input),
                     chip::shape_text(output));
}

constexpr ChipRule kReshapeChipRules[] = {{
    .id = "reshape-size",
    .says = "At most 2,097,152 elements, where the innermost dimension changes.",
    .suggestion = "Make the model's outputs of the tensors before it, and reshape on the CPU, where it costs nothing.",
    .broken = is_large_relayout,
    .evidence = "Table 1 says that large tensors may not map, and no number. 1x40x40x810 to 1x14400x90 maps "
                "(edgetpu#560).",
    .rewrite = "yolo-head",
}};

}  // namespace

constinit const OpDef reshape_op =
    define({.name = name_of(Op::RESHAPE),
            .summary = "Gives the same elements another shape.",
            .inputs = {1, 2},
            .attributes = kReshapeAttributes,
            .types = "any type with a fixed element size",
            .same_bytes = true,
            .form = Form::kMove,
            .traits = trait_set({Trait::kRearranges, Trait::kScalesByChannel}),
            .infer = reshape_infer,
            .prepare = prepare_same_bytes,
            .chip = {.first_runtime = 10, .rules = kReshapeChipRules, .parameters = input_set({1})}});

}  // namespace reef::ops
