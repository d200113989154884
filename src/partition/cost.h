// SPDX-License-Identifier: Apache-2.0
// Predicted time of operators on the chip, on the host's CPU and between them. Every figure is an estimate.
//
// The chip: cycles from shapes (ops/chip_work.h), parameters cached while they fit (parameter_cache.h) and streamed
// otherwise, instructions and activations over the link. Where there is code already (with_code), its instructions, its
// copies and what it streams take the place of what shapes let expect. The CPU: a rate per kind of op, measured once
// with LiteRT on a named machine, and a factor for the host that the link stands for (cpu_cost.h). How well it agrees
// with simulated and published times is in docs/performance.md.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "chip/links.h"
#include "chip/machine.h"
#include "ir/model.h"
#include "ops/chip_work.h"
#include "partition/parameter_cache.h"

namespace reef::partition {

struct CostOptions {
  const chip::LinkProfile* link = nullptr;  // null: the first of chip::link_profiles()
  double clock_hz = chip::kClockHzMax;
  CachePolicy cache_policy = CachePolicy::kInOrder;
};

// Microseconds, unless named otherwise.
struct OpCost {
  double chip = 0;  // on the chip, its parameters there already; meaningful only where the chip could run it
  double cpu = 0;
  std::int64_t parameter_bytes = 0;    // on the chip
  std::int64_t instruction_bytes = 0;  // sent with every inference
};

// What the code of an operator says, where there is some. Instructions and copies follow from how tensors lie in the
// tiles, which shapes alone do not show.
struct OpInCode {
  std::int64_t instruction_bytes = 0;
  std::int64_t streamed_bytes = 0;  // of parameters, in all
  double move_cycles = 0;           // of copies over the ring and within tiles; estimated
  bool computes = false;            // it does anything but copy
};
struct PartInCode {
  std::vector<std::int32_t> ops;             // ascending
  std::vector<OpInCode> of_op;               // by their numbers in `ops`
  std::vector<std::int64_t> piece_bytes;     // of instructions, in the order in which they are sent
  std::int64_t first_bytes = 0;              // of instructions in front of the first operator: the beginning, inputs
  std::int64_t in_bytes = 0, out_bytes = 0;  // over the link: inputs and outputs, and what the host keeps meanwhile
  std::int64_t cached_bytes = 0, cache_used = 0, cache_capacity = 0;  // as in PartCost
};

// One compiled part: a set of operators that run as one custom op.
struct PartCost {
  double compute = 0;    // on the chip
  double streaming = 0;  // of parameters that are not cached, beyond what computing hides
  double transfer = 0;   // inputs, outputs, instructions and the host's work per invocation
  std::int64_t cached_bytes = 0, streamed_bytes = 0;  // parameters
  std::int64_t cache_capacity = 0;                    // bytes of wide memory that scratch leaves for parameters
  std::int64_t cache_used = 0;  // bytes of wide memory that they take: whole lines, so more than cached_bytes
  std::int64_t input_bytes = 0, output_bytes = 0, instruction_bytes = 0;
  double total() const { return compute + streaming + transfer; }
};

// What partitioning asks.
class Costs {
 public:
  virtual ~Costs() = default;
  virtual const OpCost& op(std::int32_t index) const = 0;
  // Bytes that tensor `index` takes when it crosses the link.
  virtual std::int64_t tensor_bytes(std::int32_t index) const = 0;
  // `ops`: ascending; `inputs`, `outputs`: the tensors that cross the link. `cache_bytes`: room for parameters that
  // others have left; negative: all there is.
  virtual PartCost part(std::span<const std::int32_t> ops, std::span<const std::int32_t> inputs,
                        std::span<const std::int32_t> outputs, std::int64_t cache_bytes = -1) const = 0;
};

class CostModel : public Costs {
 public:
  // `model` must be verified and outlive this.
  CostModel(const ir::Model& model, const CostOptions& options);

  const CostOptions& options() const { return options_; }
  const OpCost& op(std::int32_t index) const override { return ops_[at(index)]; }
  // The operator's needs on the chip. All zero where it is not known.
  const ops::ChipWork& work(std::int32_t index) const { return works_[at(index)]; }
  std::int64_t tensor_bytes(std::int32_t index) const override { return tensor_bytes_[at(index)]; }
  PartCost part(std::span<const std::int32_t> ops, std::span<const std::int32_t> inputs,
                std::span<const std::int32_t> outputs, std::int64_t cache_bytes = -1) const override;
  // The same, where these parts have code: `op` is then what the code takes, and so is `part` of exactly their
  // operators with as much room for parameters as they use. Of other sets, whose code nobody has seen, parameters are
  // shared out as ever.
  CostModel with_code(std::vector<PartInCode> parts) const;
  const std::vector<PartInCode>& codes() const { return codes_; }
  // What the parameters of `ops` ask of the cache, for sharing it among several programs (share_cache). Layers are
  // those of `ops`, one each.
  CacheModel cache_model(std::span<const std::int32_t> ops) const;

 private:
  double in_us(double bytes) const;
  double out_us(double bytes) const;
  const PartInCode* code_of(std::span<const std::int32_t> ops, std::int64_t cache_bytes) const;
  double run(std::span<const std::int32_t> ops, std::span<const std::int64_t> streamed, const PartInCode* code,
             PartCost& cost) const;

  CostOptions options_;
  std::vector<OpCost> ops_;
  std::vector<ops::ChipWork> works_;
  std::vector<std::int64_t> tensor_bytes_, output_bytes_;
  std::vector<std::int64_t> input_instructions_, output_instructions_;  // bytes, where a tensor crosses the link
  std::vector<PartInCode> codes_;
};

}  // namespace reef::partition
