// SPDX-License-Identifier: Apache-2.0
// Our code beside Google's for the same part of a model, with Google's free choices in the place of ours.
//
// Where things lie in memory is free: any place is right, and which one Google's compiler takes is known only in part.
// So that programs can be compared instruction by instruction, its choices are read from its program:
//   parameters        from the program that caches them
//   objects           where an instruction of ours and its counterpart have loops of the same shape over an object of
//                     memory and begin at different addresses, theirs is adopted; this is repeated with the new
//                     addresses until nothing changes
// Nothing but places is adopted: what instructions do, in which order, with which loops and waits is ours.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/code_generator.h"
#include "formats/darwinn/package.h"
#include "ir/model.h"
#include "isa/program.h"

namespace reef::testing {

// What a package computes, as a part of the model that it was compiled from.
struct MappedPart {
  // The operators between the tensors that the package's layers name. Fails where the model has no such tensors.
  static Result<MappedPart> of(const ir::Model& source, const darwinn::Package& theirs);
  compiler::PartProgram part(const ir::Model& source, std::uint64_t token, int min_runtime_version) const;

  std::vector<std::int32_t> ops, inputs, outputs;
};

// All instructions of an executable's chunks, one after the other, as one program: starts, halts and ends between
// chunks are left out.
Result<isa::Program> whole_program(const darwinn::Executable& executable);

// Pairs of instructions (ours, theirs), in order. Where opcodes part, both go on at the nearest place from which
// several agree.
std::vector<std::pair<std::size_t, std::size_t>> aligned(const isa::Program& ours, const isa::Program& theirs);

// Equality of the two programs, in rows of 128 bits.
struct Likeness {
  int rows = 0;                          // of theirs
  int equal = 0;                         // rows of aligned instructions that are equal, sequence numbers aside
  bool identical = false;                // word for word, sequence numbers and all
  std::vector<std::string> differences;  // the first ones, in words; not the start's, which is the program's length
  std::string first_difference() const { return differences.empty() ? "" : differences.front(); }
  double share() const { return rows == 0 ? 1 : static_cast<double>(equal) / rows; }
};
Likeness likeness(const isa::Program& ours, const isa::Program& theirs);

// The part's code with Google's places.
struct LikeGoogle {
  compiler::GenerationOptions options;
  compiler::PartCode code;
  int rounds = 0;
};
Result<LikeGoogle> generate_like_google(const compiler::PartProgram& part, const darwinn::Package& theirs);

}  // namespace reef::testing
