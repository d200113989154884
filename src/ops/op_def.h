// SPDX-License-Identifier: Apache-2.0
// OpDef: everything Reef knows about one op, in one constant, in one file.
//
// ops/<name>.cpp defines `constinit const OpDef <name>_op = define({...})`, ir/ops.def lists it, and everything else
// follows from there: the runtime, the generated docs/ops.md, the checker and the compiler.
// See HACKING.md for adding one.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "ir/op.h"
#include "ops/chip_support.h"
#include "ops/op_context.h"

namespace reef::ops {

struct Arity {
  int min = 1;
  int max = 1;
};
inline constexpr int kAnyNumber = 1 << 20;

// One attribute, named as in the model's option table.
struct AttributeDoc {
  std::string_view name;
  std::string_view meaning;
};

// The kind of function that an op is: what passes, the quantizer and the compiler may use without knowing which op it
// is. Code that needs such a property asks for it here, so that it holds for ops that are added later, too.
enum class Form : std::uint8_t {
  kOther,
  kUnary,        // output 0 is a function of input 0, element by element; it has its shape
  kBinary,       // output 0 is a function of inputs 0 and 1, element by element, with broadcasting
  kElementwise,  // the same with another number of inputs, or with broadcasting of its own (ADD_N, SELECT)
  kMove,       // every element of the outputs is an element of an input, or padding; which one, shapes, attributes and
               // inputs that hold sizes say. Inputs and outputs may store numbers with different scales
  kReduction,  // output 0 is what input 0 gives along the axes that input 1 names
};

// What else passes, the quantizer and the compiler may use of an op without knowing which one it is.
enum class Trait : std::uint16_t {
  kTakesActivation,   // its attribute fused_activation_function works in every runtime
  kPerImage,          // each index of the first dimension is computed by itself; no attribute or constant speaks of it
  kBroadcasts,        // arithmetic of two real operands, which its kernels broadcast
  kTakesLargest,      // elements of input 0 far below the others make no difference to the result
  kCopiesOperands,    // elements of each of several operands may be elements of the result
  kNeverNegative,     // the result, whatever the operands are
  kKeepsNonNegative,  // no result is negative where no real operand is. Moves and reductions have this, too
  kRearranges,        // a move of one operand's elements: nothing is added, joined or repeated
  kScalesByChannel,   // a positive factor for each channel of input 0 is one of the result, if its last dimension is
                      // as long
};
using TraitSet = std::uint32_t;
constexpr TraitSet trait_set(std::initializer_list<Trait> traits) {
  TraitSet set = 0;
  for (const Trait trait : traits) set |= TraitSet{1} << static_cast<unsigned>(trait);
  return set;
}

struct OpDef {
  std::string_view name;     // as in ir::Operator::type: name_of(Op::...)
  std::string_view summary;  // one sentence, for docs/ops.md
  Arity inputs = {}, outputs = {};
  std::span<const AttributeDoc> attributes = {};
  // Supported element types, in words for docs/ops.md: "float32; int8 (per-channel weights); hybrid".
  std::string_view types;
  bool is_custom = false;
  bool has_state = false;  // reads or changes something beside its operands: never folded at load time
  // The result depends on the input's shape alone (SHAPE, RANK): it is computed before the model runs, with the input's
  // data still null, so that shapes derived from it are static.
  bool value_from_shapes = false;
  // Output 0 has the bytes of input 0 under another shape: it can be the same memory.
  bool same_bytes = false;
  // Inputs that output 0 follows element by element (with broadcasting): element i of it depends, of each such input,
  // on the element at i alone, whatever i is but for scales per channel, and is not written before that element was
  // read for the last time. So the output may lie exactly where such an input does, if their elements are of equal size
  // and number.
  InputSet elementwise = 0;
  Form form = Form::kOther;
  TraitSet traits = 0;

  Status (*infer)(InferContext&) = nullptr;              // output shapes from inputs
  Result<Kernel> (*prepare)(PrepareContext&) = nullptr;  // checks everything, returns the kernel

  ChipSupport chip = {};  // nothing said: runs on the CPU only
};

// Sets the shape of output 0, at the end of an inference: `return give_shape(ctx, shape);`.
inline Status give_shape(InferContext& ctx, Shape shape) {
  ctx.set_output_shape(0, std::move(shape));
  return ok_status();
}

// Shape inference of each form.
Status infer_same_shape(InferContext& ctx);  // output 0 has the shape of input 0
Status infer_broadcast(InferContext& ctx);   // inputs 0 and 1 broadcast, as in NumPy
Status infer_reduce(InferContext& ctx);      // input 1 has axes of input 0, "keep_dims" says what is left of them

// Fills in what follows from the form. Refuses an incomplete op while compiling: a throw is not a constant expression.
consteval OpDef define(OpDef def) {
  const bool is_binary = def.form == Form::kBinary, is_reduction = def.form == Form::kReduction;
  if (is_binary || is_reduction) def.inputs = {2, 2};
  if (def.form == Form::kUnary) def.elementwise = input_set({0});
  if (is_binary) def.elementwise = input_set({0, 1});
  if (def.form == Form::kUnary) def.infer = infer_same_shape;
  if (is_binary) def.infer = infer_broadcast;
  if (is_reduction) def.infer = infer_reduce;
  if (def.name.empty() || def.summary.empty()) throw "an op needs a name and a summary";
#ifndef __SANITIZE_ADDRESS__  // under the sanitizers gcc does not take the address of a function in another file for
                              // non-null
  if (def.infer == nullptr || def.prepare == nullptr) throw "an op needs infer and prepare";
#endif
  if (def.types.empty()) throw "an op needs the list of types it supports";
  if (def.inputs.min > def.inputs.max || def.outputs.min > def.outputs.max) throw "arity bounds are crossed";
  return def;
}

// An op of a form whose shape inference is its own all the same. (define() cannot ask whether there is one: under the
// sanitizers gcc does not compare functions with null while compiling.)
consteval OpDef with_inference(Status (*infer)(InferContext&), OpDef def) {
  def.infer = infer;
  return def;
}

#define OP(file, name) extern const OpDef file##_op;
#include "ir/ops.def"
#undef OP

}  // namespace reef::ops
