// SPDX-License-Identifier: Apache-2.0
// Compiled code tried out before anybody relies on it. (Whole files: file_verification.h.)
//
// A package runs on the virtual device; the operators that it stands for are computed by the chip reference
// (execute/reference), which has the chip's arithmetic but knows nothing of tiles, memories or instructions. Both must
// give the same bytes. Besides, the soundness checker (src/audit) must find nothing that depends on the speed of units.
// Then the compiled file itself, as it is going to be written, is read and run as a whole, with its other operators on
// the CPU; so is the model that it was compiled from, with the same operators computed by the chip reference.
//
// What that shows: lowering, scheduling, emission and packing did what the operators ask for, on this data, on a model
// of the chip that was derived from the study of Google's binaries. What it does not show: anything about silicon.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "execute/device/device.h"
#include "execute/reference/chip_reference.h"
#include "formats/darwinn/package.h"
#include "ir/model.h"
#include "partition/cost.h"

namespace reef::compiler {

using TensorList = std::vector<std::vector<std::uint8_t>>;  // bytes, in the order of inputs, outputs or layers

// One tensor as two sides computed it.
struct TensorComparison {
  std::string name;
  std::int64_t elements = 0;
  std::int64_t different = 0;  // further apart than the tolerance
  double largest = 0;          // difference: of codes where elements are integers
  std::int64_t first = -1;     // the first that is further apart, and both values
  double found = 0, expected = 0;
  std::string to_string() const;
};
// Bytes of a tensor of this type. Fails where they are no numbers, or not equally many.
Result<TensorComparison> compare_tensors(const ir::Tensor& tensor, const std::vector<std::uint8_t>& found,
                                         const std::vector<std::uint8_t>& expected, double tolerance);

// Operators of a source model that became one package.
struct VerifiedPart {
  std::vector<std::int32_t> ops;              // of subgraph 0, ascending
  std::vector<std::int32_t> inputs, outputs;  // tensors at the border
};

// The operators that compute `outputs` from `inputs`; -1 - n is the new value of variable n.
VerifiedPart part_between(const ir::Model& source, std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs);

// The operators between the tensors that the package's layers name. Fails where the model has no such tensors.
Result<VerifiedPart> part_of_package(const ir::Model& source, const darwinn::Package& package);

// The tensors of a part in the order of a package's layers; -1 - n is the new value of variable n.
struct LayerOrder {
  std::vector<std::int32_t> inputs, outputs;
};
Result<LayerOrder> layer_order(const ir::Model& model, const VerifiedPart& part,
                               const std::vector<darwinn::Layer>& inputs, const std::vector<darwinn::Layer>& outputs);

// Runs packages that share a chip, one after the other.
class PartVerifier {
 public:
  explicit PartVerifier(Budget budget = {});
  // Fails on a difference and on anything that the device reports, with what and where. kUnsupported: the reference
  // does not know how the chip computes one of the operators.
  Status verify(const ir::Model& model, const VerifiedPart& part, const darwinn::Package& package, std::uint32_t seed);

  // Fails on anything that the soundness checker reports, but for what Google's programs do.
  Status check_soundness(const darwinn::Package& package);
  // Something that was checked relies on the speed of units where Google's programs do (audit::is_googles_gather).
  bool rests_on_timing() const { return rests_on_timing_; }

 private:
  Budget budget_;
  std::shared_ptr<device::Device> device_;
  bool rests_on_timing_ = false;
};

// Which compiler made a package, as far as its arithmetic depends on it (ChipReferenceOptions::compiler_generation).
int compiler_generation_of(const darwinn::Package& package);

// Seconds that PartVerifier::verify is going to take on a usual machine (estimated from the cost model's cycles).
double estimated_verification_seconds(const partition::CostModel& costs, const std::vector<std::int32_t>& ops);

}  // namespace reef::compiler
