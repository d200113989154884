// SPDX-License-Identifier: Apache-2.0
#include "ir/describe.h"

#include <fmt/format.h>

#include "base/at.h"
#include "base/printable.h"

namespace reef::ir {

std::string describe_bytes(std::int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const double kib = static_cast<double>(bytes) / 1024;
  if (kib < 1024) return fmt::format("{:.1f} KiB", kib);
  if (kib < 1024 * 1024) return fmt::format("{:.1f} MiB", kib / 1024);
  return fmt::format("{:.2f} GiB", kib / 1024 / 1024);
}

std::string describe_name(std::string_view name) {
  constexpr std::size_t kMaxShown = 60;
  if (name.size() <= kMaxShown) return printable(name);
  const auto continues = [&](std::size_t i) { return (static_cast<unsigned char>(name[i]) & 0xC0) == 0x80; };
  std::size_t end = kMaxShown;
  while (end > kMaxShown - 3 && continues(end)) --end;  // not inside a character
  return printable(name.substr(0, end)) + "...";
}

std::string describe_op(const Subgraph& graph, std::int32_t op) { return describe_op(graph, op, op); }

std::string describe_op(const Subgraph& graph, std::int32_t op, std::int32_t number) {
  const Operator& it = graph.operators[at(op)];
  std::string_view name;
  if (!it.outputs.empty() && it.outputs[0] >= 0) name = graph.tensors[at(it.outputs[0])].name;
  return fmt::format("{} {} '{}'", number < 0 ? "new op" : fmt::format("op {}", number), describe_name(it.type),
                     describe_name(name));
}

std::string describe_quantization(const Quantization& quantization) {
  if (!quantization.is_quantized()) return "";
  if (quantization.is_per_axis()) {
    return fmt::format("{} scales along dimension {}", quantization.scale.size(), quantization.dimension);
  }
  return fmt::format("scale {:.7g}, zero point {}", quantization.scale[0],
                     quantization.zero_point.empty() ? 0 : quantization.zero_point[0]);
}

std::int64_t constant_bytes(const Model& model) {
  std::vector<bool> counted(model.buffers.size(), false);
  std::int64_t total = 0;
  for (const Subgraph& graph : model.subgraphs) {
    for (const Tensor& tensor : graph.tensors) {
      const auto buffer = static_cast<std::size_t>(tensor.buffer);
      if (counted[buffer]) continue;
      counted[buffer] = true;
      total += static_cast<std::int64_t>(model.buffers[buffer].data.size());
    }
  }
  return total;
}

}  // namespace reef::ir
