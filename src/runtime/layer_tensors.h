// SPDX-License-Identifier: Apache-2.0
// The tensors of the source model as an Edge TPU computes them, layer by layer, from a run of the compiled model.
//
// A package says nothing of layers. With the source model at hand, matching finds out which operator each tensor
// instruction computes; following every byte of the run finds out which element each result is (layer_follower.h). A
// tensor is given only where all its elements were found and nothing contradicts; else it is said why not.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "execute/device/observer.h"
#include "ir/model.h"

namespace reef::runtime {

struct LayerTensor {
  enum class State : std::uint8_t {
    kComputed,    // its elements are results of instructions
    kMoved,       // put together from results and inputs, as an operator that only moves bytes does
    kReturned,    // an output of the chip, taken from what it returned because its elements could not be told apart
    kNotOnChip,   // no instruction computes it: part of another operator there
    kNotLocated,  // it is computed, but not (all) found
  };
  std::int32_t tensor = 0;  // of the source model's subgraph 0
  std::int32_t op = 0;      // that makes it
  State state = State::kNotLocated;
  std::string reason;               // of the last two
  std::vector<std::uint8_t> bytes;  // of the others; as TFLite holds them
  bool has_bytes() const { return state != State::kNotOnChip && state != State::kNotLocated; }
};

class LayerTensors {
 public:
  // Both models must be verified and outlive this. Refuses where `compiled` was not compiled from `source`.
  static Result<std::unique_ptr<LayerTensors>> create(const ir::Model& compiled, const ir::Model& source,
                                                      std::int64_t max_steps = 0, const Budget& budget = {});
  virtual ~LayerTensors() = default;

  // For a device that has run nothing yet, and then for one run of the compiled model on it.
  virtual device::Observer& observer() = 0;
  // After the run: every tensor that operators on the chip make, in their order.
  virtual std::vector<LayerTensor> tensors() = 0;
};

}  // namespace reef::runtime
