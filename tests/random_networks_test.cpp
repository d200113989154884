// SPDX-License-Identifier: Apache-2.0
// Generated networks of every operator that there is code for, with branches and odd sizes, from the model to the
// virtual device: code is generated, sound (src/audit) and, in several orders of execution, bit-exact with the chip
// reference. What fails is made as small as it can be and printed in a line that can be added to kOnceFailed.
//
//   REEF_NETWORKS=1000 reef_tests --gtest_filter='RandomNetworks.*'     more of them; REEF_NETWORKS_FIRST: from a seed
//   on; REEF_NETWORKS_ORDERS=6: each network in that many orders, in turn at -O0, -O1 and -O2 (default: one of each)
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include <gtest/gtest.h>

#include "audit/audit.h"
#include "generated_code.h"
#include "lower/builder.h"
#include "random_network.h"
#include "trials.h"

namespace reef::testing {
namespace {

constexpr int kNetworks = 120, kTransformers = 40;

// Networks that were compiled wrongly once.
constexpr const char* kOnceFailed[] = {
    "int8 1x1x1 zero 0; PAD 0 0 0 0 49 0 0",
};

bool has_code(std::string_view op) {
  return op == kAttentionBlock || op == kNormBlock || lower::find_lowering(std::string(op)) != nullptr;
}

struct Trial {
  bool failed = false;
  bool ran = false;
  std::string message;  // why it failed, or did not run
};

bool rests_on_timing(const darwinn::Package& package) {
  const auto report = audit::audit(package);
  return report.ok() && !report->is_sound() && report->is_sound_as_googles();
}

// Compiles at one level and runs in one order; `seed` decides which.
Trial attempt_one(const RandomNetwork& network, unsigned seed) {
  const auto model = network.build();
  if (!model) return {false, false, "no operator of it makes sense"};
  const auto level = static_cast<tiled::Level>(seed % 3);
  const auto package = compiler::generate_code_with(WholeModel(*model).part(1 + seed), {.level = level});
  if (!package.ok()) {
    const bool refused = package.status().code() == StatusCode::kUnsupported;
    return {!refused, false, package.status().message()};
  }
  // Where Google leaves an order to the speed of units, so do we at its level: any other order than that of these
  // speeds may change results, so only that one is tried.
  const device::Schedule schedule = schedule_of(seed);
  const bool by_timing = level == tiled::Level::kAsGoogle && rests_on_timing(*package);
  const Status runs = runs_as_chip_reference(*model, *package, seed, by_timing ? nullptr : &schedule);
  if (runs.code() == StatusCode::kUnsupported) return {false, false, "no reference: " + runs.message()};
  if (!runs.ok()) return {true, true, runs.message()};
  if (level != tiled::Level::kAsGoogle) {
    const Status sound = passes_audit(*package);
    if (!sound.ok()) return {true, true, sound.message()};
  }
  if (seed % 4 == 1 && level != tiled::Level::kAsGoogle) {
    const Status races = has_no_races(*package);
    if (!races.ok()) return {true, true, races.message()};
  }
  return {false, true, ""};
}

Trial attempt(const RandomNetwork& network, unsigned seed) {
  static const auto orders = static_cast<unsigned>(number_from_environment("REEF_NETWORKS_ORDERS", 1));
  Trial result;
  for (unsigned order = 0; order < orders; ++order) {
    Trial one = attempt_one(network, seed + order);
    if (one.failed || order == 0) result = std::move(one);
    if (result.failed || !result.ran) break;
  }
  return result;
}

// What transformers consist of, beside convolutions.
bool is_of_transformers(std::string_view op) {
  static const std::set<std::string_view> kOps = {
      kAttentionBlock, kNormBlock, "BATCH_MATMUL", "SOFTMAX",   "GELU",  "LOGISTIC",       "ADD",
      "MUL",           "MEAN",     "RESHAPE",      "TRANSPOSE", "SLICE", "FULLY_CONNECTED"};
  return kOps.contains(op);
}

void expect_bit_exact(unsigned count, const std::function<bool(std::string_view)>& is_usable) {
  const auto first = static_cast<unsigned>(number_from_environment("REEF_NETWORKS_FIRST", 0));
  unsigned ran = 0, failed = 0;
  std::map<std::string, int> not_run, ops;
  unsigned seed = first;
  for (; ran < count && seed < first + 2 * count; ++seed) {
    const RandomNetwork network = RandomNetwork::generate(seed, is_usable);
    const Trial trial = attempt(network, seed);
    ran += trial.ran;
    if (!trial.ran && !trial.failed) ++not_run[trial.message.substr(trial.message.starts_with("op ") ? 5 : 0, 100)];
    if (trial.ran) {
      for (const RandomLayer& layer : network.layers) ++ops[layer.op];
    }
    if (!trial.failed) continue;
    const RandomNetwork small =
        network.shrunk([&](const RandomNetwork& candidate) { return attempt(candidate, seed).failed; });
    ADD_FAILURE() << "seed " << seed << ", shrunk to\n    \"" << small.to_string() << "\"\n"
                  << attempt(small, seed).message;
    if (++failed == 5) break;
  }
  std::printf("%u of %u networks ran\n", ran, seed - first);
  for (const auto& [op, times] : ops) std::printf("%5d %s\n", times, op.c_str());
  for (const auto& [reason, times] : not_run) std::printf("%5d not run: %s\n", times, reason.c_str());
  EXPECT_TRUE(failed > 0 || ran == count);
}

TEST(RandomNetworks, CompileAndRunBitExact) {
  expect_bit_exact(static_cast<unsigned>(number_from_environment("REEF_NETWORKS", kNetworks)), has_code);
}

TEST(RandomNetworks, OfTransformersCompileAndRunBitExact) {
  expect_bit_exact(static_cast<unsigned>(number_from_environment("REEF_NETWORKS", kTransformers)), is_of_transformers);
}

TEST(RandomNetworks, OnceFailed) {
  for (const char* text : kOnceFailed) {
    const auto network = RandomNetwork::parse(text);
    ASSERT_TRUE(network.has_value()) << text;
    EXPECT_EQ(network->to_string(), text);
    for (unsigned seed = 0; seed < 4; ++seed) {
      const Trial trial = attempt(*network, seed);
      EXPECT_FALSE(trial.failed) << text << "\n" << trial.message;
      EXPECT_TRUE(trial.ran) << text << "\n" << trial.message;
    }
  }
}

// The shrinking itself: from a network with a certain operator over enough channels, only that is left.
TEST(RandomNetworks, ShrinkingKeepsWhatMatters) {
  const auto fails = [](const RandomNetwork& network) {
    const auto model = network.build();
    if (!model) return false;
    for (const ir::Operator& op : model->subgraphs[0].operators) {
      const auto& input = model->subgraphs[0].tensors[static_cast<std::size_t>(op.inputs[0])];
      if (op.type == "MAX_POOL_2D" && input.shape[3] > 5) return true;
    }
    return false;
  };
  int found = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const RandomNetwork network = RandomNetwork::generate(seed, [](std::string_view) { return true; });
    if (!fails(network)) continue;
    const RandomNetwork small = network.shrunk(fails);
    EXPECT_TRUE(fails(small));
    EXPECT_LE(small.layers.size(), 2u) << small.to_string();
    EXPECT_EQ(RandomNetwork::parse(small.to_string()), small);
    ++found;
  }
  EXPECT_GT(found, 5);
}

}  // namespace
}  // namespace reef::testing
