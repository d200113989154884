// SPDX-License-Identifier: Apache-2.0
// A model whose declared shapes are those that its operators give, and so are the types of what detection and pose
// decoders give.
//
// TFLite infers the shape of every computed tensor when a model is prepared and ignores what the file declares. Stages
// that do not run a model (checking, lowering, the chip reference, retargeting, quantizing) read the declared shapes,
// and would index out of bounds or prove things about another model where a file's claims are wrong. So every model
// passes here once where it enters (compiler/front_end.h), and again where its operators were rewritten.
//
// Afterwards the declared shape of every tensor is what its operator gives for its operands, except where nobody can
// know it before the model runs: shapes that depend on values (not those of variables that only ever get one shape:
// variable_shapes.h), results of unknown custom operators and of control flow, and everything behind inputs whose sizes
// the file leaves open. No stage may put such a tensor on the chip without
// asking check_declared_shapes (inferred_shapes.h), and the CPU runtime infers them again while running.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/model.h"

namespace reef::ops {

struct ShapeCorrection {
  std::int32_t subgraph = 0, op = 0, tensor = 0;
  ir::Shape declared;  // rank 0 in files whose converter did not know it
  ir::Shape given;     // by the operator
};

struct SettledShapes {
  std::vector<ShapeCorrection> corrections;
  // The first operator of subgraph 0 that refuses its operands, with its place; ok: none does. No runtime can run such
  // a model with these input shapes; after the inputs are resized it may.
  Status refusal;
};

// Sizes that the file leaves open and states as 1 because it must state something. A batch of 1 is a size, and so is
// whatever else the file states: that is what a runtime takes when nobody resizes the input.
bool has_unknown_size(const ir::Tensor& tensor);

// Changes shapes (and shape signatures that contradict them) of computed tensors, and types where the operator's kernel
// sets them itself. `model` must have passed ir::verify,
// and passes it afterwards unless `refusal` says otherwise. Linear in the model's size.
SettledShapes settle_shapes(ir::Model& model);

// "op 3 CONV_2D gives 'x' shape [1, 8, 8, 4], the file declares [1, 9, 8, 4]".
std::string describe(const ir::Model& model, const ShapeCorrection& correction);

}  // namespace reef::ops
