// SPDX-License-Identifier: Apache-2.0
#include "compiler/difference.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include <fmt/ranges.h>

#include "execute/device/device.h"
#include "formats/darwinn/parameters/blob_layout.h"
#include "ir/describe.h"
#include "ir/op.h"
#include "runtime/result_origins.h"

namespace reef::compiler {
namespace {

std::string name_of(const ir::Model& model, std::int32_t op) {
  const ir::Operator& it = model.subgraphs[0].operators[at(op)];
  const std::int32_t output = it.outputs.empty() ? -1 : it.outputs[0];
  return fmt::format(
      "op {} {}{}", op, it.type,
      output < 0 ? "" : fmt::format(" '{}'", ir::describe_name(model.subgraphs[0].tensors[at(output)].name)));
}

// Operators whose weights a package must hold as bytes that depend on nothing else.
bool has_weights(const ir::Model& model, std::int32_t op) {
  const ir::Operator& it = model.subgraphs[0].operators[at(op)];
  if (it.type != Op::CONV_2D && it.type != Op::DEPTHWISE_CONV_2D && it.type != Op::FULLY_CONNECTED) return false;
  if (it.inputs.size() < 2 || it.inputs[1] < 0) return false;
  return !ir::constant_data(model, model.subgraphs[0].tensors[at(it.inputs[1])]).empty();
}

struct Weights {
  std::size_t all = 0;
  std::vector<std::int32_t> missing;  // operators whose bytes are nowhere, in no form that is known
  bool are_elsewhere = true;          // the missing ones could be what nothing else explains, in another order
};

using Histogram = std::array<std::int64_t, 256>;  // how often each byte occurs

void count(std::span<const std::uint8_t> bytes, std::uint8_t flip, Histogram& histogram) {
  for (const std::uint8_t byte : bytes) ++histogram[byte ^ flip];
}

// Compilers may store weights in an order that is not known here. Then they are among the bytes that nothing explains:
// each value as often at least. Other weights would not be.
bool may_be_in(const ir::Model& model, const std::vector<std::int32_t>& ops, const Histogram& unexplained) {
  Histogram wanted{};
  for (const std::int32_t op : ops) {
    const std::int32_t index = model.subgraphs[0].operators[at(op)].inputs[1];
    const ir::Tensor& tensor = model.subgraphs[0].tensors[at(index)];
    const std::uint8_t flip = tensor.type == ir::DataType::kInt8 ? 0x80 : 0;  // the chip's codes are unsigned
    count(ir::constant_data(model, tensor).span(), flip, wanted);
  }
  return std::equal(wanted.begin(), wanted.end(), unexplained.begin(), std::less_equal<>());
}

// nullopt: the package's parameters cannot be read.
std::optional<Weights> weights_in(const ir::Model& model, const VerifiedPart& part, const darwinn::Package& package) {
  Weights result;
  Histogram unexplained{};
  std::vector<darwinn::BlobLayout> layouts;
  for (const darwinn::Executable& executable : package.executables) {
    if (executable.parameters.empty()) continue;
    auto layout = darwinn::locate(model, executable.parameters.span());
    if (!layout.ok()) return std::nullopt;
    for (const darwinn::BlobChunk& chunk : layout->chunks) {
      if (chunk.kind != darwinn::ChunkKind::kUnknown) continue;
      count(executable.parameters.span().subspan(chunk.offset, chunk.size), 0, unexplained);
    }
    layouts.push_back(std::move(layout).value());
  }
  for (const std::int32_t op : part.ops) {
    if (!has_weights(model, op)) continue;
    ++result.all;
    const bool is_found = std::any_of(layouts.begin(), layouts.end(), [&](const darwinn::BlobLayout& layout) {
      return std::any_of(layout.chunks.begin(), layout.chunks.end(), [&](const darwinn::BlobChunk& chunk) {
        return chunk.op == op || std::find(chunk.also_for.begin(), chunk.also_for.end(), op) != chunk.also_for.end();
      });
    });
    if (!is_found) result.missing.push_back(op);
  }
  result.are_elsewhere = may_be_in(model, result.missing, unexplained);
  return result;
}

// Which instructions the differing bytes come from, most of them first.
std::string culprits(const std::vector<std::int64_t>& origins, const std::vector<std::uint8_t>& found,
                     const std::vector<std::uint8_t>& expected, const runtime::ResultOrigins& follower) {
  std::map<std::int64_t, std::int64_t> counts, all;
  for (std::size_t i = 0; i < std::min({origins.size(), found.size(), expected.size()}); ++i) {
    if (origins[i] < 0) continue;
    ++all[origins[i]];
    if (found[i] != expected[i]) ++counts[origins[i]];
  }
  if (counts.empty()) return "no tensor instruction";
  std::vector<std::pair<std::int64_t, std::int64_t>> order(counts.begin(), counts.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  constexpr std::size_t kShown = 4;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min(kShown, order.size()); ++i) {
    words.push_back(
        fmt::format("{}: {} of its {}", follower.describe(order[i].first), order[i].second, all[order[i].first]));
  }
  if (order.size() > kShown) words.push_back(fmt::format("{} further instructions", order.size() - kShown));
  return fmt::format("{}", fmt::join(words, ", "));
}

// One package by itself, with the inputs that it should have got. Empty: it computes what the source says.
Result<std::string> judge_package(const SourceView& view, const PartwiseEvaluation& run, std::size_t part,
                                  int threads) {
  REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(view.packages[part]));
  REEF_ASSIGN_OR_RETURN(const LayerOrder order,
                        layer_order(*view.model, view.parts[part], loaded->inputs(), loaded->outputs()));
  std::vector<std::span<const std::uint8_t>> inputs;
  for (const std::int32_t t : order.inputs) inputs.emplace_back(run.part_inputs()[part].at(t));
  runtime::ResultOrigins follower;
  device::Device device(device::Options{.threads = threads});
  device.set_observer(&follower);
  REEF_ASSIGN_OR_RETURN(const TensorList found, device.run(loaded, inputs));
  for (std::size_t i = 0; i < order.outputs.size(); ++i) {
    const std::int32_t t = order.outputs[i];
    const auto expected = run.part_outputs()[part].find(t);
    if (expected == run.part_outputs()[part].end()) continue;
    const ir::Tensor& tensor = view.model->subgraphs[0].tensors[at(t < 0 ? -1 - t : t)];
    REEF_ASSIGN_OR_RETURN(const TensorComparison comparison, compare_tensors(tensor, found[i], expected->second, 0));
    if (comparison.different == 0) continue;
    const auto origins = follower.origins(loaded->outputs()[i], order.inputs.size(), i);
    return fmt::format("with the right inputs, {}. The values that differ were computed by {}", comparison.to_string(),
                       culprits(origins, found[i], expected->second, follower));
  }
  return std::string();
}

}  // namespace

Difference explain_difference(const SourceView& view, const PartwiseEvaluation& run, int threads) {
  Difference result;
  bool has_all = true;  // weights, biases and scales
  for (std::size_t p = 0; p < view.parts.size(); ++p) {
    const auto weights = weights_in(*view.model, view.parts[p], view.packages[p]);
    if (!weights || weights->missing.empty()) continue;
    has_all = false;
    if (weights->are_elsewhere) {
      result.sentences.push_back(fmt::format(
          "Edge TPU op {}: {} of {} operators are not found with the source's biases and scales, the first: {}; the "
          "source may be another version, or they are stored in a form that is not known",
          p, weights->missing.size(), weights->all, name_of(*view.model, weights->missing[0])));
      continue;
    }
    result.is_other_source = true;
    result.sentences.push_back(
        fmt::format("Edge TPU op {}: the weights of {} of {} operators of the source are not in it, the first: {}", p,
                    weights->missing.size(), weights->all, name_of(*view.model, weights->missing[0])));
  }
  if (result.is_other_source) return result;
  for (std::size_t p = 0; p < view.parts.size(); ++p) {
    const auto sentence = judge_package(view, run, p, threads);
    const std::string text = sentence.ok() ? *sentence : sentence.status().message();
    if (text.empty()) continue;
    result.is_wrong_program = result.is_wrong_program || (sentence.ok() && has_all);
    result.sentences.push_back(fmt::format("Edge TPU op {}: {}", p, text));
  }
  return result;
}

}  // namespace reef::compiler
