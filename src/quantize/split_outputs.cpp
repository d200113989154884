// SPDX-License-Identifier: Apache-2.0
#include "quantize/split_outputs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "ir/compact.h"
#include "ir/describe.h"
#include "ir/verify.h"
#include "quantize/calibrate.h"
#include "quantize/graph_constants.h"
#include "quantize/output_parts.h"

namespace reef::quantize {
namespace {

constexpr double kEnoughSteps = 64;          // that each part has in a group of parts that stay together
constexpr std::int64_t kSamplesToLook = 16;  // orders of magnitude show on a few

struct Extent {
  double min = 0, max = 0;

  // How much of a scale it uses: its width; of a constant its size.
  double width() const { return max > min ? max - min : std::abs(max); }
};

// The width of a range for all of these; it holds zero.
double common_width(const std::vector<Extent>& parts) {
  double min = 0, max = 0;
  for (const Extent& part : parts) {
    min = std::min(min, part.min);
    max = std::max(max, part.max);
  }
  return max - min;
}

// Steps that the part with the fewest has at a common scale of `levels` numbers. Parts that are always 0 need none.
double fewest_steps(const std::vector<Extent>& parts, double levels) {
  const double common = common_width(parts);
  double fewest = levels;
  for (const Extent& part : parts) {
    if (part.width() > 0 && common > 0) fewest = std::min(fewest, part.width() / common * levels);
  }
  return fewest;
}

// An output, the best way to take it apart, and how wide its parts are.
struct Joint {
  std::size_t output = 0;
  Partition partition;
  std::vector<Extent> extents;
  double steps = 0;  // of its narrowest part, at one scale
};

// The model with the parts of all joints as further outputs, which tell their ranges.
Result<std::vector<Joint>> measured_joints(const ir::Model& model, const data::SampleSource* source,
                                           const QuantizeOptions& options) {
  std::vector<Joint> candidates;
  std::vector<std::vector<std::int32_t>> parts;
  ir::Model looking = model;
  for (std::size_t o = 0; o < model.subgraphs[0].outputs.size(); ++o) {
    const std::int32_t t = model.subgraphs[0].outputs[o];
    for (const Partition& partition : partitions_of(model, t)) {
      candidates.push_back({o, partition, {}, 0});
      parts.push_back(add_parts(looking, model, t, partition, fmt::format("looked_at_{}", parts.size())));
      for (const std::int32_t part : parts.back()) {
        std::vector<std::int32_t>& outputs = looking.subgraphs[0].outputs;
        if (std::find(outputs.begin(), outputs.end(), part) == outputs.end()) outputs.push_back(part);
      }
    }
  }
  if (candidates.empty() || source == nullptr || source->size() == 0) return std::vector<Joint>{};
  REEF_RETURN_IF_ERROR(ir::verify(looking).in("the model with its outputs taken apart (a defect in Reef)"));
  std::int64_t all = source->size();
  if (options.max_samples > 0) all = std::min(all, options.max_samples);
  const std::int64_t count = std::min(all, kSamplesToLook);
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < count; ++i) samples.push_back(i * all / count);
  REEF_ASSIGN_OR_RETURN(const Calibration seen, calibrate(std::make_shared<const ir::Model>(std::move(looking)),
                                                          *source, samples, RunOptions{options.threads, {}}));
  const double levels = options.mode == Mode::kInt16x8 ? 65535 : 255;
  std::vector<Joint> best;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Joint& joint = candidates[i];
    for (const std::int32_t part : parts[i]) {
      const TensorStatistics& statistics = seen.tensors[at(part)];
      joint.extents.push_back(statistics.seen() ? Extent{statistics.min, statistics.max} : Extent{});
    }
    joint.steps = fewest_steps(joint.extents, levels);
    // Of two ways the one that sets ranges apart more.
    if (!best.empty() && best.back().output == joint.output) {
      if (joint.steps < best.back().steps) best.back() = std::move(joint);
    } else {
      best.push_back(std::move(joint));
    }
  }
  return best;
}

// Numbers of parts that stay together, in their order: neighbours that have enough steps at one scale.
std::vector<std::vector<std::size_t>> groups_of(const Joint& joint, bool each_alone, double levels) {
  std::vector<std::vector<std::size_t>> groups;
  std::vector<Extent> together;
  for (std::size_t i = 0; i < joint.extents.size(); ++i) {
    together.push_back(joint.extents[i]);
    if (groups.empty() || each_alone || fewest_steps(together, levels) < kEnoughSteps) {
      groups.emplace_back();
      together = {joint.extents[i]};
    }
    groups.back().push_back(i);
  }
  return groups;
}

void split_in_signatures(ir::Model& model, std::int32_t output, const std::vector<std::int32_t>& parts) {
  for (ir::Signature& signature : model.signatures) {
    if (signature.subgraph != 0) continue;
    std::vector<ir::SignatureTensor> entries;
    for (const ir::SignatureTensor& entry : signature.outputs) {
      if (entry.tensor != output) {
        entries.push_back(entry);
        continue;
      }
      for (std::size_t i = 0; i < parts.size(); ++i) {
        entries.push_back({fmt::format("{}_{}", entry.name, i), parts[i]});
      }
    }
    signature.outputs = std::move(entries);
  }
}

std::string ranges_text(const Joint& joint) {
  std::string text;
  for (const Extent& part : joint.extents) {
    text += fmt::format("{}{:.3g} to {:.3g}", text.empty() ? "" : ", ", part.min, part.max);
  }
  return text;
}

// Replaces output `t` by groups of its parts; gives them.
std::vector<std::int32_t> split(ir::Model& model, const ir::Model& source, std::int32_t t, const Joint& joint,
                                const std::vector<std::vector<std::size_t>>& groups) {
  const std::string name = model.subgraphs[0].tensors[at(t)].name;
  const std::size_t tensors_before = model.subgraphs[0].tensors.size();
  const std::vector<std::int32_t> parts = add_parts(model, source, t, joint.partition, name);
  std::vector<std::int32_t> result;
  for (const std::vector<std::size_t>& group : groups) {
    std::vector<std::int32_t> members;
    for (const std::size_t i : group) members.push_back(parts[i]);
    const std::string joined = fmt::format("{}_{}", name, result.size());
    if (members.size() > 1) {
      result.push_back(add_joint(model, members, joint.partition.axis, joined));
      continue;
    }
    // A tensor of the float model keeps its name, by which layers are compared.
    const auto part = static_cast<std::size_t>(members[0]);
    if (part >= tensors_before) model.subgraphs[0].tensors[part].name = joined;
    result.push_back(members[0]);
  }
  split_in_signatures(model, t, result);
  return result;
}

OutputPart whole_output(const ir::Model& model, std::size_t output) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Tensor& tensor = graph.tensors[at(graph.outputs[output])];
  return {tensor.name, output, tensor.shape, 0, 0, tensor.shape.rank() > 0 ? tensor.shape[0] : 1};
}

void add_parts_left_joined(const ir::Model& model, std::size_t output, const Joint& joint,
                           std::vector<OutputPart>& parts) {
  const OutputPart whole = whole_output(model, output);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < joint.partition.sizes.size(); ++i) {
    OutputPart part = whole;
    part.name = fmt::format("{}, part {} of {}", whole.name, i + 1, joint.partition.sizes.size());
    part.axis = joint.partition.axis;
    part.begin = begin;
    part.size = joint.partition.sizes[i];
    begin += part.size;
    parts.push_back(std::move(part));
  }
}

}  // namespace

Result<SplitResult> split_outputs(const ir::Model& model, const data::SampleSource* source,
                                  const QuantizeOptions& options) {
  SplitResult result;
  result.model = model;
  REEF_ASSIGN_OR_RETURN(const std::vector<Joint> joints, measured_joints(model, source, options));
  const double levels = options.mode == Mode::kInt16x8 ? 65535 : 255;
  std::vector<std::int32_t> outputs;
  std::vector<std::optional<Joint>> left_joined;  // per output of the result
  for (std::size_t o = 0; o < model.subgraphs[0].outputs.size(); ++o) {
    const std::int32_t t = model.subgraphs[0].outputs[o];
    const auto joint = std::find_if(joints.begin(), joints.end(), [&](const Joint& j) { return j.output == o; });
    const std::string name = ir::describe_name(model.subgraphs[0].tensors[at(t)].name);
    const bool is_mixed = joint != joints.end() && joint->steps < kFewestSteps;
    const auto groups = joint == joints.end() ? std::vector<std::vector<std::size_t>>{}
                                              : groups_of(*joint, options.split_outputs == Choice::kOn, levels);
    const bool wants_split =
        options.split_outputs == Choice::kOn || (is_mixed && options.split_outputs != Choice::kOff);
    if (wants_split && groups.size() > 1) {
      const std::vector<std::int32_t> parts = split(result.model, model, t, *joint, groups);
      result.given.push_back({outputs.size(), parts.size(), joint->partition.axis});
      outputs.insert(outputs.end(), parts.begin(), parts.end());
      left_joined.resize(outputs.size());
      result.notes.push_back(
          fmt::format("output '{}' joins parts that range from {}: it is given out as {} outputs, each with its own "
                      "scale, in the order in which it had them along axis {}; --join-outputs keeps it whole",
                      name, ranges_text(*joint), parts.size(), joint->partition.axis));
      continue;
    }
    result.given.push_back({outputs.size(), 1, 0});
    outputs.push_back(t);
    left_joined.push_back(is_mixed ? std::optional(*joint) : std::nullopt);
    if (!is_mixed) continue;
    result.warnings.push_back(
        fmt::format("output '{}' joins parts that range from {} at one scale: the narrowest gets {:.2g} of {:g} steps. "
                    "Without --join-outputs each part has its own scale",
                    name, ranges_text(*joint), joint->steps, levels));
  }
  result.model.subgraphs[0].outputs = outputs;
  if (!result.notes.empty()) {
    drop_unread(result.model);
    ir::drop_unused_tensors(result.model, 0);
    ir::drop_unused_buffers(result.model);
    REEF_RETURN_IF_ERROR(ir::verify(result.model).in("the model with its outputs split (a defect in Reef)"));
  }
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (left_joined[o]) {
      add_parts_left_joined(result.model, o, *left_joined[o], result.parts);
    } else {
      result.parts.push_back(whole_output(result.model, o));
    }
  }
  return result;
}

}  // namespace reef::quantize
