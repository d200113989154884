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

#include "network_trial.h"
#include "random_network.h"
#include "trials.h"

namespace reef::testing {
namespace {

constexpr int kNetworks = 120, kTransformers = 40;

// Networks that were compiled wrongly once.
constexpr const char* kOnceFailed[] = {
    "int8 1x1x1 zero 0; PAD 0 0 0 0 49 0 0",
    // A sum of something computed in patches of pixels, which reach beyond a tile's own, and something that is not.
    "int8 5x33x1 zero 0; CONV_2D 0 0 21 0 0 0 0; ADD 1 0 0 0 0 0 0",
    "int8 17x29x2 zero 0; DEPTHWISE_CONV_2D 0 0 169 0 0 0 0; MAXIMUM 1 1 0 0 0 0 0",
    "uint8 1x2x1 zero 0; CONV_2D 0 0 0 0 1 0 0; REDUCE_MAX 1 1 0 0 0 0 0; SUM 2 0 0 0 0 1 0",
};

Trial attempt(const RandomNetwork& network, unsigned seed) {
  static const auto orders = static_cast<unsigned>(number_from_environment("REEF_NETWORKS_ORDERS", 1));
  Trial result;
  for (unsigned order = 0; order < orders; ++order) {
    Trial one = compile_and_run(network, seed + order);
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

// Every operator of networks, also those that there is no code for.
TEST(RandomNetworks, ComputeAlikeOnEveryTargetOfTheCpu) {
  constexpr int kSeeds = 150;
  const auto first = static_cast<unsigned>(number_from_environment("REEF_NETWORKS_FIRST", 0));
  const auto count = static_cast<unsigned>(number_from_environment("REEF_NETWORKS", kSeeds));
  unsigned ran = 0;
  for (unsigned seed = first; seed < first + count; ++seed) {
    const RandomNetwork network = RandomNetwork::generate(seed, [](std::string_view) { return true; });
    const Trial trial = compute_on_cpu(network, seed);
    ran += trial.ran;
    EXPECT_FALSE(trial.failed) << "seed " << seed << ", \"" << network.to_string() << "\": " << trial.message;
  }
  EXPECT_GT(ran, count / 2) << "networks that plain loops compute";
}

TEST(RandomNetworks, AnyBytesAreANetwork) {
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(network_from_bytes(bytes).layers.size(), std::size_t{kMostFuzzedLayers});
    bytes.push_back(static_cast<std::uint8_t>(37 * i + 11));
  }
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
