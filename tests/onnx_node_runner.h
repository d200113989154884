// SPDX-License-Identifier: Apache-2.0
// ONNX's own tests of its operators (Debian: libonnx-testdata): small models with inputs and the outputs that ONNX's
// reference gives. Each is imported, run on the CPU and compared as ONNX's own runner compares.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/onnx/model.h"
#include "ir/model.h"

namespace reef::test {

enum class NodeTestOutcome {
  kPassed,
  kFailed,
  kAside,  // not counted: training, sequences, optionals, strings
};

struct NodeTestResult {
  std::string name;  // "node/test_abs"
  NodeTestOutcome outcome = NodeTestOutcome::kFailed;
  std::string reason;
  std::vector<std::string> operators;     // of the model, each once
  std::vector<std::string> fixed_inputs;  // inputs whose value had to be known to import the model
};

// Folders of all tests, sorted; empty where the package is not installed ($REEF_ONNX_TESTDATA overrides its place).
std::vector<std::string> node_test_folders();

NodeTestResult run_node_test(const std::string& folder);

// The part of docs/onnx.md that says what passes and what does not.
std::string node_test_report(const std::vector<NodeTestResult>& results);

// Every kind of node that is converted, as a paragraph.
std::string converter_list();

// Runs a converted model, channels-first at its borders, on a data set of its ONNX source and compares, by ONNX's rule
// or with differences up to `tolerance` times the largest element.
Status compare_with_data(const onnx::Model& source, const ir::Model& model, const std::string& data_set,
                         double tolerance = 0);
// Sizes of the inputs that a data set has.
Result<std::map<std::string, std::vector<std::int64_t>>> input_sizes(const onnx::Model& source,
                                                                     const std::string& data_set);

}  // namespace reef::test
