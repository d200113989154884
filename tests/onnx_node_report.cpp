// SPDX-License-Identifier: Apache-2.0
// onnx_node_report: runs ONNX's operator tests and prints the part of docs/onnx.md about them, or, with names as
// arguments, what became of tests whose names contain one of them.
#include <cstdio>

#include <fmt/format.h>

#include "onnx_node_runner.h"

int main(int argc, char** argv) {
  std::vector<reef::test::NodeTestResult> results;
  for (const std::string& folder : reef::test::node_test_folders()) {
    bool is_wanted = argc == 1;
    for (int i = 1; i < argc; ++i) is_wanted = is_wanted || folder.find(argv[i]) != std::string::npos;
    if (!is_wanted) continue;
    results.push_back(reef::test::run_node_test(folder));
    const auto& result = results.back();
    if (argc > 1) fmt::print("{} {} {}\n", static_cast<int>(result.outcome), result.name, result.reason);
  }
  if (argc == 1) fmt::print("{}", reef::test::node_test_report(results));
  return 0;
}
