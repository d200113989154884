// SPDX-License-Identifier: Apache-2.0
#include "execute/cpu/tensor_places.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/at.h"

namespace reef::cpu {
namespace {

constexpr std::int32_t kAlways = std::numeric_limits<std::int32_t>::max();

class Sharing {
 public:
  Sharing(const std::vector<PlacedTensor>& tensors, const std::vector<PlacedOp>& ops)
      : tensors_(tensors), place_(tensors.size()), last_(tensors.size(), -1), belongs_to_caller_(tensors.size()) {
    std::iota(place_.begin(), place_.end(), 0);
    for (std::size_t k = 0; k < ops.size(); ++k) {
      for (const std::int32_t t : ops[k].reads) last_[at(t)] = static_cast<std::int32_t>(k);
    }
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      belongs_to_caller_[t] = tensors[t].is_input || tensors[t].is_output;
      if (belongs_to_caller_[t]) last_[t] = kAlways;
    }
  }

  // Whether the output of `op`, number `step`, may lie where `input` lies, which that op reads.
  bool may_join(const PlacedOp& op, std::int32_t input, std::int32_t step) const {
    const std::int32_t output = op.writes[0];
    const std::size_t place = at(place_[at(input)]);
    if (!tensors_[at(output)].in_arena || !tensors_[at(input)].in_arena) return false;
    if (tensors_[at(output)].bytes != tensors_[at(input)].bytes || place_[at(output)] != output) return false;
    if (tensors_[at(output)].is_input || (tensors_[at(output)].is_output && belongs_to_caller_[place])) return false;
    return op.is_view || (last_[place] <= step && is_read_by_element(op, place));
  }

  // False if the op reads the place in another order, too, under the name of another tensor.
  bool is_read_by_element(const PlacedOp& op, std::size_t place) const {
    return std::all_of(op.reads.begin(), op.reads.end(), [&](std::int32_t t) {
      return at(place_[at(t)]) != place ||
             std::find(op.may_become.begin(), op.may_become.end(), t) != op.may_become.end();
    });
  }

  void join(std::int32_t output, std::int32_t input) {
    const std::size_t place = at(place_[at(input)]);
    place_[at(output)] = static_cast<std::int32_t>(place);
    last_[place] = std::max(last_[place], last_[at(output)]);
    belongs_to_caller_[place] = belongs_to_caller_[place] || belongs_to_caller_[at(output)];
  }

  std::vector<std::int32_t> places() && { return std::move(place_); }

 private:
  const std::vector<PlacedTensor>& tensors_;
  std::vector<std::int32_t> place_;
  // Properties of each place, indexed by its first tensor:
  std::vector<std::int32_t> last_;  // last op that reads one of its tensors
  std::vector<bool> belongs_to_caller_;
};

}  // namespace

TensorPlaces share_places(const std::vector<PlacedTensor>& tensors, const std::vector<PlacedOp>& ops) {
  Sharing sharing(tensors, ops);
  TensorPlaces result;
  result.is_free.assign(ops.size(), false);
  for (std::size_t k = 0; k < ops.size(); ++k) {
    const PlacedOp& op = ops[k];
    if (op.writes.empty()) continue;
    const auto step = static_cast<std::int32_t>(k);
    const std::vector<std::int32_t> candidates =
        op.is_view ? std::vector<std::int32_t>(op.reads.begin(), op.reads.begin() + (op.reads.empty() ? 0 : 1))
                   : op.may_become;
    for (const std::int32_t input : candidates) {
      if (!sharing.may_join(op, input, step)) continue;
      sharing.join(op.writes[0], input);
      result.is_free[k] = op.is_view;
      break;
    }
  }
  result.place = std::move(sharing).places();
  return result;
}

}  // namespace reef::cpu
