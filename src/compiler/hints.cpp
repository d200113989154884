// SPDX-License-Identifier: Apache-2.0
#include "compiler/hints.h"

#include <fmt/format.h>

#include "chip/links.h"
#include "evaluate/task.h"

namespace reef::compiler {
namespace {

// Fewer operators than this are not worth a flag; nor is less of the time.
constexpr std::int32_t kWorthMentioning = 8;
constexpr double kClearlyFaster = 0.95;

// One part and several, both predicted for a link.
std::string hint_for(const Plan& plan, const PlanOptions& options, const chip::LinkProfile& link,
                     const std::string& flags) {
  partition::CostOptions costs = options.costs;
  costs.link = &link;
  const partition::CostModel model(*plan.model, costs);
  partition::PartitionOptions how = options.partition;
  how.explain = false;
  const auto one = partition::partition(*plan.model, plan.assessment, model, how);
  how.several_parts = true;
  const auto several = partition::partition(*plan.model, plan.assessment, model, how);
  if (!one.ok() || !several.ok()) return "";
  if (several->chip_op_count() < plan.partition.chip_op_count() + kWorthMentioning) return "";
  if (several->predicted_us > kClearlyFaster * one->predicted_us) return "";
  return fmt::format("with {} {} of {} operators run on the Edge TPU: {:.2f} ms instead of {:.2f} over {} (estimated)",
                     flags, several->chip_op_count(), plan.partition.ops.size(), several->predicted_us / 1000,
                     one->predicted_us / 1000, link.meaning);
}

}  // namespace

std::string several_parts_hint(const Plan& plan, const PlanOptions& options) {
  const bool asks = options.partition.several_parts || !options.partition.intermediate_tensors.empty();
  if (asks || plan.partition.parts.empty()) return "";
  const chip::LinkProfile& here = options.costs.link != nullptr ? *options.costs.link : chip::link_profiles().front();
  std::string hint = hint_for(plan, options, here, "-a");
  const chip::LinkProfile* slow_host = chip::find_link("usb3-rpi4");
  if (!hint.empty() || slow_host == nullptr || slow_host == &here) return hint;
  return hint_for(plan, options, *slow_host, fmt::format("-a --link {}", slow_host->name));
}

std::string preprocess_hint(const ir::Model& model) {
  constexpr std::int32_t kImagenetClasses = 1000;
  const evaluate::Task task = evaluate::task_of(model);
  if (task.family == "yolo") return " --preprocess yolo";
  const ir::Subgraph& graph = model.subgraphs[0];
  if (task.kind != evaluate::TaskKind::kClassifier || evaluate::input_picture(model).width == 0) return "";
  const ir::Shape& classes = graph.tensors[at(graph.outputs[0])].shape;
  return classes.last() == kImagenetClasses ? " --preprocess imagenet" : "";
}

}  // namespace reef::compiler
