// SPDX-License-Identifier: Apache-2.0
// Averages of windows that exporters write as gathered pixels become pools.
//
// PyTorch's newer exporter has no operator for adaptive pooling, nor for resizing by areas. It gathers the pixels of
// every window by a table of indices, fills short windows up with zeros, adds, and divides:
//
//   before: y = MEAN(TRANSPOSE(GATHER_ND(x, table)))     or     MUL(ADD(ADD(SPLIT(SELECT(mask, 0, ...)))), 1 / count)
//   after:  y = AVERAGE_POOL_2D(x)                       or     CONCATENATION(pools of SLICEs of x), rows then columns
//
// What the operators compute is not taken from their forms, of which there are many. They are linear, so pictures whose
// pixels hold their own places say which windows they would average if that is what they do, and a picture of random
// numbers says whether they do. Not exact: sums are added up in another order.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <set>

#include "graph/layout.h"
#include "ir/excerpt.h"
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::size_t kMostOps = 400;           // from the gathered pixels to the averages
constexpr std::int32_t kMostPooledRows = 1024;  // and columns: their squares must be told apart in float32
constexpr float kTolerance = 1e-4f;

// Rows or columns [begin, begin + size) of the picture, whose average is one of the result.
struct Window {
  std::int32_t begin = 0, size = 0;
};

struct Pooling {
  std::vector<Window> rows, columns;
};

// The operators from a gather to the tensor in which all that it gives has come together again.
struct Cone {
  std::vector<ir::Operator> ops;
  TensorId result = kNone;
};

bool is_linear(const Graph& graph, OpId id, const std::set<TensorId>& inside) {
  const std::string& type = graph.type(id);
  const ir::Operator& op = graph.op(id);
  const auto is_inside = [&](std::size_t i) { return i < op.inputs.size() && inside.contains(op.inputs[i]); };
  const auto is_zero = [&](std::size_t i) { return graph.uniform(op.inputs[i]) == 0.0f; };
  if (type == Op::RESHAPE || type == Op::TRANSPOSE || type == Op::MEAN || type == Op::SUM) return is_inside(0);
  if (type == Op::SPLIT) return is_inside(1);
  if (type == Op::ADD)
    return is_inside(0) && is_inside(1) && op.attributes.get_enum("fused_activation_function") == "NONE";
  if (type == Op::SELECT_V2) {
    return graph.is_constant(op.inputs[0]) && (is_inside(1) ? is_zero(2) : is_inside(2) && is_zero(1));
  }
  if (type == Op::MUL || type == Op::DIV) return is_inside(0) && graph.is_constant(op.inputs[1]);
  return false;
}

std::optional<Cone> cone_of(const Graph& graph, OpId gather) {
  Cone cone;
  std::set<TensorId> inside = {graph.op(gather).outputs[0]}, open = inside;
  std::set<OpId> taken = {gather};
  cone.ops.push_back(graph.op(gather));
  for (bool grows = true; grows && cone.ops.size() < kMostOps;) {
    grows = false;
    for (const TensorId tensor : std::set<TensorId>(open)) {
      if (graph.is_graph_output(tensor)) continue;
      for (const OpId user : graph.consumers(tensor)) {
        if (taken.contains(user) || !graph.is_sound(user) || !is_linear(graph, user, inside)) continue;
        taken.insert(user);
        cone.ops.push_back(graph.op(user));
        for (const TensorId made : graph.op(user).outputs) inside.insert(made), open.insert(made);
        grows = true;
      }
      const std::vector<OpId> users = graph.consumers(tensor);
      const auto is_taken = [&](OpId user) { return taken.contains(user); };
      if (!users.empty() && std::all_of(users.begin(), users.end(), is_taken)) open.erase(tensor);
    }
    // The first place where everything has come together and is as large as pictures are.
    if (open.size() == 1 && cone.ops.size() > 1 && graph.shape(*open.begin()).rank() == 4) {
      cone.result = *open.begin();
      const ir::Operator& last = graph.op(graph.producer(cone.result));
      if (last.type == Op::MEAN || last.type == Op::MUL || last.type == Op::DIV) return cone;
    }
  }
  return std::nullopt;
}

std::optional<std::vector<float>> run(const Graph& graph, const Cone& cone, TensorId x,
                                      const std::vector<float>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  const TensorId outputs[] = {cone.result}, given[] = {x};
  const std::vector<std::uint8_t> inputs[] = {std::move(bytes)};
  const auto results = graph.evaluate()(ir::excerpt(graph.model(), cone.ops, outputs, graph.subgraph(), given), inputs);
  if (!results.ok() || results->size() != 1) return std::nullopt;
  std::vector<float> result((*results)[0].bytes.size() / sizeof(float));
  std::memcpy(result.data(), (*results)[0].bytes.data(), result.size() * sizeof(float));
  return result;
}

// The result's first channel for a picture whose pixels say where they are.
std::optional<std::vector<float>> averages_of(const Graph& graph, const Cone& cone, TensorId x,
                                              const std::function<float(std::int32_t, std::int32_t)>& value) {
  const ir::Shape& from = graph.shape(x);
  std::vector<float> picture;
  for (std::int32_t row = 0; row < from[0]; ++row) {
    for (std::int32_t column = 0; column < from[1]; ++column) {
      picture.insert(picture.end(), static_cast<std::size_t>(from[3]), value(row, column));
    }
  }
  return run(graph, cone, x, picture);
}

// Of consecutive numbers, from their mean and the mean of their squares.
std::optional<Window> window_of(double mean, double mean_of_squares, std::int32_t length) {
  const double size = std::round(std::sqrt(std::max(12 * (mean_of_squares - mean * mean) + 1, 1.0)));
  const double begin = std::round(mean - (size - 1) / 2);
  if (!(begin >= 0 && size >= 1 && begin + size <= length)) return std::nullopt;
  return Window{static_cast<std::int32_t>(begin), static_cast<std::int32_t>(size)};
}

// If these are averages of rectangles, then of these.
std::optional<Pooling> pooling_of(const Graph& graph, const Cone& cone, TensorId x) {
  const ir::Shape &from = graph.shape(x), &to = graph.shape(cone.result);
  const auto f = [](std::int32_t n) { return static_cast<float>(n); };
  const auto y = averages_of(graph, cone, x, [&](auto row, auto) { return f(row); });
  const auto yy = averages_of(graph, cone, x, [&](auto row, auto) { return f(row) * f(row); });
  const auto z = averages_of(graph, cone, x, [&](auto, auto column) { return f(column); });
  const auto zz = averages_of(graph, cone, x, [&](auto, auto column) { return f(column) * f(column); });
  if (!y || !yy || !z || !zz || static_cast<std::int64_t>(y->size()) != to.elements()) return std::nullopt;
  Pooling pooling;
  for (std::int32_t i = 0; i < to[2]; ++i) {
    const auto place = static_cast<std::size_t>(i) * static_cast<std::size_t>(to[3]);
    const auto rows = window_of((*y)[place], (*yy)[place], from[0]);
    if (!rows) return std::nullopt;
    pooling.rows.push_back(*rows);
  }
  for (std::int32_t j = 0; j < to[3]; ++j) {
    const auto place = static_cast<std::size_t>(j);
    const auto columns = window_of((*z)[place], (*zz)[place], from[1]);
    if (!columns) return std::nullopt;
    pooling.columns.push_back(*columns);
  }
  return pooling;
}

// Whether the operators average these windows, in every channel.
bool holds(const Graph& graph, const Cone& cone, TensorId x, const Pooling& pooling) {
  const ir::Shape& from = graph.shape(x);
  const std::int64_t channels = from[3];
  std::vector<float> picture(static_cast<std::size_t>(from.elements()));
  std::uint32_t state = 1;
  for (float& v : picture) {
    state = state * 1664525u + 1013904223u;  // any numbers will do
    v = static_cast<float>(state >> 8) / 8388608.0f - 1;
  }
  const auto result = run(graph, cone, x, picture);
  if (!result) return false;
  std::size_t at = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    for (const Window& rows : pooling.rows) {
      for (const Window& columns : pooling.columns) {
        double sum = 0;
        for (std::int64_t y = rows.begin; y < rows.begin + rows.size; ++y) {
          for (std::int64_t z = columns.begin; z < columns.begin + columns.size; ++z) {
            sum += picture[reef::at((y * from[1] + z) * channels + c)];
          }
        }
        if (std::abs((*result)[at++] - sum / (rows.size * columns.size)) > kTolerance) return false;
      }
    }
  }
  return true;
}

// The step between windows that are all of one size, begin at 0 and end where a pool without padding would; 0: they
// are not.
std::int32_t stride_of(const std::vector<Window>& windows, std::int32_t length) {
  const std::int32_t stride = windows.size() > 1 ? windows[1].begin : windows[0].size;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    if (windows[i].size != windows[0].size || windows[i].begin != static_cast<std::int32_t>(i) * stride) return 0;
  }
  if (stride < 1 || (length - windows[0].size) / stride + 1 != static_cast<std::int32_t>(windows.size())) return 0;
  return stride;
}

class Writer {
 public:
  Writer(Graph& graph, OpId near) : graph_(graph), near_(near) {}

  TensorId pool(TensorId x, std::int32_t height, std::int32_t width, std::int32_t stride_h, std::int32_t stride_w) {
    const ir::Shape from = graph_.shape(x);
    const TensorId y =
        graph_.add_like(x, {1, (from[1] - height) / stride_h + 1, (from[2] - width) / stride_w + 1, from[3]});
    ir::Attributes attributes = activation_attributes("NONE");
    attributes.set("padding", ir::EnumName{"VALID"});
    attributes.set("filter_height", std::int64_t{height});
    attributes.set("filter_width", std::int64_t{width});
    attributes.set("stride_h", std::int64_t{stride_h});
    attributes.set("stride_w", std::int64_t{stride_w});
    graph_.add_op(near_, Op::AVERAGE_POOL_2D, "Pool2DOptions", std::move(attributes), {x}, {y});
    return y;
  }

  // Each window of an axis by itself, joined.
  TensorId pools(TensorId x, const std::vector<Window>& windows, int axis) {
    std::vector<TensorId> parts;
    for (const Window& window : windows) {
      ir::Shape shape = graph_.shape(x);
      std::vector<std::int64_t> begins(4, 0);
      begins[at(axis)] = window.begin;
      shape[axis] = window.size;
      const TensorId part = graph_.add_like(x, shape);
      graph_.add_op(near_, Op::SLICE, "SliceOptions", {}, slice_operands(graph_, x, begins, shape), {part});
      parts.push_back(axis == 1 ? pool(part, window.size, 1, 1, 1) : pool(part, 1, window.size, 1, 1));
    }
    ir::Shape shape = graph_.shape(x);
    shape[axis] = static_cast<std::int32_t>(windows.size());
    const TensorId y = graph_.add_like(x, shape);
    ir::Attributes attributes = activation_attributes("NONE");
    attributes.set("axis", std::int64_t{axis});
    graph_.add_op(near_, Op::CONCATENATION, "ConcatenationOptions", std::move(attributes), std::move(parts), {y});
    return y;
  }

 private:
  Graph& graph_;
  OpId near_;
};

bool adaptive_pools_at(Graph& graph, OpId id) {
  if (!graph.is(id, Op::GATHER_ND) || !graph.is_sound(id) || !graph.evaluate()) return false;
  const TensorId x = graph.op(id).inputs[0], table = graph.op(id).inputs[1];
  const ir::Shape from = graph.shape(x);
  // [rows, columns, 1, channels], from which whole pixels are taken.
  if (from.rank() != 4 || from[2] != 1 || from[0] > kMostPooledRows || from[1] > kMostPooledRows ||
      !is_float(graph, x) || !graph.is_constant(table))
    return false;
  if (graph.shape(table).last() != 2) return false;
  const auto cone = cone_of(graph, id);
  if (!cone) return false;
  const ir::Shape to = graph.shape(cone->result);
  if (to[0] != 1 || to[1] != from[3]) return false;
  const auto pooling = pooling_of(graph, *cone, x);
  if (!pooling || !holds(graph, *cone, x, *pooling)) return false;
  Writer write(graph, id);
  TensorId y = graph.reshape(id, x, {1, from[0], from[1], from[3]});
  const std::int32_t stride_h = stride_of(pooling->rows, from[0]), stride_w = stride_of(pooling->columns, from[1]);
  if (stride_h > 0 && stride_w > 0) {
    y = write.pool(y, pooling->rows[0].size, pooling->columns[0].size, stride_h, stride_w);
  } else {
    y = write.pools(write.pools(y, pooling->rows, 1), pooling->columns, 2);
  }
  return graph.replace(cone->result, graph.convert(id, y, {0, 3, 1, 2})) != kNone;
}

}  // namespace

constinit const Pass adaptive_pools_float_pass = {
    .name = "adaptive-pools",
    .summary =
        "Averages of windows that PyTorch's newer exporter writes as gathered pixels (adaptive pooling, resizing by "
        "areas) become AVERAGE_POOL_2D, or pools of slices where the windows differ.",
    .safety = Safety::kRounding,
    .at = adaptive_pools_at};

}  // namespace reef::passes
