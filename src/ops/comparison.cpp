// SPDX-License-Identifier: Apache-2.0
#include "ops/comparison.h"

#include <cstring>
#include <string_view>
#include <vector>

#include "numeric/fixed_point.h"

namespace reef::ops {
namespace {

constexpr int kFractionalBits = 8;

// The strings of a tensor, which is stored as: count, count + 1 offsets from the beginning (int32 each), characters.
Result<std::vector<std::string_view>> read_strings(const Tensor& tensor) {
  const auto* bytes = reinterpret_cast<const char*>(tensor.data);
  const auto word = [&](std::size_t i) {
    std::int32_t value;
    std::memcpy(&value, bytes + 4 * i, 4);
    return std::int64_t{value};
  };
  const auto size = static_cast<std::int64_t>(tensor.bytes);
  const std::int64_t count = size < 8 ? 0 : word(0);
  REEF_REQUIRE(count == tensor.elements() && (count == 0 || 4 * (count + 2) <= size),
               "'{}' holds {} strings in {} bytes; its shape {} needs {}", tensor.name, count, size,
               tensor.shape.to_string(), tensor.elements());
  std::vector<std::string_view> strings;
  strings.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t begin = word(static_cast<std::size_t>(i + 1)), end = word(static_cast<std::size_t>(i + 2));
    REEF_REQUIRE(begin >= 0 && begin <= end && end <= size, "string {} of '{}' lies outside of the tensor's data", i,
                 tensor.name);
    strings.emplace_back(bytes + begin, static_cast<std::size_t>(end - begin));
  }
  return strings;
}

}  // namespace

Result<kernels::Rescale> comparison_rescale(const Tensor& tensor, std::string_view role) {
  REEF_ASSIGN_OR_RETURN(const QuantParams q, per_tensor_quantization(tensor, role));
  REEF_REQUIRE(q.scale != 1.0f, "{} ('{}') has scale 1, with which TFLite cannot compare; use another scale or int32",
               role, tensor.name);
  return kernels::Rescale{q.zero_point, kFractionalBits, numeric::make_multiplier(q.scale)};
}

Kernel string_equality_kernel(const OpContext& ctx, bool equal_means) {
  return [plan = binary_plan(ctx), equal_means](RunContext& run) -> Status {
    REEF_ASSIGN_OR_RETURN(const std::vector<std::string_view> a, read_strings(run.input(0)));
    REEF_ASSIGN_OR_RETURN(const std::vector<std::string_view> b, read_strings(run.input(1)));
    bool* out = run.output(0).mutable_values<bool>().data();
    run.parallel_for(plan.elements(), kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
      plan.for_each_row(begin, end, [&](std::int64_t first, const Positions<2>& at, std::int64_t count) {
        apply_row(a.data() + at[0], plan.step(0), b.data() + at[1], plan.step(1), out + first, count,
                  [=](std::string_view x, std::string_view y) { return (x == y) == equal_means; });
      });
    });
    return ok_status();
  };
}

}  // namespace reef::ops
