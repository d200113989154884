// SPDX-License-Identifier: Apache-2.0
// CONCATENATION and PACK: tensors side by side.
//
// Operands that are quantized in another way than the result are brought to its quantization first, each by a copy of
// its own (as the chip does: docs/numerics.md). A constant operand can only be the zero point, which stands for zeros.
//
// Channels side by side: an operand that nothing else reads is written to its place in the result by whatever computes
// it, and needs no copy (as in Google's programs, docs/hardware/google_programs.md#slots-of-a-concatenation).
#include <algorithm>

#include "ir/describe.h"
#include "lower/lowerings.h"
#include "lower/movement.h"

namespace reef::lower {
namespace {

// A constant all of whose elements are its zero point.
Status check_zeros(const Builder& builder, const ir::Tensor& tensor, const Bytes& data) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t zero, chip_zero_point(tensor));
  const std::int32_t shift = tensor.type == ir::DataType::kInt8 ? 128 : 0;
  const auto is_zero = [&](std::uint8_t byte) { return byte == static_cast<std::uint8_t>(zero - shift); };
  (void)builder;
  if (std::all_of(data.span().begin(), data.span().end(), is_zero)) return ok_status();
  return unsupported("'{}' is a constant that is not all zeros; such operands are not generated",
                     ir::describe_name(tensor.name));
}

// Where an operand's elements go: `size` of each run of the result, from `begin` on.
struct Slot {
  std::int32_t operand = ElementSource::kZeroPoint;
  std::int64_t begin = 0, size = 0;  // elements
};

// The result is runs of `run` elements, each made of the slots.
ElementMap side_by_side(std::vector<Slot> slots, std::int64_t run) {
  return [slots = std::move(slots), run](std::int64_t element) {
    const std::int64_t in_run = element % run;
    const auto next = std::upper_bound(slots.begin(), slots.end(), in_run,
                                       [](std::int64_t at, const Slot& slot) { return at < slot.begin; });
    const Slot& slot = *(next - 1);
    const std::int64_t together = slot.begin + slot.size - in_run;
    if (slot.operand < 0) return ElementSource{slot.operand, 0, together};
    return ElementSource{slot.operand, element / run * slot.size + in_run - slot.begin, together};
  };
}

// Operands that are written to their places by what computes them become kInPlace. False: there is nothing else to do.
bool leave_in_place(Builder& builder, const Rearrangement& what, std::vector<Slot>& slots) {
  bool copies = false;
  for (Slot& slot : slots) {
    const bool is_tensor = slot.operand != ElementSource::kZeroPoint;
    const std::int32_t tensor = is_tensor ? what.operands[reef::at(slot.operand)].tensor : tiled::kNowhere;
    if (is_tensor && builder.has_one_reader(tensor) &&
        builder.put_into(tensor, what.output, static_cast<std::int32_t>(slot.begin))) {
      slot.operand = ElementSource::kInPlace;
    } else {
      copies = true;
    }
  }
  return copies;
}

// `outer`: runs of the result.
Status join(Builder& builder, std::int32_t op, std::int64_t outer) {
  const std::int32_t to = builder.op(op).outputs[0];
  REEF_RETURN_IF_ERROR(image_of(builder.source(to)).status());
  Rearrangement what;
  std::vector<Slot> slots;
  std::int64_t run = 0;
  for (std::size_t i = 0; i < builder.op(op).inputs.size(); ++i) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, i));
    const ir::Tensor& source = builder.source(from);
    const std::int64_t elements = source.shape.checked_elements().value_or(0);
    REEF_REQUIRE(elements > 0 && elements % outer == 0, "operand {} is {}", i, source.shape.to_string());
    Slot slot{ElementSource::kZeroPoint, run, elements / outer};
    if (const Bytes& data = ir::constant_data(builder.model(), source); !data.empty()) {
      REEF_RETURN_IF_ERROR(check_zeros(builder, source, data));
    } else {
      REEF_ASSIGN_OR_RETURN(const std::int32_t tensor, quantized_as(builder, op, from, to));
      slot.operand = static_cast<std::int32_t>(what.operands.size());
      what.operands.push_back(Read{tensor});
    }
    run += slot.size;
    slots.push_back(slot);
  }
  REEF_REQUIRE(run * outer == builder.source(to).shape.elements(), "operands do not fill the result, {}",
               builder.source(to).shape.to_string());
  REEF_ASSIGN_OR_RETURN(what.output, builder.new_grid(to));
  builder.set_value(to, {what.output, {}});
  const bool joins_channels = run == builder.tensor(what.output).channels;
  if (joins_channels && !leave_in_place(builder, what, slots)) return ok_status();
  what.source_of = side_by_side(std::move(slots), run);
  add_rearrangement(builder, op, std::move(what));
  return ok_status();
}

Status check_same_but(const Builder& builder, std::int32_t op, int axis) {
  const ir::Shape& shape = builder.source(builder.op(op).outputs[0]).shape;
  for (std::size_t i = 0; i < builder.op(op).inputs.size(); ++i) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, i));
    const ir::Shape& operand = builder.source(from).shape;
    bool fits = operand.rank() == shape.rank();
    for (int d = 0; fits && d < shape.rank(); ++d) fits = d == axis || operand[d] == shape[d];
    REEF_REQUIRE(fits, "operand {} is {}, which is no part of {}", i, operand.to_string(), shape.to_string());
  }
  return ok_status();
}

}  // namespace

Status lower_concatenation(Builder& builder, std::int32_t op) {
  const ir::Shape& shape = builder.source(builder.op(op).outputs[0]).shape;
  const ir::Attributes& a = builder.op(op).attributes;
  if (const auto name = a.get_enum("fused_activation_function", "NONE"); name != "NONE") {
    return unsupported("a fused {} is not generated", name);
  }
  REEF_ASSIGN_OR_RETURN(const int axis, dimension(a.get_int("axis"), shape.rank()));
  REEF_RETURN_IF_ERROR(check_same_but(builder, op, axis));
  return join(builder, op, shape.product(0, axis));
}

Status lower_pack(Builder& builder, std::int32_t op) {
  const ir::Shape& shape = builder.source(builder.op(op).outputs[0]).shape;
  REEF_ASSIGN_OR_RETURN(const int axis, dimension(builder.op(op).attributes.get_int("axis"), shape.rank()));
  ir::Shape expected;
  for (int d = 0; d < shape.rank(); ++d) {
    if (d != axis) expected.push_back(shape[d]);
  }
  for (std::size_t i = 0; i < builder.op(op).inputs.size(); ++i) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, i));
    REEF_REQUIRE(builder.source(from).shape == expected, "operand {} is {}, not {}", i,
                 builder.source(from).shape.to_string(), expected.to_string());
  }
  return join(builder, op, shape.product(0, axis));
}

}  // namespace reef::lower
