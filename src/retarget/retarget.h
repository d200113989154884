// SPDX-License-Identifier: Apache-2.0
// Puts a model's weights and quantization into a package that was compiled for another model of the same architecture.
//
// Google's compiler decides where everything lies and in which order it runs; that depends on the architecture alone.
// These depend on the weights and on the quantization: bytes of the parameter blobs, constants in the instructions,
// zero points and scales of inputs and outputs, and a token by which the runtime knows what it has cached. All of it is
// computed anew from the model; whatever of the model finds no place, or has no known one, is an error.
//
// How the places are found: matching.h. What is known and how: docs/retarget.md. Not run on a chip.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/status.h"
#include "ir/model.h"

namespace reef::retarget {

struct Options {
  // The model that the template was compiled from, if it is at hand: then everything that is going to be replaced must
  // first be found in the template as this model says, and layers that look alike are told apart by their content.
  const ir::Model* source = nullptr;
  // Programs that take more steps than this are refused; 0: more than any known network takes.
  std::int64_t max_steps = 0;
  Budget budget = {};
};

// A constant of an instruction that was replaced.
struct InstructionChange {
  std::uint32_t instruction = 0;  // number in the execution program
  std::string field;
  std::uint32_t before = 0, after = 0;
  std::string what;  // whose constant it is
};

struct ParameterChange {
  bool is_cached = true;  // in the parameter-caching program's blob, else in the execution program's
  std::uint32_t offset = 0, bytes = 0;
  std::uint32_t changed = 0;  // bytes that differ
  std::string what;
};

struct Report {
  std::int64_t tensor_ops = 0;  // arithmetic instructions of the execution program
  std::int64_t copies = 0;      // of these, byte for byte copies
  std::int64_t layers = 0;      // operators with parameters that found their place
  std::int64_t parameter_bytes = 0, replaced_parameter_bytes = 0, changed_parameter_bytes = 0;
  std::int64_t constants = 0;                   // of instructions, computed from the model
  std::vector<InstructionChange> instructions;  // those that changed
  std::vector<ParameterChange> parameters;
  std::vector<std::string> metadata;  // sentences
  std::vector<std::string> notes;
  std::uint64_t old_token = 0, new_token = 0;
};

struct Retargeted {
  std::vector<std::uint8_t> file;
  Report report;
};

// `compiled_file`: a .tflite file with one Edge TPU custom op. `model`: read and verified.
Result<Retargeted> retarget(const Bytes& compiled_file, const ir::Model& model, const Options& options = {});

}  // namespace reef::retarget
