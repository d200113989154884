// SPDX-License-Identifier: Apache-2.0
// STRIDED_SLICE: NumPy's x[begin:end:stride, ...] with its special cases as bit masks over the entries of begin.
//
// The entries are first spread over the dimensions: an entry in ellipsis_mask stands for as many whole dimensions as
// are needed, one in new_axis_mask inserts a dimension of size 1, and dimensions that no entry is left for are taken
// whole. Then each dimension has a start, a count and a stride. As in TFLite, an ellipsis takes at least one dimension
// even if the other entries need them all, which leaves entries at the end unused.
//
// Refused though TFLite lets them pass, because there the result is what happened to be in memory: an index out of
// range or a negative stride under shrink_axis_mask, sizes beyond the end under `offset`, and `offset` together with
// an ellipsis or a new axis.
#include <fmt/format.h>
#include <algorithm>
#include <limits>

#include "ops/chip_rules.h"
#include "ops/movement.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kStridedSliceAttributes[] = {
    {"begin_mask", "entries whose begin is ignored: from the first element"},
    {"end_mask", "entries whose end is ignored: to the last element"},
    {"ellipsis_mask", "entry that stands for as many whole dimensions as needed"},
    {"new_axis_mask", "entries that insert a dimension of size 1"},
    {"shrink_axis_mask", "entries that pick one index and drop the dimension"},
    {"offset", "end counts from begin"}};
constexpr int kMaxEntries = 31;  // masks are 32-bit

struct Entries {
  std::vector<std::int64_t> begin, end, stride;
  std::uint32_t begin_mask = 0, end_mask = 0, ellipsis_mask = 0, new_axis_mask = 0, shrink_axis_mask = 0;
  bool offset = false;

  int count() const { return static_cast<int>(begin.size()); }
};

bool strided_slice_has(std::uint32_t mask, int entry) { return (mask >> entry & 1u) != 0; }

Result<Entries> read_entries(const OpContext& ctx) {
  Entries entries;
  std::vector<std::int64_t>* const lists[] = {&entries.begin, &entries.end, &entries.stride};
  constexpr std::string_view kRoles[] = {"begin", "end", "strides"};
  for (int i = 0; i < 3; ++i) {
    REEF_RETURN_IF_ERROR(require_type(ctx.input(i + 1), kRoles[i], {DataType::kInt32}));
    REEF_RETURN_IF_ERROR(require_rank(ctx.input(i + 1), kRoles[i], 1, 1));
    REEF_ASSIGN_OR_RETURN(*lists[i], integers(ctx.input(i + 1), kRoles[i]));
  }
  const int count = entries.count();
  REEF_REQUIRE(entries.end.size() == entries.begin.size() && entries.stride.size() == entries.begin.size(),
               "begin has {} entries, end {} and strides {}; they must have the same number", count, entries.end.size(),
               entries.stride.size());
  REEF_REQUIRE(count <= kMaxEntries, "begin has {} entries; at most {} are possible", count, kMaxEntries);
  // Bits beyond the entries mean nothing.
  const auto mask = [&](std::string_view name) {
    return static_cast<std::uint32_t>(ctx.attributes().get_int(name)) & ((1u << count) - 1);
  };
  entries.begin_mask = mask("begin_mask");
  entries.end_mask = mask("end_mask");
  entries.ellipsis_mask = mask("ellipsis_mask");
  entries.new_axis_mask = mask("new_axis_mask") & ~entries.ellipsis_mask;
  entries.shrink_axis_mask = mask("shrink_axis_mask");
  entries.offset = ctx.attributes().get_bool("offset");
  REEF_REQUIRE((entries.ellipsis_mask & (entries.ellipsis_mask - 1)) == 0, "ellipsis_mask names more than one entry");
  REEF_REQUIRE(!entries.offset || (entries.ellipsis_mask | entries.new_axis_mask) == 0,
               "offset cannot be combined with ellipsis_mask or new_axis_mask");
  return entries;
}

// The elements that are taken along one input dimension.
struct AxisSlice {
  std::int64_t start = 0;
  std::int64_t count = 0;
  std::int64_t stride = 1;
};

// Rounds up; stride is not 0.
std::int64_t steps(std::int64_t distance, std::int64_t stride) {
  if (distance == 0 || (distance < 0) != (stride < 0)) return 0;
  return (std::abs(distance) - 1) / std::abs(stride) + 1;
}

// Entry `e` applied to a dimension of `size`.
Result<AxisSlice> slice_axis(const Entries& entries, int e, std::int64_t size) {
  const auto i = static_cast<std::size_t>(e);
  const std::int64_t stride = entries.stride[i];
  REEF_REQUIRE(stride != 0 && stride != std::numeric_limits<std::int32_t>::min(), "stride {} is {}", e, stride);
  const std::int64_t lowest = stride > 0 ? 0 : -1, highest = stride > 0 ? size : size - 1;
  const auto clamped = [&](std::int64_t at) { return std::clamp(at < 0 ? at + size : at, lowest, highest); };
  std::int64_t start = clamped(entries.begin[i]);
  if (strided_slice_has(entries.begin_mask, e)) start = stride > 0 ? 0 : size - 1;
  if (strided_slice_has(entries.shrink_axis_mask, e)) {
    REEF_REQUIRE(stride > 0, "stride {} is {}; an entry of shrink_axis_mask needs a positive one", e, stride);
    REEF_REQUIRE(start >= 0 && start < size, "begin {} is {}, outside of a dimension of size {}", e, entries.begin[i],
                 size);
    return AxisSlice{start, 1, 1};
  }
  std::int64_t end = clamped(entries.end[i] + (entries.offset ? start : 0));
  if (strided_slice_has(entries.end_mask, e)) end = stride > 0 ? size : -1;
  const std::int64_t count = steps(end - start, stride);
  REEF_REQUIRE(!entries.offset || count == steps(entries.end[i], stride),
               "{} elements from {} on do not exist in a dimension of size {}", entries.end[i], start, size);
  return AxisSlice{start, count, stride};
}

struct Plan {
  Shape output;
  std::vector<AxisSlice> axes;  // one per input dimension
};

Result<Plan> make_plan(const OpContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "input", 0, kMaxMovedRank));
  REEF_ASSIGN_OR_RETURN(const Entries entries, read_entries(ctx));
  int new_axes = 0, ellipsis = kMaxEntries + kMaxMovedRank;
  for (int e = 0; e < entries.count(); ++e) {
    new_axes += strided_slice_has(entries.new_axis_mask, e) ? 1 : 0;
    if (strided_slice_has(entries.ellipsis_mask, e)) ellipsis = e;
  }
  const int dims = input.rank() + new_axes;
  const int ellipsis_end = std::max(ellipsis + 1, std::min(ellipsis + 1 + dims - entries.count(), dims));
  Plan plan;
  for (int d = 0; d < dims; ++d) {
    const bool in_ellipsis = d >= ellipsis && d < ellipsis_end;
    const int e = d < ellipsis_end ? d : d - (ellipsis_end - ellipsis - 1);
    if (!in_ellipsis && e < entries.count() && strided_slice_has(entries.new_axis_mask, e)) {
      plan.output.push_back(1);
      continue;
    }
    const int axis = static_cast<int>(plan.axes.size());
    REEF_REQUIRE(axis < input.rank(), "the entries of begin do not fit input shape {}", input.to_string());
    AxisSlice slice{0, input[axis], 1};
    const bool is_given = !in_ellipsis && e < entries.count();
    if (is_given) {
      REEF_ASSIGN_OR_RETURN(slice, slice_axis(entries, e, input[axis]));
    }
    plan.axes.push_back(slice);
    if (!is_given || !strided_slice_has(entries.shrink_axis_mask, e))
      plan.output.push_back(static_cast<std::int32_t>(slice.count));
  }
  REEF_REQUIRE(static_cast<int>(plan.axes.size()) == input.rank(), "the entries of begin do not fit input shape {}",
               input.to_string());
  return plan;
}

Status strided_slice_infer(InferContext& ctx) {
  for (int i = 1; i < 4; ++i) REEF_RETURN_IF_ERROR(ctx.require_value(i));
  REEF_ASSIGN_OR_RETURN(Plan plan, make_plan(ctx));
  return give_shape(ctx, std::move(plan.output));
}

Result<std::vector<Move>> strided_slice_moves_of(const OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  REEF_ASSIGN_OR_RETURN(const Plan plan, make_plan(ctx));
  REEF_RETURN_IF_ERROR(require_output_shape(ctx.output(0), plan.output));
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(input, "input"));
  if (ctx.output(0).elements() == 0) return std::vector<Move>{};
  const std::vector<std::int64_t> from = dense_strides(input.shape, bytes);
  kernels::StridedCopy moves{.loops = std::vector<kernels::CopyLoop>(plan.axes.size()), .run_bytes = bytes};
  std::int64_t to_stride = bytes;
  for (std::size_t d = plan.axes.size(); d-- > 0;) {
    const AxisSlice& slice = plan.axes[d];
    moves.loops[d] = {slice.count, slice.stride * from[d], to_stride};
    moves.from_offset += slice.start * from[d];
    to_stride *= slice.count;
  }
  return std::vector<Move>{{0, 0, std::move(moves)}};
}

Result<Kernel> strided_slice_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  return movement_kernel(ctx, {1, 2, 3}, strided_slice_moves_of);
}

std::string strides_over(const OpContext& ctx) {
  const auto strides = chip::constant_integers(ctx, 3);
  if (!strides) return "";
  for (std::size_t i = 0; i < strides->size(); ++i) {
    if ((*strides)[i] != 1) return fmt::format("stride {} is {}", i, (*strides)[i]);
  }
  return "";
}

std::string masks_axes(const OpContext& ctx) {
  for (const std::string_view name : {"ellipsis_mask", "new_axis_mask"}) {
    const std::int64_t mask = ctx.attributes().get_int(name);
    if (mask != 0) return fmt::format("{} is {}", name, mask);
  }
  return "";
}

constexpr ChipRule kStridedSliceChipRules[] = {
    {
        .id = "strided-slice-stride",
        .says = "All strides are 1.",
        .suggestion = "Take every second pixel with a MAX_POOL_2D of size 1 and stride 2, or with SPACE_TO_DEPTH.",
        .broken = strides_over,
        .evidence = "Table 1; edgetpu#828 (the Focus layer of YOLO)",
        .rewrite = "strided-slice",
    },
    {
        .id = "strided-slice-mask",
        .says = "ellipsis_mask and new_axis_mask are 0.",
        .suggestion = "Write all dimensions out, and add new ones with RESHAPE.",
        .broken = masks_axes,
        .evidence = "Table 1",
    },
};

}  // namespace

constinit const OpDef strided_slice_op =
    define({.name = name_of(Op::STRIDED_SLICE),
            .summary = "Takes a regular part of a tensor, as NumPy's slices do.",
            .inputs = {4, 4},
            .attributes = kStridedSliceAttributes,
            .types = kWholeByteTypes,
            .form = Form::kMove,
            .traits = trait_set({Trait::kRearranges}),
            .infer = strided_slice_infer,
            .prepare = strided_slice_prepare,
            .chip = {.first_runtime = 10, .rules = kStridedSliceChipRules, .parameters = input_set({1, 2, 3})}});

}  // namespace reef::ops
