// SPDX-License-Identifier: Apache-2.0
// onnx_node_report: runs ONNX's operator tests and prints what passes.
//   onnx_node_report                    the report
//   onnx_node_report --docs FILE        puts it, and the list of converted nodes, between the marks in FILE
//   onnx_node_report NAME...            what became of tests whose names contain one of these
#include <cstdio>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "onnx_node_runner.h"

namespace {

// Replaces what stands between "<!-- NAME -->" and "<!-- end of NAME -->".
bool replace_part(std::string& document, const std::string& name, const std::string& text) {
  const std::string begin = fmt::format("<!-- {} -->\n", name), end = fmt::format("<!-- end of {} -->", name);
  const std::size_t from = document.find(begin), to = document.find(end);
  if (from == std::string::npos || to == std::string::npos) return false;
  document.replace(from + begin.size(), to - from - begin.size(), "\n" + text + "\n");
  return true;
}

int write_docs(const std::string& path, const std::vector<reef::test::NodeTestResult>& results) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  std::string document = text.str();
  const bool is_done = replace_part(document, "converters", reef::test::converter_list()) &&
                       replace_part(document, "node tests", reef::test::node_test_report(results));
  if (!is_done || !reef::write_file(path, document).ok()) {
    fmt::print(stderr, "onnx_node_report: {} has no marks, or cannot be written\n", path);
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool writes_docs = argc == 3 && std::string(argv[1]) == "--docs";
  const bool takes_all = argc == 1 || writes_docs;
  std::vector<reef::test::NodeTestResult> results;
  for (const std::string& folder : reef::test::node_test_folders()) {
    bool is_wanted = takes_all;
    for (int i = 1; i < argc; ++i) is_wanted = is_wanted || folder.find(argv[i]) != std::string::npos;
    if (!is_wanted) continue;
    results.push_back(reef::test::run_node_test(folder));
    const auto& result = results.back();
    if (takes_all) continue;
    const std::string fixed = fmt::format("{}", fmt::join(result.fixed_inputs, ", "));
    fmt::print("{} {} {}{}\n", static_cast<int>(result.outcome), result.name, result.reason,
               fixed.empty() ? "" : "fixed: " + fixed);
  }
  if (writes_docs) return write_docs(argv[2], results);
  if (takes_all) fmt::print("{}", reef::test::node_test_report(results));
  return 0;
}
