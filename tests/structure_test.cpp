// SPDX-License-Identifier: Apache-2.0
// What the source tree promises about itself.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

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

// Names of ops in `text`, spelled as members of the enum or as literals.
int count_ops(const std::string& text, const std::set<std::string>& known) {
  const std::regex name("Op::(\\w+)|\"(\\w+)\"");
  int count = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) {
    count += known.contains((*at)[1].matched ? (*at)[1].str() : (*at)[2].str()) ? 1 : 0;
  }
  return count;
}

// Lists of four and more ops, and conditions that ask for five and more. What holds for ops of a kind belongs into
// their definitions (the form, traits and other fields of OpDef), where an op that is added later has it, too.
TEST(Structure, ListsOfOpsAreFewAndHaveReasons) {
  const std::map<std::string, std::string> kAllowed = {
      {"src/data/scaling_in_model.cpp", "stands below the definitions"},
      {"src/formats/darwinn/parameters/blob_candidates.cpp", "stands below the definitions"},
      {"src/lower/attention_plan.cpp", "moves that one function has formulas for"},
      {"src/passes/chip/float_arithmetic.cpp", "what the pass computes in integers"},
      {"src/passes/chip/inner_batch.cpp", "layers that work along rows"},
      {"src/passes/float/masks.cpp", "what makes infinities of numbers, and what values do not get through"},
      {"src/passes/float/sink_conversions.cpp", "others would tear patterns apart that later passes look for"},
      {"src/quantize/calibrate.cpp", "what equalize_streams can find in a stream"},
      {"src/quantize/recover/float_candidates.cpp", "what normalizations are written with"},
  };
  constexpr std::size_t kMostLists = 10;
  constexpr int kLongList = 4, kLongCondition = 5;
  const std::set<std::string> known = op_names();
  const std::string name = "(Op::\\w+|\"[A-Z0-9_]+\")";
  const std::regex list(name + "([\\s,{}]*" + name + ")+");
  const std::regex condition("[!=]= Op::\\w+(\\s*(\\|\\||&&)\\s*[\\w.()>-]+ [!=]= Op::\\w+)+");
  std::size_t lists = 0;
  std::set<std::string> have_one;
  for (const auto& [path, text] : product_sources()) {
    if (path.starts_with("src/ops/")) continue;
    for (const auto& [pattern, least] : {std::pair(&list, kLongList), {&condition, kLongCondition}}) {
      for (std::sregex_iterator at(text.begin(), text.end(), *pattern), end; at != end; ++at) {
        if (count_ops(at->str(), known) < least) continue;
        ++lists;
        have_one.insert(path);
        EXPECT_TRUE(kAllowed.contains(path)) << path << ": use a trait of the ops (ops/op_def.h): " << at->str();
      }
    }
  }
  EXPECT_EQ(have_one.size(), kAllowed.size()) << "a file on the list has none any more";
  EXPECT_LE(lists, kMostLists);
}

// A literal can be misspelt; Op::CONV_2D cannot. Activation functions have names of their own, and some ops have the
// same.
TEST(Structure, OpsAreComparedByTheEnum) {
  const std::set<std::string> known = op_names(),
                              activations = {"RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "TANH"};
  const std::regex comparison("([\\w.()>-]+) [!=]= \"(\\w+)\"");
  for (const auto& [path, text] : product_sources()) {
    if (path.ends_with("/test_graph.h")) continue;
    for (std::sregex_iterator at(text.begin(), text.end(), comparison), end; at != end; ++at) {
      const bool is_activation = activations.contains((*at)[2]) && !(*at)[1].str().ends_with("type");
      EXPECT_TRUE(is_activation || !known.contains((*at)[2])) << path << ": " << at->str();
    }
  }
}

// Forms give operands, shape inference and places (ops/op_def.h); a definition that says them again may say them
// wrongly.
TEST(Structure, OpsDoNotRepeatWhatTheirFormSays) {
  const std::regex unary("\\.elementwise = input_set\\(\\{0\\}\\)|\\.infer = infer_same_shape");
  const std::regex pair("\\.inputs = \\{2, 2\\}|\\.elementwise = input_set|\\.infer = infer_(broadcast|reduce)");
  int found = 0;
  for (const auto& [path, text] : product_sources()) {
    if (!path.starts_with("src/ops/") || !path.ends_with(".cpp") || text.find("define(") == std::string::npos) continue;
    const bool is_unary = text.find("Form::kUnary") != std::string::npos;
    const bool is_pair =
        text.find("Form::kBinary") != std::string::npos || text.find("Form::kReduction") != std::string::npos;
    found += is_unary || is_pair ? 1 : 0;
    EXPECT_FALSE(is_unary && std::regex_search(text, unary)) << path;
    EXPECT_FALSE(is_pair && std::regex_search(text, pair)) << path;
  }
  EXPECT_GT(found, 50);
}

// Lines of a source that can stand twice for a reason of their own are left out: comments, includes, names of
// namespaces, lines of punctuation and rows of tables.
std::vector<std::string> telling_lines(const std::string& text) {
  const std::regex thin(
      "(#include|#pragma|namespace|using |[^A-Za-z]*$|(public|private|protected|default):$|break;$).*");
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    line.erase(std::min(line.find("//"), line.size()));
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    line = line.substr(begin, line.find_last_not_of(' ') + 1 - begin);
    if (line.starts_with('.') || line.starts_with('{') || std::regex_match(line, thin)) continue;
    lines.push_back(line);
  }
  return lines;
}

// What is written a second time is mended in one place and forgotten in the other. kMostRuns states how many runs of
// six lines stand in several places today; it is to become smaller, never larger.
TEST(Structure, FewLinesStandTwice) {
  constexpr std::size_t kRun = 6;
  constexpr std::size_t kMostRuns = 35;
  std::map<std::string, std::set<std::string>> places;
  for (const auto& [path, text] : product_sources()) {
    if (path.find("/test_") != std::string::npos || path.find("/sample_") != std::string::npos) continue;
    const std::vector<std::string> lines = telling_lines(text);
    for (std::size_t i = 0; i + kRun <= lines.size(); ++i) {
      std::string run;
      for (std::size_t k = i; k < i + kRun; ++k) run += lines[k] + "\n";
      places[run].insert(path + ":" + std::to_string(i));
    }
  }
  std::size_t runs = 0;
  std::string examples;
  for (const auto& [run, where] : places) {
    if (where.size() < 2) continue;
    ++runs;
    examples += *where.begin() + " and " + *where.rbegin() + "\n";
  }
  EXPECT_LE(runs, kMostRuns) << "telling lines of these places (path:number) are the same:\n" << examples;
}

// The line in ops.def, the name in the definition and the name of its file belong together.
TEST(Structure, EveryOpHasTheNameOfItsLine) {
  const std::span<const ops::OpDef* const> all = ops::all_ops();
  ASSERT_EQ(all.size(), std::size(kOpNames));
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i]->name, kOpNames[i]);
}

}  // namespace
}  // namespace reef
