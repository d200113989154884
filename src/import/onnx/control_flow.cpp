// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan where their course is known: branches are chosen, loops unrolled. An If whose condition is computed
// while the model runs becomes both branches and a choice between their results.
#include <algorithm>

#include "import/onnx/converter.h"

namespace reef::import {
namespace {

constexpr std::int64_t kMostIterations = 10'000;

}  // namespace

Status convert_if(NodeContext& ctx, GraphBuilder& b) {
  const onnx::Graph* yes = ctx.graph_attribute("then_branch");
  const onnx::Graph* no = ctx.graph_attribute("else_branch");
  REEF_REQUIRE(yes != nullptr && no != nullptr, "a branch is missing");
  const auto condition = b.int_values(ctx.in(0));
  REEF_RETURN_IF_ERROR(b.status());
  if (condition) {
    REEF_REQUIRE(condition->size() == 1, "the condition has {} elements", condition->size());
    REEF_ASSIGN_OR_RETURN(std::vector<Value> values, ctx.run_graph((*condition)[0] != 0 ? *yes : *no, {}));
    for (std::size_t i = 0; i < values.size(); ++i) ctx.out(static_cast<int>(i), values[i]);
    return ok_status();
  }
  REEF_ASSIGN_OR_RETURN(const std::vector<Value> first, ctx.run_graph(*yes, {}));
  REEF_ASSIGN_OR_RETURN(const std::vector<Value> second, ctx.run_graph(*no, {}));
  for (std::size_t i = 0; i < first.size() && i < second.size(); ++i) {
    const Id x = first[i].id, y = second[i].id;
    if (x < 0 || y < 0 || !b.is_shape_known(x) || !b.is_shape_known(y) || !(b.shape(x) == b.shape(y)) ||
        b.type(x) != b.type(y)) {
      return unsupported("its condition is computed and its branches give results of different shapes or types");
    }
    const Id choice = reshape(b, ctx.in(0), {});
    const Id chosen = select(b, choice, widened(b, x), widened(b, y));
    ctx.out(static_cast<int>(i), {cast(b, chosen, b.type(x)), first[i].type, {}});
  }
  return ok_status();
}

namespace {

// Results of all iterations joined along a new first axis.
Result<Value> stacked(GraphBuilder& b, const std::vector<Value>& rows) {
  for (const Value& row : rows) {
    if (row.id < 0 || !b.is_shape_known(row.id) || !(b.shape(row.id) == b.shape(rows[0].id))) {
      return unsupported("a result that is gathered over iterations changes its shape");
    }
  }
  std::vector<Id> parts;
  for (const Value& row : rows) parts.push_back(row.id);
  Value value = rows[0];
  Dims dims = dims_of(b.shape(rows[0].id));
  dims.insert(dims.begin(), 1);
  value.id = parts.size() == 1 ? reshape(b, parts[0], dims) : stack(b, parts, 0);
  return value;
}

}  // namespace

// Body: (iteration, condition, carried...) -> (condition, carried..., gathered...).
Status convert_loop(NodeContext& ctx, GraphBuilder& b) {
  const onnx::Graph* body = ctx.graph_attribute("body");
  REEF_REQUIRE(body != nullptr && ctx.input_count() >= 2, "its body or its inputs are missing");
  std::int64_t trips = -1;
  if (ctx.has(0)) {
    REEF_ASSIGN_OR_RETURN(const Dims given, ctx.ints(0));
    REEF_REQUIRE(given.size() == 1, "the trip count has {} elements", given.size());
    trips = std::max<std::int64_t>(0, given[0]);
  }
  bool goes_on = true;
  if (ctx.has(1)) {
    REEF_ASSIGN_OR_RETURN(const Dims given, ctx.ints(1));
    REEF_REQUIRE(given.size() == 1, "the condition has {} elements", given.size());
    goes_on = given[0] != 0;
  }
  const auto carried_count = static_cast<std::size_t>(ctx.input_count() - 2);
  REEF_REQUIRE(body->outputs.size() >= carried_count + 1, "its body gives {} results; it carries {}",
               body->outputs.size(), carried_count);
  std::vector<Value> carried;
  for (int i = 2; i < ctx.input_count(); ++i) carried.push_back(ctx.value(i));
  std::vector<std::vector<Value>> gathered(body->outputs.size() - carried_count - 1);
  for (std::int64_t i = 0; goes_on && (trips < 0 || i < trips); ++i) {
    if (i >= kMostIterations) return unsupported("it runs for more than {} iterations", kMostIterations);
    std::vector<Value> inputs = {{b.ints(Dims{i}, {}, ir::DataType::kInt64), onnx::ElementType::kInt64, {}},
                                 {b.scalar(ir::DataType::kBool, 1), onnx::ElementType::kBool, {}}};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    REEF_ASSIGN_OR_RETURN(std::vector<Value> outputs, ctx.run_graph(*body, inputs));
    const auto condition = b.int_values(outputs[0].id);
    REEF_RETURN_IF_ERROR(b.status());
    if (!condition || condition->size() != 1) {
      return unsupported(
          "whether it goes on is computed from the model's inputs; export it with a fixed number of iterations");
    }
    goes_on = (*condition)[0] != 0;
    carried.assign(outputs.begin() + 1, outputs.begin() + 1 + static_cast<std::ptrdiff_t>(carried_count));
    for (std::size_t k = 0; k < gathered.size(); ++k) gathered[k].push_back(outputs[1 + carried_count + k]);
  }
  int next = 0;
  for (const Value& value : carried) ctx.out(next++, value);
  for (const std::vector<Value>& rows : gathered) {
    if (rows.empty() && ctx.wants(next)) return unsupported("it runs for no iteration, so a result has no shape");
    if (!rows.empty()) {
      REEF_ASSIGN_OR_RETURN(const Value all, stacked(b, rows));
      ctx.out(next, all);
    }
    ++next;
  }
  return ok_status();
}

namespace {

// One slice of `x` along an axis, without that axis.
Id slice_at(GraphBuilder& b, Id x, int axis, std::int64_t index) {
  Dims dims = dims_of(b.shape(x));
  dims.erase(dims.begin() + axis);
  return reshape(b, slice_axis(b, x, axis, index, 1), dims);
}

struct ScanPlan {
  std::size_t scanned = 0, states = 0;
  Dims axes, reversed, output_axes, output_reversed;
};

Result<ScanPlan> read_scan(NodeContext& ctx, const onnx::Graph& body) {
  ScanPlan plan;
  const std::int64_t count = ctx.int_attribute("num_scan_inputs", 0);
  REEF_REQUIRE(count >= 1 && count <= ctx.input_count(), "attribute num_scan_inputs is {}", count);
  plan.scanned = static_cast<std::size_t>(count);
  plan.states = static_cast<std::size_t>(ctx.input_count()) - plan.scanned;
  REEF_REQUIRE(body.outputs.size() >= plan.states, "its body gives {} results for {} states", body.outputs.size(),
               plan.states);
  const auto list = [&](std::string_view name, std::size_t size, Dims& target) -> Status {
    target = ctx.ints_attribute(name);
    target.resize(size, 0);
    return ok_status();
  };
  REEF_RETURN_IF_ERROR(list("scan_input_axes", plan.scanned, plan.axes));
  REEF_RETURN_IF_ERROR(list("scan_input_directions", plan.scanned, plan.reversed));
  REEF_RETURN_IF_ERROR(list("scan_output_axes", body.outputs.size() - plan.states, plan.output_axes));
  REEF_RETURN_IF_ERROR(list("scan_output_directions", body.outputs.size() - plan.states, plan.output_reversed));
  return plan;
}

// Moves the first axis to `axis`.
Id moved(GraphBuilder& b, Id x, int axis) {
  std::vector<int> order;
  for (int i = 1; i < b.rank(x); ++i) order.push_back(i);
  order.insert(order.begin() + axis, 0);
  return transpose(b, x, order);
}

// Runs the body over all steps: `values` are states, then what is scanned along plan.axes. Results: states, then per
// gathered result all steps along a new first axis.
Result<std::vector<Value>> scan_all(NodeContext& ctx, const onnx::Graph& body, const ScanPlan& plan,
                                    const std::vector<Value>& values) {
  GraphBuilder& b = ctx.b;
  std::vector<Value> states(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(plan.states));
  std::vector<int> axes;
  std::int64_t steps = -1;
  for (std::size_t i = 0; i < plan.scanned; ++i) {
    const Id x = values[plan.states + i].id;
    REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(plan.axes[i], b.rank(x)));
    axes.push_back(axis);
    REEF_REQUIRE(steps < 0 || steps == b.dim(x, axis), "scanned inputs have different lengths");
    steps = b.dim(x, axis);
  }
  if (steps < 1 || steps > kMostIterations) return unsupported("{} iterations cannot be unrolled", steps);
  std::vector<std::vector<Value>> gathered(body.outputs.size() - plan.states);
  for (std::int64_t t = 0; t < steps; ++t) {
    std::vector<Value> inputs = states;
    for (std::size_t i = 0; i < plan.scanned; ++i) {
      Value value = values[plan.states + i];
      value.id = slice_at(b, value.id, axes[i], plan.reversed[i] != 0 ? steps - 1 - t : t);
      inputs.push_back(value);
    }
    REEF_ASSIGN_OR_RETURN(const std::vector<Value> outputs, ctx.run_graph(body, inputs));
    states.assign(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(plan.states));
    for (std::size_t k = 0; k < gathered.size(); ++k) gathered[k].push_back(outputs[plan.states + k]);
  }
  std::vector<Value> results = states;
  for (std::size_t k = 0; k < gathered.size(); ++k) {
    if (plan.output_reversed[k] != 0) std::reverse(gathered[k].begin(), gathered[k].end());
    REEF_ASSIGN_OR_RETURN(Value all, stacked(b, gathered[k]));
    results.push_back(std::move(all));
  }
  return results;
}

// Before opset 9: the first input gives lengths, all others have a batch axis in front, then that of steps.
Status convert_batched_scan(NodeContext& ctx, const onnx::Graph& body) {
  GraphBuilder& b = ctx.b;
  if (ctx.has(0)) return unsupported("sequence_lens of opset 8 is not converted; export with opset 9 or newer");
  const std::int64_t scanned = ctx.int_attribute("num_scan_inputs", 0), all = ctx.input_count() - 1;
  REEF_REQUIRE(scanned >= 1 && scanned <= all, "attribute num_scan_inputs is {}", scanned);
  ScanPlan plan;
  plan.scanned = static_cast<std::size_t>(scanned);
  plan.states = static_cast<std::size_t>(all - scanned);
  REEF_REQUIRE(body.outputs.size() >= plan.states, "its body gives {} results for {} states", body.outputs.size(),
               plan.states);
  plan.axes.resize(plan.scanned, 0);
  plan.reversed = ctx.ints_attribute("directions");
  plan.reversed.resize(plan.scanned, 0);
  plan.output_reversed.resize(body.outputs.size() - plan.states, 0);
  std::int64_t batch = -1;
  for (int i = 1; i <= all; ++i) {
    REEF_REQUIRE(ctx.in(i) != kAbsent && b.is_shape_known(ctx.in(i)) && b.rank(ctx.in(i)) >= 1,
                 "input {} is left out or has no batch", i);
    REEF_REQUIRE(batch < 0 || batch == b.dim(ctx.in(i), 0), "inputs have different batches");
    batch = b.dim(ctx.in(i), 0);
  }
  if (batch < 1 || batch > kMostIterations) return unsupported("a batch of {} cannot be unrolled", batch);
  std::vector<std::vector<Value>> results(body.outputs.size());
  for (std::int64_t at = 0; at < batch; ++at) {
    std::vector<Value> values;
    for (int i = 1; i <= all; ++i) {
      values.push_back(ctx.value(i));
      values.back().id = slice_at(b, ctx.in(i), 0, at);
    }
    REEF_ASSIGN_OR_RETURN(const std::vector<Value> of_one, scan_all(ctx, body, plan, values));
    for (std::size_t k = 0; k < of_one.size(); ++k) results[k].push_back(of_one[k]);
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    REEF_ASSIGN_OR_RETURN(const Value value, stacked(b, results[k]));
    ctx.out(static_cast<int>(k), value);
  }
  return ok_status();
}

}  // namespace

// Body: (states..., slices...) -> (states..., gathered...).
Status convert_scan(NodeContext& ctx, GraphBuilder& b) {
  const onnx::Graph* body = ctx.graph_attribute("body");
  REEF_REQUIRE(body != nullptr, "its body is missing");
  if (ctx.opset() < 9) return convert_batched_scan(ctx, *body);
  REEF_RETURN_IF_ERROR(ctx.require_inputs(ctx.input_count()));
  REEF_ASSIGN_OR_RETURN(const ScanPlan plan, read_scan(ctx, *body));
  std::vector<Value> values;
  for (int i = 0; i < ctx.input_count(); ++i) values.push_back(ctx.value(i));
  REEF_ASSIGN_OR_RETURN(std::vector<Value> results, scan_all(ctx, *body, plan, values));
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (k >= plan.states) {
      REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(plan.output_axes[k - plan.states], b.rank(results[k].id)));
      if (axis != 0) results[k].id = moved(b, results[k].id, axis);
    }
    ctx.out(static_cast<int>(k), results[k]);
  }
  return ok_status();
}

}  // namespace reef::import
