// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/window.h"

#include <algorithm>

namespace reef::import {
namespace {

constexpr std::int64_t kLargest = 1 << 20;  // of any number of a window; products stay far below 2^63

Result<Dims> per_axis(const NodeContext& ctx, std::string_view name, std::size_t count, std::int64_t fallback,
                      std::int64_t least) {
  Dims values = ctx.ints_attribute(name);
  if (values.empty()) values.assign(count, fallback);
  REEF_REQUIRE(values.size() == count, "attribute {} has {} numbers; {} are needed", name, values.size(), count);
  for (const std::int64_t value : values) {
    REEF_REQUIRE(value >= least && value <= kLargest, "attribute {} has the value {}", name, value);
  }
  return values;
}

void pad_same(WindowAxis& axis, bool is_lower) {
  axis.output = (axis.input + axis.stride - 1) / axis.stride;
  const std::int64_t total = std::max<std::int64_t>(0, (axis.output - 1) * axis.stride + axis.reach() - axis.input);
  axis.before = is_lower ? (total + 1) / 2 : total / 2;
  axis.after = total - axis.before;
}

Status set_output(WindowAxis& axis, bool is_ceil) {
  const std::int64_t room = axis.input + axis.before + axis.after - axis.reach();
  // With ceil_mode a window may reach beyond the padded input, so even one that is larger than all of it has a result.
  const bool reaches_beyond = is_ceil && -room < axis.stride;
  REEF_REQUIRE(room >= 0 || reaches_beyond, "a window of {} elements is larger than the padded input of {}",
               axis.reach(), axis.input + axis.before + axis.after);
  axis.output = (is_ceil ? room + axis.stride - 1 : room) / axis.stride + 1;
  // A window must start inside of the input or the padding before it.
  if (is_ceil && (axis.output - 1) * axis.stride >= axis.input + axis.before) --axis.output;
  return ok_status();
}

}  // namespace

Result<Window> read_window(const NodeContext& ctx, const Dims& input, const Dims& kernel) {
  const std::size_t count = kernel.size();
  REEF_REQUIRE(input.size() == count, "the input has {} spatial axes, but the window {}", input.size(), count);
  REEF_ASSIGN_OR_RETURN(const Dims strides, per_axis(ctx, "strides", count, 1, 1));
  REEF_ASSIGN_OR_RETURN(const Dims dilations, per_axis(ctx, "dilations", count, 1, 1));
  REEF_ASSIGN_OR_RETURN(const Dims pads, per_axis(ctx, "pads", 2 * count, 0, 0));
  const std::string mode = ctx.string_attribute("auto_pad", "NOTSET");
  REEF_REQUIRE(mode == "NOTSET" || mode == "VALID" || mode == "SAME_UPPER" || mode == "SAME_LOWER" || mode.empty(),
               "attribute auto_pad is '{}'", mode);
  const bool is_ceil = ctx.int_attribute("ceil_mode", 0) != 0;
  Window window(count);
  for (std::size_t i = 0; i < count; ++i) {
    WindowAxis& axis = window[i];
    REEF_REQUIRE(kernel[i] >= 1 && kernel[i] <= kLargest, "the window has the size {}", kernel[i]);
    REEF_REQUIRE(input[i] >= 1 && input[i] <= (1 << 30), "the input has the size {}", input[i]);
    axis.input = input[i];
    axis.kernel = kernel[i];
    axis.stride = strides[i];
    axis.dilation = dilations[i];
    if (mode.starts_with("SAME")) {
      pad_same(axis, mode == "SAME_LOWER");
      continue;
    }
    if (mode != "VALID") {
      axis.before = pads[i];
      axis.after = pads[i + count];
    }
    REEF_RETURN_IF_ERROR(set_output(axis, is_ceil));
  }
  std::int64_t outputs = 1;
  for (const WindowAxis& axis : window) {
    REEF_REQUIRE(axis.output <= kLargest && (outputs *= axis.output) <= (1 << 28), "the result has too many elements");
  }
  return window;
}

std::string_view tflite_padding(const Window& window) {
  bool is_valid = true, is_same = true;
  for (const WindowAxis& axis : window) {
    is_valid = is_valid && axis.before == 0 && axis.touched_after() <= 0;
    const std::int64_t output = (axis.input + axis.stride - 1) / axis.stride;
    const std::int64_t total = std::max<std::int64_t>(0, (output - 1) * axis.stride + axis.reach() - axis.input);
    is_same = is_same && axis.output == output && axis.before == total / 2;
  }
  return is_valid ? "VALID" : is_same ? "SAME" : "";
}

Id padded(GraphBuilder& b, Id x, const Window& window, double value) {
  Dims before = {0}, after = {0};
  for (const WindowAxis& axis : window) {
    before.push_back(axis.before);
    after.push_back(std::max<std::int64_t>(0, axis.touched_after()));
  }
  before.push_back(0);
  after.push_back(0);
  return pad_constant(b, x, before, after, value);
}

}  // namespace reef::import
