// SPDX-License-Identifier: Apache-2.0
// What a model can lose: its groups of units, the order in which each group's units go, and what that does to the
// model's outputs.
//
// The effect is measured: a quarter, a half and three quarters of each group are removed, the layers that read them are
// fitted again, and the outputs on some samples are compared with the original's. From these curves and what each step
// saves (by any measure that the caller gives: parameters, estimated time) follows a ladder of steps, the cheapest in
// accuracy for what it saves first. A point on the ladder is a model of some size.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "data/sample_source.h"
#include "ir/model.h"
#include "prune/activations.h"
#include "prune/axes.h"
#include "prune/blocks.h"
#include "prune/matrix.h"
#include "prune/remove_units.h"
#include "prune/repair.h"
#include "prune/unit_groups.h"

namespace reef::prune {

struct StudyOptions {
  HeadUnits heads = HeadUnits::kWithinHeads;
  // Channels that stay are a multiple of this where a group has at least twice as many.
  int multiple = 4;
  bool blocks = false;              // whole residual blocks may go
  double least_kept = 0.125;        // share of a group that always stays
  std::int64_t trial_samples = 48;  // with which removals are tried
  double memory_bytes = 3e9;        // that values of samples may take, and as much again the matrices of layers
  int threads = 1;
  Budget budget = {};
  std::function<void(std::string_view phase, std::int64_t done, std::int64_t total)> progress;
};

// What a model costs, in any unit; less is better.
using Cost = std::function<Result<double>(const ir::Model&)>;

// Relative squared error of the outputs when `removed` of a group's units are gone.
struct TrialPoint {
  std::size_t removed = 0;
  double error = 0;
  double saved = 0;  // of the cost
};

struct StudiedGroup {
  UnitGroup group;
  std::vector<std::size_t> order;  // of units (positions in group.units), first those that go first
  std::vector<TrialPoint> trials;  // ascending; the first removes nothing
};

struct StudiedBlock {
  Block block;
  double error = 0, saved = 0;  // of the outputs and of the cost, when this block alone is gone
};

// Float elements of all constants.
std::int64_t parameter_count(const ir::Model& model);

class Study {
 public:
  // `model` must be verified, with settled shapes. `samples`: numbers of the source's, with which everything is tried
  // and fitted.
  static Result<std::unique_ptr<Study>> make(ir::Model model, std::shared_ptr<const data::SampleSource> source,
                                             std::vector<std::int64_t> samples, const StudyOptions& options,
                                             const Cost& cost);

  const std::vector<StudiedGroup>& groups() const { return groups_; }
  const std::vector<std::string>& notes() const { return notes_; }
  std::int64_t fitted_samples() const { return static_cast<std::int64_t>(samples_.size()); }

  // Points [0, steps()] of the ladder; 0 is the original.
  std::size_t steps() const { return ladder_.size(); }
  // How many units of each group are gone at a point.
  std::vector<std::size_t> removed_at(std::size_t point) const;
  // Which blocks are gone at a point (numbers in blocks()).
  std::vector<std::size_t> blocks_removed_at(std::size_t point) const;
  const std::vector<StudiedBlock>& blocks() const { return blocks_; }
  // The model at a point, as it is cut, with activations fused as in the original. Weights are not fitted.
  Result<ir::Model> cut(std::size_t point) const;

  struct Pruned {
    ir::Model model;
    RepairReport report;
    KeptIndices kept;  // of the tensors of prepared()
  };
  // The model at a point with all layers fitted; `zeros`: share of the weights of each layer that become zero.
  Result<Pruned> repaired(std::size_t point, double zeros = 0) const;
  // The original with activations split, which `kept` speaks of.
  const ir::Model& prepared() const { return model_; }

 private:
  Study() = default;
  Status order_groups();
  Status gather_layers();
  std::vector<std::size_t> order_by_readers(const UnitGroup& group) const;
  std::vector<std::size_t> order_by_power(const UnitGroup& group) const;
  void leave_out_widest(std::vector<bool>& is_read);
  Status try_groups(const Cost& cost);
  Status try_group(StudiedGroup& group, const Cost& cost);
  Status try_blocks(const Cost& cost);
  // The model at a point, with the operators of prepared().
  Result<ir::Model> cut_apart(std::size_t point, const KeptIndices& kept) const;
  void build_ladder();
  KeptIndices kept_without(std::span<const std::size_t> removed) const;
  Result<ir::Model> trial_model(const StudiedGroup& group, std::size_t removed) const;
  using Outputs = std::vector<std::vector<std::vector<float>>>;  // [sample][output][element]
  Result<Outputs> run(const ir::Model& model) const;
  Result<double> output_error(const ir::Model& model) const;
  void tell(std::string_view phase, std::size_t done, std::size_t total) const;

  StudyOptions options_;
  ir::Model model_;  // with activations split
  std::vector<FusedActivation> fused_;
  std::shared_ptr<const data::SampleSource> source_;
  std::vector<std::int64_t> samples_;  // those that memory has room for
  std::optional<Axes> axes_;
  std::vector<LinearLayer> layers_;
  std::vector<std::vector<Matrix>> grams_;      // [layer][group], with the constant; empty: not gathered
  std::vector<std::vector<double>> variances_;  // [layer][channel], of results
  std::vector<StudiedGroup> groups_;
  std::vector<StudiedBlock> blocks_;
  Outputs outputs_;  // of the original on the trial samples
  struct Rung {
    std::size_t group = 0, removed = 0;  // units of the group that are gone from here on
    bool is_block = false;               // block number `group` is gone
  };
  std::vector<Rung> ladder_;
  std::vector<std::string> notes_;
};

}  // namespace reef::prune
