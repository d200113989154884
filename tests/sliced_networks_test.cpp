// SPDX-License-Identifier: Apache-2.0
// Generated networks of every operator that works row by row, in slices that are drawn by lot, with tensors that the
// host keeps; and networks in less memory than the tiles have. Code is generated, sound and bit-exact with the chip
// reference, and nothing is refused that is not refused without slices.
//
//   REEF_NETWORKS=1000 reef_tests --gtest_filter='SlicedNetworks.*'     more of them; REEF_NETWORKS_FIRST: from a seed
//   on
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "generated_code.h"
#include "lower/builder.h"
#include "lower/row_slices.h"
#include "random_network.h"
#include "schedule/schedule.h"
#include "tiled/text.h"
#include "trials.h"

namespace reef::testing {
namespace {

constexpr int kNetworks = 80;

bool has_code(std::string_view op) { return lower::find_lowering(std::string(op)) != nullptr; }

struct Trial {
  bool failed = false, ran = false, refused = false;
  std::string message;  // why it failed, was refused or did not run
};

tiled::Level level_of(unsigned seed) { return static_cast<tiled::Level>(seed % 3); }

// Runs of operators that can be sliced, cut and left out by lot; some tensors kept by the host. At the highest level,
// most groups keep rows from slice to slice.
compiler::GenerationOptions sliced_by_lot(const WholeModel& whole, unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t end) { return static_cast<std::int32_t>(random() % static_cast<unsigned>(end)); };
  compiler::GenerationOptions options;
  options.slices.emplace();
  const ir::Subgraph& graph = whole.model.subgraphs[0];
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const ir::Tensor& tensor = graph.tensors[t];
    const bool is_image = tensor.shape.rank() == 4 && tensor.shape.is_usable() && tensor.shape[0] == 1;
    const bool can_be = is_image && ir::constant_data(whole.model, tensor).empty() && ir::is_integer_8(tensor.type);
    if (can_be && below(4) == 0) options.hosted.insert(static_cast<std::int32_t>(t));
  }
  const lower::Sliceable sliceable({whole.model, whole.ops, whole.inputs, whole.outputs}, options.hosted);
  const auto ops = static_cast<std::int32_t>(whole.ops.size());
  for (std::int32_t first = 0; first < ops;) {
    std::int32_t end = first;
    while (end < ops && sliceable.is_sliceable(end) && (end == first || below(6) > 0)) ++end;
    lower::SliceGroup group{first, end - 1, 1 + below(5)};
    group.keeps_rows = level_of(seed) == tiled::Level::kFast && group.slices != 3;
    group.joins_late = level_of(seed) == tiled::Level::kFast && group.slices % 2 == 0;
    if (end > first && below(6) > 0 && sliceable.group(group)) options.slices->push_back(group);
    first = std::max(end, first + 1);
  }
  return options;
}

Trial run(const ir::Model& model, const compiler::GenerationOptions& options, unsigned seed) {
  const WholeModel whole(model);
  const auto package = compiler::generate_code_with(whole.part(1 + seed), options);
  if (!package.ok()) {
    const bool refused = package.status().code() == StatusCode::kUnsupported;
    if (!refused) return {true, false, false, package.status().message()};
    compiler::GenerationOptions plain;
    plain.level = options.level;
    const auto unsliced = compiler::generate_code_with(whole.part(1 + seed), plain);
    return {false, false, unsliced.ok(), package.status().message()};
  }
  const device::Schedule schedule = schedule_of(seed);
  const Status runs = runs_as_chip_reference(model, *package, seed, &schedule);
  if (runs.code() == StatusCode::kUnsupported) return {false, false, false, "no reference: " + runs.message()};
  if (!runs.ok()) return {true, true, false, runs.message()};
  if (options.level != tiled::Level::kAsGoogle) {
    const Status sound = passes_audit(*package);
    if (!sound.ok()) return {true, true, false, sound.message()};
  }
  if (seed % 4 == 1 && options.level != tiled::Level::kAsGoogle) {
    const Status races = has_no_races(*package);
    if (!races.ok()) return {true, true, false, races.message()};
  }
  return {false, true, false, ""};
}

Trial attempt_slices(const RandomNetwork& network, unsigned seed) {
  const auto model = network.build();
  if (!model) return {};
  const WholeModel whole(*model);
  compiler::GenerationOptions options = sliced_by_lot(whole, seed);
  if (options.slices->empty() && options.hosted.empty()) return {};
  options.level = level_of(seed);
  return run(*model, options, seed);
}

// In a part of the memory that it takes otherwise.
Trial attempt_little_memory(const RandomNetwork& small, unsigned seed) {
  RandomNetwork network = small;
  network.height += 40;
  network.width += 8;
  const auto model = network.build();
  if (!model) return {};
  compiler::GenerationOptions options;
  options.level = level_of(seed);
  const auto whole = compiler::generate_part_with(WholeModel(*model).part(1), options);
  if (!whole.ok()) return {};
  constexpr std::int64_t kLeast = 6000;  // with buffers of inputs
  options.narrow_bytes = std::max<std::int64_t>(kLeast, whole->program.narrow_bytes * (20 + seed % 70) / 100);
  if (options.narrow_bytes >= whole->program.narrow_bytes) return {};
  return run(*model, options, seed);
}

std::string describe_slices(const RandomNetwork& network, unsigned seed) {
  const auto model = network.build();
  if (!model) return "";
  const compiler::GenerationOptions options = sliced_by_lot(WholeModel(*model), seed);
  std::string text;
  for (const lower::SliceGroup& group : *options.slices) {
    text += fmt::format("operators {} to {} in {} slices; ", group.first, group.last, group.slices);
  }
  text += "kept by the host:";
  for (const std::int32_t tensor : options.hosted) {
    text += fmt::format(" '{}'", model->subgraphs[0].tensors[static_cast<std::size_t>(tensor)].name);
  }
  for (const ir::Operator& op : model->subgraphs[0].operators) {
    text += fmt::format("\n  {}", op.type);
    for (const auto* list : {&op.inputs, &op.outputs}) {
      for (const std::int32_t t : *list) {
        if (t >= 0) text += " " + model->subgraphs[0].tensors[static_cast<std::size_t>(t)].shape.to_string();
      }
      text += " ;";
    }
  }
  if (std::getenv("REEF_DUMP") == nullptr) return text;
  const WholeModel whole(*model);
  lower::LowerOptions how{level_of(seed)};
  how.patches = how.level == tiled::Level::kFast;
  how.groups = *options.slices;
  how.hosted = options.hosted;
  auto program = lower::lower(*model, whole.ops, whole.inputs, whole.outputs, how);
  if (program.ok() && schedule::schedule(*program).ok()) text += "\n" + tiled::to_text(*model, *program);
  return text;
}

void attempt_all(Trial (*attempt)(const RandomNetwork&, unsigned), unsigned least_share) {
  const auto first = static_cast<unsigned>(number_from_environment("REEF_NETWORKS_FIRST", 0));
  const auto count = static_cast<unsigned>(number_from_environment("REEF_NETWORKS", kNetworks));
  unsigned ran = 0, failed = 0, refused = 0;
  std::map<std::string, int> reasons;
  for (unsigned seed = first; seed < first + count; ++seed) {
    const RandomNetwork network = RandomNetwork::generate(seed, has_code);
    const Trial trial = attempt(network, seed);
    ran += trial.ran;
    refused += trial.refused;
    if (trial.refused) ++reasons[fmt::format("{} (seed {})", trial.message.substr(0, 240), seed)];
    if (!trial.failed) continue;
    const RandomNetwork small =
        network.shrunk([&](const RandomNetwork& candidate) { return attempt(candidate, seed).failed; });
    ADD_FAILURE() << "seed " << seed << ", shrunk to\n    \"" << small.to_string() << "\"\n"
                  << attempt(small, seed).message << "\n"
                  << describe_slices(small, seed);
    if (++failed == 5) break;
  }
  std::printf("%u of %u networks ran, %u were refused\n", ran, count, refused);
  for (const auto& [reason, times] : reasons) std::printf("%5d refused: %s\n", times, reason.c_str());
  EXPECT_GE(ran, count * least_share / 100);
}

TEST(SlicedNetworks, RunBitExact) { attempt_all(attempt_slices, 40); }

TEST(SlicedNetworks, LittleMemory) { attempt_all(attempt_little_memory, 10); }

}  // namespace
}  // namespace reef::testing
