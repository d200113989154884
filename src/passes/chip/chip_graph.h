// SPDX-License-Identifier: Apache-2.0
// Subgraph 0 of a quantized model while it is made to fit the chip: a Graph that also knows which operators fit, and
// that notes what was done for the user.
//
// A pass finds its pattern at an operator, makes tensors and operators for the replacement (OpList) and commits them:
// they take the operator's place, the last of them computing the tensors that it computed, so that those who read them
// notice nothing. What is no longer used is swept up afterwards. The graph is settled at all times: an operator's id is
// its index, and any change may move operators.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/op_list.h"
#include "ir/model.h"
#include "ir/op.h"
#include "passes/rewrite.h"

namespace reef::passes {

struct Pass;

using graph::Affine8;
using graph::kNew;
using graph::OpList;
using graph::quantization_of;

class ChipGraph : public Graph {
 public:
  // `model` must be verified. Both must outlive this.
  ChipGraph(ir::Model& model, const RewriteOptions& options);

  const RewriteOptions& options() const { return *options_; }
  std::int32_t op_count() const { return op_slots(); }
  // The tensor depends on the model's inputs or on what is kept between invocations.
  bool varies(std::int32_t tensor) const;
  // The tensor's first dimension is that of a batch of inputs: several images are no dimension of one.
  bool is_batch_of_inputs(std::int32_t tensor) const;
  // Whether the chip can run the operator as it stands.
  bool fits(std::int32_t op) const;
  std::int32_t count_fitting() const;

  // Whether a replacement that differs by so many steps may be made. If not, it is noted as possible.
  bool accepts(std::int32_t op, std::string_view into, int difference);
  // Puts `with` in the place of operator `op` and notes it; `into` says what it became: "DEPTHWISE_CONV_2D and MUL".
  // Does nothing and returns false if one of the new operators does not fit. `except`: a type that need not.
  bool commit(std::int32_t op, std::vector<ir::Operator> with, std::string_view into, int difference = 0,
              OpName except = {});
  // The same without looking at what fits.
  void commit_anyway(std::int32_t op, std::vector<ir::Operator> with, std::string_view into, int difference = 0);
  // All operators anew, each with its origin; note_change() says what was done.
  void replace_operators(std::vector<ir::Operator> operators, const std::vector<std::int32_t>& origins);
  std::vector<std::int32_t> origins() const;
  // Forgets what was found out about the graph, after a change by Graph's own functions.
  void forget();
  // Notes what was done without commit(); `what` is the whole sentence (see is_trial).
  void note_change(std::int32_t op, std::string what, std::string place, int difference = 0);
  // Whether this is done on a copy, to see what could be: say "could become" and not "became".
  bool is_trial() const { return is_trial_; }
  // Found, but not made, whatever the options: `what` is the whole sentence.
  void note_left(std::int32_t op, std::string what, std::string place, int difference, std::string how);

  // ---- For the driver ----
  void begin(const Pass& pass, bool is_trial);
  // Removes operators whose results nobody reads.
  void remove_dead();
  std::vector<Application> take_applications();
  int changes() const { return changes_; }
  // A failure is a defect of a pass: what it made depends on itself.
  const Status& status() const { return status_; }

 private:
  void find_varying() const;
  // Brings ids and indices together again; `fits` of the operators before.
  void settle_keeping(std::optional<std::vector<bool>> fits);
  void note(std::int32_t op, std::string what, std::string place, int difference);

  const RewriteOptions* options_;
  const Pass* pass_ = nullptr;
  bool is_trial_ = false;
  int changes_ = 0;
  Status status_ = ok_status();
  std::vector<Application> applications_;
  mutable std::optional<std::vector<bool>> fits_;            // of every operator, until the graph changes
  mutable std::optional<std::vector<std::uint8_t>> varies_;  // of every tensor, until the graph changes
};

}  // namespace reef::passes
