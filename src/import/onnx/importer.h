// SPDX-License-Identifier: Apache-2.0
// onnx::Model -> ir::Model of TFLite operators that computes the same.
//
// Every node becomes operators by its converter (converter.h), in order; sizes are known from the inputs on, so shapes
// are inferred and shape arithmetic is computed on the way. Control flow is unrolled where its course is known, and
// functions of the model are put in place of their calls. Channels-first meaning is kept with TRANSPOSE around
// operators that want channels last; src/passes/float removes them. Image inputs and outputs become channels-last.
//
// Foreign data: any node, attribute and tensor may be nonsense. Refusals name the node and say what to do.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "formats/onnx/model.h"
#include "ir/model.h"

namespace reef::import {

struct ImportOptions {
  // Sizes of inputs, as ONNX counts them (channels first), for those that the file leaves open or to change them.
  std::map<std::string, std::vector<std::int64_t>> input_shapes;
  // Inputs with a fixed value: they are no inputs of the result. For sizes and axes given at run time.
  std::map<std::string, onnx::Tensor> input_values;
  // Inputs and outputs that stay channels-first. Others of rank 3 to 5 that belong to convolutions and their like
  // become channels-last.
  std::vector<std::string> keep_nchw;
  bool keep_all_nchw = false;
  // NonMaxSuppression: a result of the largest size, unused rows -1, and an output that says how many are used, instead
  // of one whose size depends on the data. Without it, the same where nothing else can be converted.
  bool pad_selections = false;
  // LSTMs step by step, also where one operator would do.
  bool unroll = false;
  Budget budget = {};  // looked at before each node; loops are unrolled into nodes
};

struct ImportResult {
  ir::Model model;                       // verified
  std::vector<std::string> value_names;  // ONNX names of values, sorted: see origin_of
  std::vector<std::string> notes;        // sentences for the user
};

struct ImportFailure {
  // Inputs whose value must be known (ImportOptions::input_values) for the import to succeed.
  std::vector<std::string> needed_inputs;
};

// `failure`, if given, is filled when the result is an error.
Result<ImportResult> import_onnx(const onnx::Model& model, const ImportOptions& options,
                                 ImportFailure* failure = nullptr);

// The value of input `name` as given by a person: as many numbers as the input has elements, or one for all of them.
Result<onnx::Tensor> input_value(const onnx::Model& model, const std::string& name, const std::vector<double>& numbers);

// The ONNX value that a tensor of the result stands for or was made for; empty: none. Tensors bear the value's name, or
// that with "/number" behind it for steps on the way to it.
std::string origin_of(const std::vector<std::string>& value_names, const std::string& tensor_name);

}  // namespace reef::import
