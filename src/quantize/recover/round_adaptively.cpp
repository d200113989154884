// SPDX-License-Identifier: Apache-2.0
// Adaptive rounding: each weight goes up or down so that a layer's outputs, not its weights, are closest.
//
// With H the second moments of a layer's inputs (sum of x x^T over patches of the calibration samples), the square
// error of an output channel is e^T H e, e being the rounding errors of its weights. Starting from the nearest
// integers, weights are moved by one step, the one that lowers the error most, until none does (coordinate descent, a
// channel at a time). Layers with very long dot products are left alone: H would not fit. Whether all of it helps is
// measured.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/thread_pool.h"
#include "ir/op.h"
#include "quantize/graph_constants.h"
#include "quantize/recover/techniques.h"
#include "quantize/session.h"
#include "quantize/weights.h"

namespace reef::quantize {
namespace {

constexpr std::size_t kLongestDotProduct = 1536;
constexpr std::size_t kPatchesPerSample = 24;
constexpr std::size_t kMomentSamples = 64;  // calibration samples that are looked at
constexpr double kDamping = 0.01;           // of the mean of H's diagonal, added to it: weights nobody excites stay put

struct Layer {
  std::size_t op = 0;
  std::size_t length = 0, outputs = 0;  // of the dot product; output channels
  std::vector<double> moments;          // [length][length]
  std::vector<float> patch;
};

bool is_candidate(const ir::Model& model, const State& state, std::size_t number) {
  const Decision& decision = state.plan.decisions[number];
  const ir::Operator& op = model.subgraphs[0].operators[number];
  return decision.treatment == Treatment::kInteger && (op.type == Op::CONV_2D || op.type == Op::FULLY_CONNECTED);
}

// Input values under one output place of a convolution; zero where the window leaves the image.
void take_patch(const ir::Operator& op, const ir::Shape& input, const ir::Shape& weights, const ir::Shape& output,
                std::span<const float> values, std::size_t place, std::vector<float>& patch) {
  std::fill(patch.begin(), patch.end(), 0.0f);
  const auto axis = [&](std::int64_t in, std::int64_t window, std::int64_t out, std::int64_t stride,
                        std::int64_t dilation) {
    const std::int64_t reach = (window - 1) * dilation + 1;
    const bool same = op.attributes.get_enum("padding") == "SAME";
    return same ? std::max<std::int64_t>((out - 1) * stride + reach - in, 0) / 2 : 0;
  };
  const std::int64_t sh = op.attributes.get_int("stride_h", 1), sw = op.attributes.get_int("stride_w", 1);
  const std::int64_t dh = op.attributes.get_int("dilation_h_factor", 1),
                     dw = op.attributes.get_int("dilation_w_factor", 1);
  const std::int64_t channels = input[3], out_w = output[2], out_h = output[1];
  const auto at = static_cast<std::int64_t>(place);
  const std::int64_t x = at % out_w, y = at / out_w % out_h, image = at / out_w / out_h;
  const std::int64_t top = y * sh - axis(input[1], weights[1], out_h, sh, dh);
  const std::int64_t left = x * sw - axis(input[2], weights[2], out_w, sw, dw);
  for (std::int64_t ky = 0; ky < weights[1]; ++ky) {
    for (std::int64_t kx = 0; kx < weights[2]; ++kx) {
      const std::int64_t iy = top + ky * dh, ix = left + kx * dw;
      if (iy < 0 || iy >= input[1] || ix < 0 || ix >= input[2]) continue;
      const float* from = values.data() + ((image * input[1] + iy) * input[2] + ix) * channels;
      std::copy_n(from, channels, patch.begin() + (ky * weights[2] + kx) * channels);
    }
  }
}

void add_moments(Layer& layer) {
  const std::size_t n = layer.length;
  for (std::size_t i = 0; i < n; ++i) {
    const double v = layer.patch[i];
    if (v == 0) continue;
    double* row = layer.moments.data() + i * n;
    for (std::size_t j = 0; j < n; ++j) row[j] += v * layer.patch[j];
  }
}

void observe(Layer& layer, const ir::Operator& op, const ops::Tensor& input, const ir::Shape& weights,
             const ir::Shape& output) {
  const std::span<const float> values = input.values<float>();
  const bool is_convolution = op.type == Op::CONV_2D;
  const std::size_t places =
      is_convolution ? static_cast<std::size_t>(output.product(0, 3)) : values.size() / layer.length;
  const std::size_t step = std::max<std::size_t>(places / kPatchesPerSample, 1) | 1;
  for (std::size_t place = 0; place < places; place += step) {
    if (is_convolution) {
      take_patch(op, input.shape, weights, output, values, place, layer.patch);
    } else {
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(place * layer.length), layer.length,
                  layer.patch.begin());
    }
    add_moments(layer);
  }
}

Status round_layer(Session& session, State& state, std::size_t number) {
  const ir::Model& model = *state.model;
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Operator& op = graph.operators[number];
  const ir::Tensor& weights = graph.tensors[reef::at(op.inputs[1])];
  const ir::Shape output = graph.tensors[reef::at(op.outputs[0])].shape;
  Layer layer;
  layer.op = number;
  layer.outputs = static_cast<std::size_t>(weights.shape[0]);
  layer.length = static_cast<std::size_t>(weights.shape.product(1, weights.shape.rank()));
  if (layer.length > kLongestDotProduct) return ok_status();
  if (op.type == Op::CONV_2D && weights.shape.last() != graph.tensors[reef::at(op.inputs[0])].shape.last()) {
    return ok_status();  // grouped
  }
  layer.moments.assign(layer.length * layer.length, 0);
  layer.patch.resize(layer.length);
  SampleHooks hooks;  // one thread: sums in one order
  hooks.observer = [&](int) -> std::function<Status(const cpu::OpRun&)> {
    return [&](const cpu::OpRun& run) {
      if (run.subgraph == 0 && run.op_index == static_cast<std::int32_t>(number)) {
        observe(layer, op, *run.inputs[0], weights.shape, output);
      }
      return ok_status();
    };
  };
  hooks.use = [](std::int64_t, int, const cpu::Interpreter&) { return ok_status(); };
  const auto& all = session.calibration_samples();
  const std::vector<std::int64_t> samples(
      all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kMomentSamples)));
  REEF_RETURN_IF_ERROR(
      run_samples(state.model, session.source(), samples, RunOptions{1, {}, session.options().budget}, hooks));

  const std::vector<float> values = float_values(model, weights);
  WeightRequest request;
  request.layout = channel_layout(weights.shape, is_per_channel(op, session.options()) ? 0 : -1);
  request.clip = state.plan.clip_weights;
  const std::vector<float> scales = weight_scales(values, request);
  std::vector<std::int8_t> q = round_weights(values, request.layout, scales);
  ThreadPool pool(session.options().threads);
  pool.parallel_for(static_cast<std::int64_t>(layer.outputs), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      const std::size_t at = static_cast<std::size_t>(c) * layer.length;
      round_for_outputs(layer.moments, std::span(values).subspan(at, layer.length),
                        scales[scales.size() == 1 ? 0 : static_cast<std::size_t>(c)],
                        std::span(q).subspan(at, layer.length));
    }
  });
  state.plan.rounded_weights[static_cast<std::int32_t>(number)] = std::move(q);
  return ok_status();
}

}  // namespace

void round_for_outputs(std::span<const double> moments, std::span<const float> weights, double scale,
                       std::span<std::int8_t> q) {
  const std::size_t n = weights.size();
  std::vector<double> error(n), gradient(n, 0);
  double diagonal = 0;
  for (std::size_t i = 0; i < n; ++i) diagonal += moments[i * n + i];
  const double damping = kDamping * diagonal / static_cast<double>(n) + 1e-30;
  for (std::size_t i = 0; i < n; ++i) error[i] = q[i] * scale - weights[i];
  for (std::size_t i = 0; i < n; ++i) {
    if (error[i] == 0) continue;
    const double* row = moments.data() + i * n;
    for (std::size_t j = 0; j < n; ++j) gradient[j] += row[j] * error[i];
    gradient[i] += damping * error[i];
  }
  for (std::size_t moves = 0; moves < 2 * n; ++moves) {
    double best = 0;
    std::size_t where = n;
    int direction = 0;
    for (std::size_t i = 0; i < n; ++i) {
      // Towards the other neighbour of the true value only: adaptive rounding rounds, it does not retrain.
      const int step = error[i] > 0 ? -1 : 1;
      if (std::abs(error[i] + step * scale) >= scale || q[i] + step > 127 || q[i] + step < -127) continue;
      const double change = 2 * step * scale * gradient[i] + scale * scale * (moments[i * n + i] + damping);
      if (change < best) best = change, where = i, direction = step;
    }
    if (where == n) return;
    q[where] = static_cast<std::int8_t>(q[where] + direction);
    error[where] += direction * scale;
    const double* row = moments.data() + where * n;
    for (std::size_t j = 0; j < n; ++j) gradient[j] += row[j] * direction * scale;
    gradient[where] += damping * direction * scale;
  }
}

Status round_adaptively(Session& session) {
  State state = session.best();
  const std::size_t count = state.model->subgraphs[0].operators.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_candidate(*state.model, state, i)) continue;
    REEF_RETURN_IF_ERROR(round_layer(session, state, i));
    if (session.options().progress) {
      session.options().progress("adaptive rounding", static_cast<std::int64_t>(i + 1),
                                 static_cast<std::int64_t>(count));
    }
  }
  if (state.plan.rounded_weights.empty()) return ok_status();
  return session.consider(std::move(state),
                          fmt::format("adaptive rounding of {} layers", state.plan.rounded_weights.size()));
}

}  // namespace reef::quantize
