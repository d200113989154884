// SPDX-License-Identifier: Apache-2.0
// What the source tree promises about itself.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "ops/registry.h"

namespace reef {
namespace {

namespace fs = std::filesystem;

// Product code, by path from the root; tests may do as they like.
std::map<std::string, std::string> product_sources() {
  std::map<std::string, std::string> result;
  const fs::path root = REEF_SOURCE_DIR;
  for (const char* folder : {"src", "apps", "bindings"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string name = entry.path().filename().string();
      if (!name.ends_with(".cpp") && !name.ends_with(".h")) continue;
      if (name.ends_with("_test.cpp") || name.ends_with("_fuzz.cpp") || name.ends_with("_bench.cpp")) continue;
      std::stringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      result[fs::relative(entry.path(), root).generic_string()] = text.str();
    }
  }
  return result;
}

// Whoever makes an interpreter decides whose rules it follows and what bounds it. Constants were once folded by the
// rules of TFLite 2.9 and run by those of the current release, because ten places decided: now evaluate.cpp does, and
// the two that run models for users, with the users' options.
TEST(Structure, InterpretersAreMadeInOnePlace) {
  const std::map<std::string, std::string> kAllowed = {
      {"src/execute/cpu/interpreter.cpp", "defines it"},
      {"src/execute/cpu/evaluate.cpp", "the evaluator"},
      {"apps/reef/cmd_run.cpp", "reef run: resizes inputs before it prepares"},
      {"bindings/c/interpreter.cpp", "libreef: resizes inputs before it prepares"},
  };
  const std::regex makes("(^|[^:\\w])(cpu::|reef::cpu::)?Interpreter::create\\s*\\(");
  int found = 0;
  for (const auto& [path, text] : product_sources()) {
    if (!std::regex_search(text, makes)) continue;
    ++found;
    EXPECT_TRUE(kAllowed.contains(path)) << path << " makes an interpreter of its own: use cpu::Evaluator, or "
                                         << "cpu::prepared (execute/cpu/evaluate.h)";
  }
  EXPECT_EQ(found, static_cast<int>(kAllowed.size())) << "a file on the list makes none any more, or was moved";
}

// The release with known defects is for those who ask for it by name.
TEST(Structure, NobodyButTheUserAsksForTheOldRelease) {
  const std::map<std::string, std::string> kAllowed = {
      {"apps/reef/cmd_run.cpp", "--tflite 2.9"},
      {"apps/reef/cmd_eval.cpp", "--tflite 2.9"},
      {"bindings/c/interpreter.cpp", "reef_options.tflite_2_9"},
  };
  for (const auto& [path, text] : product_sources()) {
    if (path.starts_with("src/ops/")) continue;  // kernels ask which release is wanted
    EXPECT_TRUE(text.find("k2_9") == std::string::npos || kAllowed.contains(path)) << path;
  }
}

// CLI11's header costs three seconds a file: command.h stands in front of it.
TEST(Structure, OneFileIncludesTheCommandLineParser) {
  for (const auto& [path, text] : product_sources()) {
    EXPECT_TRUE(text.find("#include <CLI/") == std::string::npos || path == "apps/reef/command.cpp") << path;
  }
}

// ir::Uses says who computes and who reads a tensor of a model that stays as it is. Others keep their index up to date
// while the graph changes, or index something else.
TEST(Structure, ProducersAreIndexedInOnePlace) {
  const std::map<std::string, std::string> kAllowed = {
      {"src/ir/uses.h", "the index"},
      {"src/graph/graph.h", "the editor: changes with every edit"},
      {"src/import/onnx/graph_builder.h", "grows with every operator, and computes shapes and constants on the way"},
  };
  const std::regex member("std::(vector|map)<[^;]*>\\s+(producers?|makers?)_;");
  for (const auto& [path, text] : product_sources()) {
    EXPECT_TRUE(!std::regex_search(text, member) || kAllowed.contains(path)) << path << ": use ir::Uses (ir/uses.h)";
  }
}

// graph::Graph changes graphs, graph::Appender adds to them, and the importer builds one from nothing. Other files of
// the stages that add tensors to a model by themselves are listed with their reason, so that the next editor is a
// decision.
TEST(Structure, GraphsAreEditedInOnePlace) {
  const std::map<std::string, std::string> kAllowed = {
      {"src/graph/graph.cpp", "the editor"},
      {"src/graph/appender.cpp", "adds operators at the end"},
      {"src/import/onnx/graph_builder.cpp", "builds a model from nothing, with shapes and constants computed"},
      {"src/passes/chip/unary_function.cpp", "copies operators into a miniature of 256 values"},
      {"src/quantize/fold_quantization.cpp", "gives a layer a float copy of its weights"},
      {"src/quantize/weights_only.cpp", "gives a layer a smaller copy of its weights"},
      {"src/quantize/selection_tail.cpp", "copies operators of one model behind another"},
      {"src/quantize/recover/convolve_uneven_layers.cpp", "gives a layer's weights the shape of a filter"},
      {"src/quantize/recover/correct_biases.cpp", "gives a layer a bias of its own"},
      {"src/learn/head_builder.cpp", "begins a head with its input"},
      {"src/learn/split.cpp", "joins two models"},
  };
  const std::regex adds("tensors\\.(push_back|emplace_back)\\s*\\(");
  const std::regex stage("src/(graph|import|passes|quantize|learn)/.*");
  int found = 0;
  for (const auto& [path, text] : product_sources()) {
    if (!std::regex_match(path, stage) || path.ends_with("/test_graph.h") || !std::regex_search(text, adds)) continue;
    ++found;
    EXPECT_TRUE(kAllowed.contains(path)) << path << ": use graph::Graph, or graph::Appender";
  }
  EXPECT_EQ(found, static_cast<int>(kAllowed.size())) << "a file on the list adds none any more, or was moved";
}

// One list of passes: a pass that is not in it never runs, and one that is defined twice does not link.
TEST(Structure, EveryPassIsListed) {
  const std::regex defines("constinit const Pass (\\w+)_(shape|float|chip)_pass\\b");
  const std::map<std::string, std::string> sources = product_sources();
  std::stringstream listed;
  listed << std::ifstream(fs::path(REEF_SOURCE_DIR) / "src/passes/passes.def").rdbuf();
  int found = 0;
  for (const auto& [path, text] : sources) {
    std::smatch match;
    if (!std::regex_search(text, match, defines)) continue;
    ++found;
    const std::string stage = match[2], name = match[1];
    EXPECT_EQ(path, "src/passes/" + stage + "/" + name + ".cpp");
    EXPECT_NE(listed.str().find("REEF_PASS(" + stage + ", " + name + ")"), std::string::npos) << path;
  }
  EXPECT_GT(found, 60);
}

std::set<std::string> op_names() {
  std::set<std::string> names;
  for (const ops::OpDef* def : ops::all_ops()) names.insert(std::string(def->name));
  return names;
}

// Lists of four and more names of ops, one after the other. What holds for ops of a kind belongs into their definitions
// (ops::Form and the other fields of OpDef), where an op that is added later has it, too.
TEST(Structure, ListsOfOpNamesBecomeFewer) {
  constexpr int kMostLists = 22, kLongEnough = 4;
  const std::set<std::string> known = op_names();
  const std::regex run("\"[A-Z0-9_]+\"([\\s,{}]*\"[A-Z0-9_]+\")+"), word("\"([A-Z0-9_]+)\"");
  int lists = 0;
  std::string where;
  for (const auto& [path, text] : product_sources()) {
    if (path.starts_with("src/ops/")) continue;
    for (std::sregex_iterator at(text.begin(), text.end(), run), end; at != end; ++at) {
      const std::string found = at->str();
      int names = 0;
      for (std::sregex_iterator name(found.begin(), found.end(), word); name != end; ++name) {
        names += known.contains((*name)[1].str()) ? 1 : 0;
      }
      if (names < kLongEnough) continue;
      ++lists;
      where += "\n  " + path;
    }
  }
  EXPECT_LE(lists, kMostLists) << where;
}

}  // namespace
}  // namespace reef
