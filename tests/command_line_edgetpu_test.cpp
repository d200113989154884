// SPDX-License-Identifier: Apache-2.0
// inspect, disasm and asm on a compiled model, as a user meets them. The model is made here; its programs do nothing.
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "command_line.h"
#include "formats/darwinn/reader.h"
#include "formats/darwinn/sample_packages.h"
#include "formats/darwinn/writer.h"
#include "formats/tflite/writer.h"
#include "isa/assembler.h"
#include "runtime/sample_runnable.h"

namespace reef::testing {
namespace {

constexpr std::string_view kRunning = R"(
start
ring_receive_b tiles=all
  out wide line 2078: for x1 +1
multiply_add tiles=all
  loops x4
  set cells=16 scale=0.5 static_params in_zero=3
ring_send tiles=5 channel=b to_tiles=all
  in wide line 7: for x2 +1
halt
end
)";
constexpr std::string_view kCaching = R"(
start
ring_receive_a tiles=5
  out wide line 7: for x2 +1
pop source=parameters to_tiles=5 line_words=16
  in buffer unit 0: for x2 +1
halt
end
)";

constexpr std::string_view kFilling = R"(
start
mesh_north tiles=5 fill fill_value=0x04030201
  out narrow word 2: for x2 +1
halt
end
)";
constexpr std::string_view kNothing = "start\nhalt\nend\n";

Bytes encoded(std::string_view text) {
  const auto program = isa::assemble(text);
  EXPECT_TRUE(program.ok()) << program.status().message();
  return program.ok() ? Bytes(isa::encode(*program)) : Bytes();
}

std::vector<std::uint8_t> compiled_model(std::string_view running = kRunning, std::string_view caching = kCaching) {
  darwinn::CustomOptions options = darwinn::testing::make_options();
  options.package.executables[0].instruction_chunks[0] = {.bitstream = encoded(running), .field_offsets = {}};
  options.package.executables[1].instruction_chunks[0] = {.bitstream = encoded(caching), .field_offsets = {}};
  options.package.executables[1].parameters = darwinn::testing::counted_bytes(128, 0);
  ir::Model model;
  model.version = 3;
  model.buffers.emplace_back();
  ir::Subgraph& graph = model.subgraphs.emplace_back();
  for (const char* name : {"input", "output"}) {
    ir::Tensor& tensor = graph.tensors.emplace_back();
    tensor.name = name;
    tensor.type = ir::DataType::kInt8;
    tensor.shape = ir::Shape({1, 2, 2, 3});
  }
  graph.tensors[1].shape = ir::Shape({1, 8});
  graph.inputs = {0};
  graph.outputs = {1};
  ir::Operator& op = graph.operators.emplace_back();
  op.type = darwinn::kCustomOpName;
  op.builtin_code = ir::kCustomBuiltinCode;
  op.inputs = {0};
  op.outputs = {1};
  op.custom_options = Bytes(darwinn::write_custom_options(options).value());
  return tflite::write_model(model).value();
}

class EdgeTpuCommandLine : public CommandLine {
 protected:
  EdgeTpuCommandLine() : model_((folder_ / "small_edgetpu.tflite").string()), listing_((folder_ / "small.s").string()) {
    EXPECT_TRUE(write_file(model_, compiled_model()).ok());
  }
  static std::string content(const std::string& path) {
    const auto file = read_file(path, 1 << 24);
    EXPECT_TRUE(file.ok()) << file.status().message();
    return file.ok() ? std::string(reinterpret_cast<const char*>(file->data()), file->size()) : "";
  }
  std::string model_, listing_;
};

TEST_F(EdgeTpuCommandLine, InspectShowsProgramsParametersAndPlaces) {
  const Outcome outcome = reef("inspect " + model_);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  for (const char* part :
       {"compiled for the Edge TPU: 1 op; left to the CPU: none", "EXECUTION_ONLY", "PARAMETER_CACHING",
        "128 B at 0 in tile 5 lines 7-8", "128 bytes at        0: tile  5 lines 7-8"}) {
    EXPECT_NE(outcome.text.find(part), std::string::npos) << part << " is not in\n" << outcome.text;
  }
}

TEST_F(EdgeTpuCommandLine, InspectJsonHoldsThePackage) {
  const Outcome outcome = reef("inspect --json " + model_);
  const auto json = nlohmann::json::parse(outcome.text, nullptr, false);
  ASSERT_TRUE(json.is_object()) << outcome.text;
  const auto& package = json["subgraphs"][0]["operators"][0]["edge_tpu_package"];
  ASSERT_TRUE(package.contains("executables")) << package.dump(2);
  const auto& step = package["executables"][0]["computation"][0];
  EXPECT_EQ(step["scale"], 0.5);
  EXPECT_EQ(step["parameters"][0]["tile"], 5);
  EXPECT_EQ(package["executables"][1]["cached"][0]["first_line"], 7);
}

TEST_F(EdgeTpuCommandLine, InspectSaysWhatIsWrongWithADamagedPackage) {
  std::string bytes = content(model_);
  const std::size_t chip = bytes.find("beagle");
  ASSERT_NE(chip, std::string::npos);
  bytes[chip] = 'B';
  ASSERT_TRUE(write_file(model_, bytes).ok());
  const Outcome outcome = reef("inspect " + model_);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.text.find("Beagle"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("output"), std::string::npos) << "the graph is shown all the same";
  EXPECT_EQ(reef("disasm " + model_).exit_code, 1);
}

TEST_F(EdgeTpuCommandLine, DisassembledAndAssembledIsTheSameFile) {
  ASSERT_EQ(reef("disasm " + model_ + " -o " + listing_).exit_code, 0);
  const std::string again = (folder_ / "again_edgetpu.tflite").string();
  const Outcome outcome = reef("asm " + listing_ + " -o " + again);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(content(model_) == content(again));
}

TEST_F(EdgeTpuCommandLine, AnEditedListingChangesTheProgram) {
  ASSERT_EQ(reef("disasm " + model_ + " -o " + listing_).exit_code, 0);
  std::string text = content(listing_);
  const std::size_t scale = text.find("scale=0.5");
  ASSERT_NE(scale, std::string::npos) << text;
  text.replace(scale, 9, "scale=0.25");
  ASSERT_TRUE(write_file(listing_, text).ok());
  const std::string changed = (folder_ / "changed_edgetpu.tflite").string();
  ASSERT_EQ(reef("asm " + listing_ + " -o " + changed).exit_code, 0);
  EXPECT_EQ(content(changed).size(), content(model_).size());
  EXPECT_NE(reef("inspect " + changed).text.find("scale 0.25"), std::string::npos);
}

TEST_F(EdgeTpuCommandLine, BareInstructionsGoBothWays) {
  ASSERT_EQ(reef("disasm " + model_ + " --only CACHING -o " + listing_).exit_code, 0);
  const std::string bare = (folder_ / "bare.bin").string(), again = (folder_ / "again.bin").string();
  ASSERT_EQ(reef("asm " + listing_ + " --raw -o " + bare).exit_code, 0);
  EXPECT_EQ(content(bare).size() % 16, 0u);
  ASSERT_EQ(reef("disasm " + bare + " -o " + listing_).exit_code, 0);
  ASSERT_EQ(reef("asm " + listing_ + " -o " + again).exit_code, 0);
  EXPECT_TRUE(content(bare) == content(again));
}

TEST_F(EdgeTpuCommandLine, AsmRefusesWithAReason) {
  const std::string out = (folder_ / "out.tflite").string();
  ASSERT_EQ(reef("disasm " + model_ + " -o " + listing_).exit_code, 0);
  EXPECT_NE(reef("asm --raw " + listing_ + " -o " + out).text.find("--only"), std::string::npos);
  std::string bytes = content(model_);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_TRUE(write_file(model_, bytes).ok());
  const Outcome changed = reef("asm " + listing_ + " -o " + out);
  EXPECT_EQ(changed.exit_code, 1);
  EXPECT_NE(changed.text.find("SHA-256"), std::string::npos) << changed.text;
  std::filesystem::remove(model_);
  const Outcome missing = reef("asm " + listing_ + " -o " + out);
  EXPECT_NE(missing.text.find("--container"), std::string::npos) << missing.text;
  ASSERT_TRUE(write_file(listing_, std::string_view("start\nfrobnicate\n")).ok());
  const Outcome wrong = reef("asm " + listing_ + " -o " + out);
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.text.find("line 2"), std::string::npos) << wrong.text;
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_EQ(reef("disasm " REEF_SOURCE_DIR "/models/reef_creatures_int8.tflite").exit_code, 1);
}

TEST_F(EdgeTpuCommandLine, RunStopsAtAnInstructionAndShowsTheChip) {
  ASSERT_TRUE(write_file(model_, compiled_model(kFilling, kNothing)).ok());
  const std::string out = (folder_ / "state").string();
  const std::string run = "run --device virtual " + model_ + " --dump-tile 5 --out " + out + " --stop-at ";
  const Outcome text = reef(run + "1");
  ASSERT_EQ(text.exit_code, 0) << text.text;
  for (const char* part : {"stopped: row 1 (mesh_north) is finished by tiles 5", "01 02 03 04  01 02 03 04",
                           "narrow memory: 8 of 196608 bytes are known; bytes 8-15"}) {
    EXPECT_NE(text.text.find(part), std::string::npos) << part << " is not in\n" << text.text;
  }
  const Outcome outcome = reef(run + "1 --json");
  const auto json = nlohmann::json::parse(outcome.text, nullptr, false);
  ASSERT_TRUE(json.is_object()) << outcome.text;
  const auto& tile = json["stopped_at"]["tile_states"][5];
  ASSERT_TRUE(tile.contains("memories")) << outcome.text;
  EXPECT_EQ(tile["memories"][0]["known"], nlohmann::json({{8, 15}}));
  EXPECT_EQ(content(tile["memories"][0]["file"]).size(), 128 + 196608u);
  const Outcome inside = reef(run + "2");
  EXPECT_EQ(inside.exit_code, 1);
  EXPECT_NE(inside.text.find("it belongs to row 1 (mesh_north)"), std::string::npos) << inside.text;
  EXPECT_EQ(reef("run " + model_ + " --device cpu --stop-at 0").exit_code, 1);
}

TEST_F(EdgeTpuCommandLine, RunSimulatesTime) {
  const auto layer = runtime::testing::sample_weights();
  ASSERT_TRUE(write_file(model_, tflite::write_model(runtime::testing::compiled_from(layer)).value()).ok());
  const std::string run = "run --device virtual " + model_;
  const Outcome text = reef(run + " --link pcie --clock 250");
  ASSERT_EQ(text.exit_code, 0) << text.text;
  for (const char* part : {"(simulated, 250 MHz, PCIe", "critical path", "units at work", "over the link"}) {
    EXPECT_NE(text.text.find(part), std::string::npos) << part << " is not in\n" << text.text;
  }
  const std::string trace = (folder_ / "trace.json").string();
  const Outcome outcome = reef(run + " --trace " + trace + " --json");
  const auto json = nlohmann::json::parse(outcome.text, nullptr, false);
  ASSERT_TRUE(json.is_object() && json.contains("edge_tpu")) << outcome.text;
  const auto& time = json["edge_tpu"].back();
  EXPECT_EQ(time["kind"], "simulated");
  EXPECT_GT(time["ms"].get<double>(), 0.256);
  double sum = 0;
  for (const auto& part : time["critical_path_ms"]) sum += part.get<double>();
  EXPECT_NEAR(sum, time["ms"].get<double>(), 1e-3);
  const auto events = nlohmann::json::parse(content(trace), nullptr, false);
  ASSERT_TRUE(events.is_object() && events.contains("traceEvents"));
  EXPECT_GT(events["traceEvents"].size(), 200u);
  const Outcome wrong = reef(run + " --link carrier-pigeon");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.text.find("usb3"), std::string::npos) << wrong.text;
  EXPECT_EQ(reef("run " + model_ + " --races").exit_code, 1);
}

TEST_F(EdgeTpuCommandLine, RunFindsRaces) {
  // This program pops parameters without waiting for them, and gets away with it only where time is not looked at.
  const auto layer = runtime::testing::sample_weights();
  ASSERT_TRUE(write_file(model_, tflite::write_model(runtime::testing::compiled_from(layer)).value()).ok());
  const Outcome outcome = reef("run --device virtual " + model_ + " --races");
  EXPECT_EQ(outcome.exit_code, 1);
  for (const char* part : {"race", "parameter FIFO", "(pop) reads what", "(infeed) wrote", "cycles too early"}) {
    EXPECT_NE(outcome.text.find(part), std::string::npos) << part << " is not in\n" << outcome.text;
  }
}

TEST_F(EdgeTpuCommandLine, RunGivesLayersByName) {
  const auto layer = runtime::testing::sample_weights();
  const std::string source = (folder_ / "source.tflite").string(), out = (folder_ / "layers").string();
  ASSERT_TRUE(write_file(model_, tflite::write_model(runtime::testing::compiled_from(layer)).value()).ok());
  ASSERT_TRUE(write_file(source, tflite::write_model(retarget::testing::sample_model(layer)).value()).ok());
  const std::string run = "run --device virtual " + model_ + " --source " + source + " --out " + out;
  const Outcome text = reef(run + " --layers all");
  ASSERT_EQ(text.exit_code, 0) << text.text;
  EXPECT_NE(text.text.find("layers as the chip computed them: 1 of 1 tensors"), std::string::npos) << text.text;
  const Outcome outcome = reef(run + " --layers out --json");
  const auto json = nlohmann::json::parse(outcome.text, nullptr, false);
  ASSERT_TRUE(json.is_object() && json.contains("layers")) << outcome.text;
  EXPECT_EQ(json["layers"][0]["name"], "out");
  EXPECT_EQ(json["layers"][0]["state"], "computed");
  // A header of 128 bytes, and the bytes of the output.
  EXPECT_EQ(content(json["layers"][0]["file"]).substr(128), content(out + "/out0.bin"));
  const Outcome unknown = reef(run + " --layers nonsense");
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.text.find("the source has no tensor 'nonsense'"), std::string::npos) << unknown.text;
  const Outcome no_source = reef("run --device virtual " + model_ + " --layers all");
  EXPECT_EQ(no_source.exit_code, 1);
  EXPECT_NE(no_source.text.find("--layers needs --source"), std::string::npos) << no_source.text;
  const Outcome other = reef("run --device virtual " + model_ + " --layers all --source " + model_);
  EXPECT_EQ(other.exit_code, 1) << other.text;
}

TEST_F(CommandLine, InspectListsWhatNoPublicFileHas) {
  const std::string unusual = R"(
start
scalar set store=5
scalar r3 = mov 1 | set raw_48=0x1
scalar r3 = mov 1 | set raw_48=0x1
multiply_add tiles=all
  loops x4
  set cells=16 scale=0.5 static_params in_zero=3
halt
end
)";
  const auto write = [&](const char* name, const std::vector<std::uint8_t>& bytes) {
    const std::string path = (folder_ / name).string();
    EXPECT_TRUE(write_file(path, bytes).ok());
    return path;
  };
  const std::string odd = write("odd_edgetpu.tflite", compiled_model(unusual));
  const Outcome listed = reef("inspect --unknown " + odd);
  EXPECT_EQ(listed.exit_code, 0) << listed.text;
  for (const char* part : {"3 things", "row 1 (scalar): scalar: an unknown store 5", "refuses the file", "store = 5",
                           "6 (store_register_step) in ", "row 2 (scalar): scalar: raw_48 = 1 (2 times)",
                           "seen: always 0x0", "attach the file"}) {
    EXPECT_NE(listed.text.find(part), std::string::npos) << part << " is not in\n" << listed.text;
  }
  const auto json = nlohmann::json::parse(reef("inspect --unknown --json " + odd).text, nullptr, false);
  ASSERT_TRUE(json.is_object() && json["unknown"].size() == 3) << json.dump();
  EXPECT_EQ(json["unknown"][0]["runs"], false);
  EXPECT_EQ(json["unknown"][1]["runs"], true);
  EXPECT_EQ(json["unknown"][2]["times"], 2);
  EXPECT_GE(json["public_files"].get<int>(), 100);
  const Outcome usual = reef("inspect --unknown " + write("usual_edgetpu.tflite", compiled_model(kNothing, kNothing)));
  EXPECT_NE(usual.text.find("nothing unknown in 2 programs"), std::string::npos) << usual.text;
}

}  // namespace
}  // namespace reef::testing
