// SPDX-License-Identifier: Apache-2.0
// Time of `reef check` without reading the file and printing: plans of networks of 10 to 1,000 operators. Prints
// medians of 11 runs, measured. Part of `make bench`.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "compiler/plan.h"
#include "quantized_model.h"

namespace reef {
namespace {

using testing::QuantizedModel;

// Blocks of convolution, an activation and a sum.
ir::Model network(int ops, const char* activation) {
  QuantizedModel builder;
  std::int32_t x = builder.conv(builder.input({1, 32, 32, 16}), 16, 3);
  for (int made = 1; made + 3 <= ops; made += 3) {
    const std::int32_t y = builder.unary(activation, builder.conv(x, 16, 3));
    x = builder.add(x, y);
  }
  return builder.finish({x});
}

double median_ms(const std::shared_ptr<const ir::Model>& model, const compiler::PlanOptions& options) {
  std::vector<double> times;
  for (int run = 0; run < 11; ++run) {
    const auto start = std::chrono::steady_clock::now();
    const auto plan = compiler::make_plan(model, options);
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    if (!plan.ok()) std::printf("%s\n", plan.status().message().c_str());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void run() {
  std::printf("reef check: milliseconds to judge, rewrite and partition a model (measured, median of 11)\n");
  std::printf("%9s %12s %12s %12s %12s\n", "operators", "all fit", "no rewrites", "HARD_SWISH", "several");
  for (const int ops : {10, 100, 500, 1000}) {
    compiler::PlanOptions plain, several;
    plain.rewrites.none = several.rewrites.none = true;
    several.partition.several_parts = true;
    const auto fits = std::make_shared<const ir::Model>(network(ops, "RELU6"));
    const auto swish = std::make_shared<const ir::Model>(network(ops, "HARD_SWISH"));
    std::printf("%9d %12.2f %12.2f %12.2f %12.2f\n", ops, median_ms(fits, {}), median_ms(swish, plain),
                median_ms(swish, {}), median_ms(swish, several));
  }
}

}  // namespace
}  // namespace reef

int main() { reef::run(); }
