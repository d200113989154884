// SPDX-License-Identifier: Apache-2.0
// The chip takes one image at a time. A network for a small batch is written out: SPLIT the batch, compute each image
// with the same weights, join the results. SPLIT and CONCATENATION of the batch stay on the CPU, at the ends.
//
// Operators that mix images, and those that would not run on the chip anyway, stay as they are; each run of operators
// between them is written out by itself, one image after the other, so that the images need not be in memory together.
#include <algorithm>
#include <map>
#include <set>

#include "passes/chip/batch_rules.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::int32_t kMostImages = 16;
constexpr std::size_t kMostOps = 20000;  // of the whole graph, afterwards

// The batch of the first input that has one.
std::int32_t batch_of(const ChipGraph& edit) {
  for (const std::int32_t input : edit.graph().inputs) {
    const ir::Shape& shape = edit.shape(input);
    if (shape.rank() >= 2 && shape[0] >= 2 && shape[0] <= kMostImages) return shape[0];
  }
  return 0;
}

class Unrolling {
 public:
  Unrolling(ChipGraph& edit, std::int32_t batch)
      : edit_(edit), batch_(batch), list_(edit, "batch"), old_(edit.graph().operators) {
    for (std::int32_t i = 0; i < edit.op_count(); ++i) parallel_.push_back(is_batch_parallel(edit, i, batch));
  }

  std::size_t parallel_count() const {
    return static_cast<std::size_t>(std::count(parallel_.begin(), parallel_.end(), true));
  }

  // All operators anew; `origins` receives where each comes from.
  std::vector<ir::Operator> run(std::vector<std::int32_t>& origins) {
    std::int32_t begin = 0;
    while (begin < count()) {
      if (!is_parallel(begin)) {
        keep(begin++);
        continue;
      }
      std::int32_t end = begin;
      while (end < count() && is_parallel(end)) ++end;
      unroll(begin, end);
      begin = end;
    }
    origins = std::move(origins_);
    return std::move(ops_);
  }

 private:
  std::int32_t count() const { return static_cast<std::int32_t>(old_.size()); }
  bool is_parallel(std::int32_t op) const { return parallel_[at(op)]; }
  const ir::Operator& old(std::int32_t op) const { return old_[at(op)]; }

  void take(std::int32_t origin) {
    for (ir::Operator& op : list_.take()) {
      ops_.push_back(std::move(op));
      origins_.push_back(edit_.origin(origin));
    }
  }
  void keep(std::int32_t op) {
    ops_.push_back(old(op));
    origins_.push_back(edit_.origin(op));
  }

  void split(std::int32_t tensor, std::int32_t reader) {
    if (edit_.is_constant(tensor) || images_.contains(tensor)) return;
    images_[tensor] = list_.split(tensor, 0, batch_);
    take(reader);
  }

  void unroll(std::int32_t begin, std::int32_t end) {
    std::set<std::int32_t> inside;  // tensors computed here
    for (std::int32_t i = begin; i < end; ++i) inside.insert(old(i).outputs.begin(), old(i).outputs.end());
    for (std::int32_t i = begin; i < end; ++i) {
      for (const std::int32_t input : old(i).inputs) {
        if (input >= 0 && !inside.contains(input)) split(input, i);
      }
    }
    for (std::int32_t image = 0; image < batch_; ++image) {
      for (std::int32_t i = begin; i < end; ++i) one_image(i, static_cast<std::size_t>(image));
    }
    for (std::int32_t i = begin; i < end; ++i) {
      for (const std::int32_t output : old(i).outputs) {
        if (!is_needed_whole(output)) continue;
        list_.concatenation(images_[output], 0, output);
        take(i);
      }
    }
  }

  void one_image(std::int32_t index, std::size_t image) {
    const ir::Operator& op = old(index);
    std::vector<std::int32_t> inputs, outputs;
    for (const std::int32_t input : op.inputs) {
      inputs.push_back(input < 0 || edit_.is_constant(input) ? -1 : images_[input][image]);
    }
    for (const std::int32_t output : op.outputs) {
      ir::Shape shape = edit_.shape(output);
      shape[0] = 1;
      outputs.push_back(list_.tensor_like(output, shape));
      images_[output].push_back(outputs.back());
    }
    add_for_one_image(edit_, list_, op, std::move(inputs), std::move(outputs));
    take(index);
  }

  // By an operator that is not written out. Those in other runs read the images.
  bool is_needed_whole(std::int32_t tensor) const {
    if (edit_.is_graph_output(tensor)) return true;
    const std::vector<std::int32_t>& readers = edit_.consumers(tensor);
    return std::any_of(readers.begin(), readers.end(), [&](std::int32_t reader) { return !is_parallel(reader); });
  }

  ChipGraph& edit_;
  std::int32_t batch_;
  OpList list_;
  const std::vector<ir::Operator> old_;
  std::vector<bool> parallel_;
  std::map<std::int32_t, std::vector<std::int32_t>> images_;  // of each tensor that was split or computed apart
  std::vector<ir::Operator> ops_;
  std::vector<std::int32_t> origins_;
};

bool unroll_batch_whole(ChipGraph& edit) {
  const std::int32_t batch = batch_of(edit);
  if (batch == 0) return false;
  Unrolling unrolling(edit, batch);
  const std::size_t parallel = unrolling.parallel_count();
  if (parallel == 0 || parallel * static_cast<std::size_t>(batch) + edit.graph().operators.size() > kMostOps) {
    return false;
  }
  const std::int32_t fitting_before = edit.options().fits ? edit.count_fitting() : 0;
  const std::vector<ir::Operator> old = edit.graph().operators;
  const std::vector<std::int32_t> old_origins = edit.origins();
  std::vector<std::int32_t> origins;
  std::vector<ir::Operator> ops = unrolling.run(origins);
  edit.replace_operators(std::move(ops), origins);
  if (edit.options().fits && edit.count_fitting() <= fitting_before) {
    edit.replace_operators(old, old_origins);
    return false;
  }
  edit.note_change(-1,
                   fmt::format("{} operators for a batch of {} {} for each image", parallel, batch,
                               edit.is_trial() ? "could be written out" : "were written out"),
                   "");
  return true;
}

}  // namespace

constinit const Pass unroll_batch_chip_pass = {
    .name = "unroll-batch",
    .summary =
        "A network for a batch of 2 to 16 images is written out for each image, with the same weights, "
        "between a SPLIT and a CONCATENATION on the CPU.",
    .whole_on_chip = unroll_batch_whole};

}  // namespace reef::passes
