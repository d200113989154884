// SPDX-License-Identifier: Apache-2.0
// Networks of which a part does not fit the chip, or has no code: something of them runs on the chip all the same, the
// file computes what the model says to the last bit, and `reef check` predicts the parts that `reef compile` makes.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "chip/links.h"
#include "command_line.h"
#include "compiler/check_file.h"
#include "compiler/compile.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "lower/builder.h"
#include "quantized_model.h"
#include "random_network.h"

namespace reef::testing {
namespace {

using compiler::CompiledFile;
using Json = nlohmann::json;

// Far apart, the rows and columns that a tile needs are those of all tiles, many times.
std::int32_t dilated(QuantizedModel& model, std::int32_t x, int channels, std::int64_t rate) {
  const std::int32_t y = model.conv(x, channels, 3);
  model.last_op().attributes.set("dilation_h_factor", rate);
  model.last_op().attributes.set("dilation_w_factor", rate);
  return y;
}

constexpr int kChannels = 256, kRate = 24;

// `before` convolutions, one that does not fit, `behind` convolutions.
ir::Model too_large_at(int before, int behind) {
  QuantizedModel model;
  std::int32_t x = model.input({1, 16, 16, kChannels});
  for (int i = 0; i < before; ++i) x = model.conv(x, kChannels, 1);
  x = dilated(model, x, kChannels, kRate);
  for (int i = 0; i < behind; ++i) x = model.conv(x, kChannels, 1);
  return model.finish({x});
}

ir::Model two_branches() {
  QuantizedModel model;
  const std::int32_t trunk = model.conv(model.input({1, 16, 16, kChannels}), kChannels, 1);
  const std::int32_t left = model.conv(dilated(model, trunk, kChannels, kRate), 16, 1);
  const std::int32_t right = model.conv(model.conv(trunk, kChannels, 3), 16, 1);
  return model.finish({left, right});
}

// Scores of several scales in one table, as SSD heads return them.
ir::Model detection_heads() {
  QuantizedModel model;
  const std::int32_t fine = model.conv(model.input({1, 20, 20, 16}), 32, 3);
  const std::int32_t coarse = model.conv(fine, 32, 3, 2);
  const std::int32_t a = model.reshape(model.conv(fine, 6 * 91, 1), {1, 2400, 91});
  const std::int32_t b = model.reshape(model.conv(fine, 6 * 91, 3), {1, 2400, 91});
  const std::int32_t c = model.reshape(model.conv(coarse, 6 * 91, 1), {1, 600, 91});
  return model.finish({model.concatenation({a, b, c}, 1)});
}

// The first layer of a network on patches: one kernel that needs more scratch than there is.
ir::Model patches() {
  QuantizedModel model;
  std::int32_t x = model.conv(model.input({1, 224, 224, 3}), 512, 32, 32);
  for (int i = 0; i < 2; ++i) x = model.conv(x, 64, 1);
  return model.finish({x});
}

class CutNetworks : public CommandLine {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Where a second part pays.
  static compiler::PlanOptions on_a_slow_host() {
    compiler::PlanOptions plan;
    plan.costs.link = chip::find_link("usb3-rpi4");
    return plan;
  }

  // Compiles and verifies; the file that was made.
  CompiledFile compiled(const ir::Model& model, const std::string& name,
                        compiler::CodeGenerator generate = compiler::generate_part) {
    EXPECT_TRUE(tflite::save_model(model, path(name + ".tflite")).ok());
    compiler::CompileOptions options;
    options.models = {path(name + ".tflite")};
    options.out_dir = folder_.string();
    options.plan = on_a_slow_host();
    options.verify = compiler::Verify::kAlways;
    options.generate = std::move(generate);
    const compiler::CompileResult result = compiler::compile(options);
    EXPECT_TRUE(result.ok()) << name << ": " << result.refusals[0].explanation;
    if (!result.ok()) return {};
    return result.runs[0].files[0];
  }
  void expect_runs(const CompiledFile& file, const std::string& name) {
    ASSERT_FALSE(file.ops.empty()) << name;
    EXPECT_TRUE(file.verified.done) << name << ": " << file.verified.why_not;
    EXPECT_GT(file.verified.comparison.values, 0) << name;
  }
  void expect_check_agrees(const CompiledFile& file, const std::string& name) {
    const auto checked = compiler::check_file(path(name + ".tflite"), on_a_slow_host());
    ASSERT_TRUE(checked.ok()) << checked.status().message();
    const auto& predicted = checked->plan.partition.parts;
    ASSERT_EQ(predicted.size(), file.ops.size()) << name;
    for (std::size_t i = 0; i < predicted.size(); ++i) EXPECT_EQ(predicted[i].ops, file.ops[i].part.ops) << name;
    const auto place = [](const partition::Partition& division) {
      std::vector<partition::Place> places;
      for (const partition::Placement& one : division.ops) places.push_back(one.place);
      return places;
    };
    EXPECT_EQ(place(checked->plan.partition), place(file.plan.partition)) << name;
  }
};

TEST_F(CutNetworks, SomethingRunsOnTheChipWhateverDoesNotFit) {
  const struct {
    const char* name;
    ir::Model model;
    std::int32_t at_least;  // operators on the chip
  } cases[] = {
      {"beginning", too_large_at(0, 4), 4}, {"middle", too_large_at(3, 3), 6}, {"end", too_large_at(4, 0), 4},
      {"branch", two_branches(), 3},        {"head", detection_heads(), 6},    {"scratch", patches(), 2},
  };
  for (const auto& one : cases) {
    const CompiledFile file = compiled(one.model, one.name);
    expect_runs(file, one.name);
    EXPECT_GE(file.plan.partition.chip_op_count(), one.at_least) << one.name;
    expect_check_agrees(file, one.name);
  }
}

// An operator in the middle that there is no code for, whatever Reef has code for one day.
TEST_F(CutNetworks, AnOperatorWithoutCodeInTheMiddleDoesNotTakeTheRestAlong) {
  QuantizedModel model;
  std::int32_t x = model.conv(model.input({1, 16, 16, 64}), 64, 3);
  x = model.logistic(x);
  for (int i = 0; i < 3; ++i) x = model.conv(x, 64, 3);
  const CompiledFile file = compiled(model.finish({x}), "net", [](const compiler::PartProgram& part) {
    for (const std::int32_t op : part.ops) {
      if (part.model.subgraphs[0].operators[static_cast<std::size_t>(op)].type != "LOGISTIC") continue;
      if (part.refused != nullptr) part.refused->push_back({op, "the test has none"});
      return Result<compiler::PartCode>(unsupported("the test has none"));
    }
    return compiler::generate_part(part);
  });
  expect_runs(file, "net");
  EXPECT_GE(file.plan.partition.chip_op_count(), 3);
  ASSERT_EQ(file.without_code.size(), 1u);
  EXPECT_EQ(file.without_code[0].reason, "the test has none");
}

// x * LOGISTIC(x) is marked to be one pass of the chip; the mark does not get into files where the CPU computes it.
TEST_F(CutNetworks, SiluThatStaysOnTheCpuIsWritten) {
  QuantizedModel model;
  std::int32_t x = model.conv(model.input({1, 16, 16, 32}), 32, 3);
  for (int i = 0; i < 2; ++i) {
    x = model.mul(x, model.logistic(x));
    for (int k = 0; k < 3; ++k) x = model.conv(x, 32, 3);
  }
  const CompiledFile file = compiled(model.finish({x}), "silu", [](const compiler::PartProgram& part) {
    for (const std::int32_t op : part.ops) {
      if (part.model.subgraphs[0].operators[static_cast<std::size_t>(op)].type != "MUL") continue;
      if (part.refused != nullptr) part.refused->push_back({op, "the test has none"});
      return Result<compiler::PartCode>(unsupported("the test has none"));
    }
    return compiler::generate_part(part);
  });
  expect_runs(file, "silu");
  EXPECT_FALSE(file.without_code.empty());
  for (const std::string& arguments :
       {"check " + path("silu.tflite") + " --write-rewritten " + path("rewritten.tflite"),
        "compile " + path("silu.tflite") + " --num_segments 2 -o " + folder_.string()}) {
    const Outcome outcome = reef(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << ": " << outcome.text;
  }
}

// Random networks on tiles that have little memory: parts fail at any place, for real reasons.
TEST_F(CutNetworks, RandomNetworksOnSmallTilesAreCutAndRun) {
  int cut = 0, made = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    const auto network = RandomNetwork::generate(
        seed, [](std::string_view op) { return lower::find_lowering(std::string(op)) != nullptr; });
    const std::optional<ir::Model> model = network.build();
    if (!model) continue;
    const CompiledFile file = compiled(*model, "random", [](const compiler::PartProgram& part) {
      compiler::GenerationOptions options;
      options.narrow_bytes = 4096;
      return compiler::generate_part_with(part, options);
    });
    if (file.ops.empty()) continue;
    ++made;
    cut += file.search.is_cut ? 1 : 0;
    EXPECT_TRUE(file.verified.done || !file.verified.comparison.is_whole) << network.to_string();
  }
  EXPECT_GE(made, 20);
  EXPECT_GE(cut, 3);
}

TEST_F(CutNetworks, TheSameModelGivesTheSameBytes) {
  const auto bytes = [&] {
    const CompiledFile file = compiled(two_branches(), "net");
    const auto data = read_file(file.output, 1 << 26);
    return std::vector<std::uint8_t>(data->span().begin(), data->span().end());
  };
  EXPECT_EQ(bytes(), bytes());
}

// ---- Nothing at all ----

TEST_F(CutNetworks, WhereNothingRunsOnTheChipTextJsonAndExitCodeSaySo) {
  QuantizedModel model;
  ASSERT_TRUE(tflite::save_model(model.finish({model.arg_max(model.input({1, 4, 4, 8}))}), path("m.tflite")).ok());
  const std::string in_folder = " -o " + folder_.string() + " " + path("m.tflite");
  const Outcome text = reef("compile" + in_folder);
  EXPECT_EQ(text.exit_code, 3);
  EXPECT_NE(text.text.find("Nothing of it runs on the Edge TPU"), std::string::npos) << text.text;
  EXPECT_NE(text.text.find("WARNING: "), std::string::npos) << text.text;
  EXPECT_EQ(text.text.find("compiled successfully"), std::string::npos) << text.text;
  EXPECT_EQ(text.text.find("Compilation succeeded"), std::string::npos) << text.text;
  EXPECT_EQ(text.text.find("verified"), std::string::npos) << text.text;
  const Outcome json = reef("compile --json" + in_folder + " 2>/dev/null");
  EXPECT_EQ(json.exit_code, 3);
  const Json object = Json::parse(json.text.substr(0, json.text.rfind('}') + 1), nullptr, false);
  ASSERT_FALSE(object.is_discarded()) << json.text;
  EXPECT_EQ(object["nothing_on_chip"], true);
  EXPECT_EQ(object["files"][0]["operations_on_chip"], 0);
  EXPECT_EQ(object["files"][0]["verified"], false);
  // Google's compiler reports success, and programs depend on that.
  const std::string googles = (std::filesystem::path(REEF_PROGRAM).parent_path() / "edgetpu_compiler").string();
  EXPECT_EQ(WEXITSTATUS(std::system((googles + in_folder + " >/dev/null 2>&1").c_str())), 0);
}

TEST_F(CutNetworks, WhatRunsOnTheChipExitsWithZero) {
  ASSERT_TRUE(tflite::save_model(detection_heads(), path("m.tflite")).ok());
  const Outcome json = reef("compile --json -o " + folder_.string() + " " + path("m.tflite") + " 2>/dev/null");
  EXPECT_EQ(json.exit_code, 0);
  const Json object = Json::parse(json.text.substr(0, json.text.rfind('}') + 1), nullptr, false);
  ASSERT_FALSE(object.is_discarded()) << json.text;
  EXPECT_EQ(object["nothing_on_chip"], false);
  EXPECT_GT(object["files"][0]["operations_on_chip"], 0);
  EXPECT_EQ(object["files"][0]["was_cut"], true);
}

// ---- --cache ----

// More parameters than the chip keeps: convolutions first, then a matrix that can only be used from its own tiles.
TEST_F(CutNetworks, CacheDecidesWhoseParametersStay) {
  QuantizedModel model;
  std::int32_t x = model.input({1, 4, 4, 256});
  for (int i = 0; i < 8; ++i) x = model.conv(x, 256, 3);
  x = model.fully_connected(model.reshape(x, {1, 4096}), 1024);
  ASSERT_TRUE(tflite::save_model(model.finish({x}), path("m.tflite")).ok());
  std::vector<std::string> files;
  std::vector<Json> reports;
  for (const char* policy : {"in-order", "least-time"}) {
    const Outcome outcome = reef(fmt::format("compile --json --verify --cache {} -o {} {} 2>/dev/null", policy,
                                             folder_.string(), path("m.tflite")));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
    reports.push_back(Json::parse(outcome.text.substr(0, outcome.text.rfind('}') + 1), nullptr, false)["files"][0]);
    EXPECT_EQ(reports.back()["verified"], true) << reports.back()["not_verified"];
    EXPECT_GT(reports.back()["memory"]["streamed_bytes"], 0) << policy;
    const auto data = read_file(path("m_edgetpu.tflite"), 1 << 26);
    ASSERT_TRUE(data.ok());
    files.emplace_back(data->span().begin(), data->span().end());
  }
  EXPECT_NE(files[0], files[1]);
  EXPECT_NE(reports[0]["memory"]["cached_bytes"], reports[1]["memory"]["cached_bytes"]);
  EXPECT_EQ(reef("compile --cache random " + path("m.tflite")).exit_code, 2);
}

}  // namespace
}  // namespace reef::testing
