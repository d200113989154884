// SPDX-License-Identifier: Apache-2.0
// What a user meets first: verdicts, detectors shown as what they see, models and labels found by themselves, help, man
// pages and completions from one source, Coral's programs run as they are.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "command_line.h"
#include "formats/image/image.h"
#include "formats/tflite/writer.h"
#include "quantized_model.h"
#include "zoo.h"

namespace reef::testing {
namespace {

namespace fs = std::filesystem;

const std::string kModels = REEF_SOURCE_DIR "/models/";

class FrontOfHouse : public CommandLine {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  nlohmann::json json(const std::string& arguments) const {
    const Outcome outcome = reef(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << outcome.text;
    // Messages stand before it and behind it.
    const auto begin = outcome.text.find("{\n"), end = outcome.text.rfind("\n}");
    if (begin == std::string::npos || end == std::string::npos) return {};
    return nlohmann::json::parse(outcome.text.substr(begin, end + 2 - begin), nullptr, false);
  }
};

bool says(const Outcome& outcome, const std::string& words) { return outcome.text.find(words) != std::string::npos; }

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  return text.substr(text.rfind('\n', end) + 1, end - text.rfind('\n', end));
}

// ---- Verdicts ----

TEST_F(FrontOfHouse, FloatModelsAreJudgedAsIfQuantized) {
  for (const char* name : {"shapes_yolo.onnx", "cifar_resnet8.onnx", "reef_creatures_float.tflite"}) {
    const Outcome outcome = reef("check " + kModels + name);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    EXPECT_EQ(outcome.text.rfind("Once quantized: ", 0), 0u) << outcome.text;
    EXPECT_TRUE(says(outcome, "operators run on the Edge TPU")) << outcome.text;
    EXPECT_TRUE(says(outcome, "next         reef compile")) << outcome.text;
    EXPECT_TRUE(says(outcome, "--data SAMPLES")) << outcome.text;
    EXPECT_LT(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 40) << outcome.text;
  }
  EXPECT_TRUE(says(reef("check " + kModels + "shapes_yolo.onnx"), "--preprocess yolo"));
  const auto checked = json("check --json " + kModels + "cifar_resnet8.onnx");
  EXPECT_EQ(checked["quantized"], false);
  EXPECT_EQ(checked["judged_as_quantized"], true);
  EXPECT_EQ(checked["schema_version"], 1);
  EXPECT_EQ(checked["operators_on_edgetpu"], checked["operators"]);
  // What the compiler then makes is what was judged.
  const auto compiled = json("compile --json -o " + folder_.string() + " --data " + kModels +
                             "shapes --preprocess yolo " + kModels + "shapes_yolo.onnx");
  const auto judged = json("check --json " + kModels + "shapes_yolo.onnx");
  EXPECT_EQ(compiled["files"][0]["operations_on_chip"], judged["operators_on_edgetpu"]);
}

TEST_F(FrontOfHouse, TheVerdictComesFirstAndTheFiguresLast) {
  const std::string small = kModels + "reef_creatures_int8.tflite";
  const Outcome check = reef("check " + small);
  EXPECT_TRUE(check.text.rfind("Worth it: ", 0) == 0 || check.text.rfind("Not worth it over ", 0) == 0) << check.text;
  EXPECT_NE(last_line(check.text).find("next"), std::string::npos) << check.text;
  EXPECT_TRUE(says(check, " a second over USB 3, desktop host (estimated)")) << check.text;
  const Outcome compile = reef("compile " + small + " -o " + folder_.string());
  EXPECT_TRUE(says(compile, "verified     on the virtual Edge TPU: 8 values in 1 output match bit for bit"))
      << compile.text;
  EXPECT_TRUE(says(compile, "simulated")) << compile.text;
  EXPECT_FALSE(says(compile, "Edge TPU Compiler version")) << compile.text;
  EXPECT_NE(last_line(compile.text).find("next         reef run"), std::string::npos) << compile.text;
  const Outcome quantize = reef("quantize " + kModels + "reef_creatures_float.tflite --data " + kModels +
                                "images --preprocess unit -o " + path("q.tflite"));
  EXPECT_EQ(quantize.text.rfind("reef:", 0) == 0 || quantize.text.rfind("Good: ", 0) == 0, true) << quantize.text;
  EXPECT_TRUE(says(quantize, "tried ")) << quantize.text;
  EXPECT_FALSE(says(quantize, "ranges by mse ")) << quantize.text;              // only with -v
  EXPECT_TRUE(says(quantize, "\n  next       reef compile")) << quantize.text;  // warnings may follow it
  const Outcome run = reef("run " + small + " --image " + kModels + "images/crab_1.jpg");
  EXPECT_TRUE(says(run, "answer      crab 0.996")) << run.text;
  EXPECT_TRUE(says(run, "labels      from ")) << run.text;
}

TEST_F(FrontOfHouse, AllLinksAreOneTable) {
  const Outcome outcome = reef("check " + kModels + "reef_creatures_int8.tflite --link all");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  for (const char* link :
       {"usb3 ", "usb2 ", "usb3-rpi4 ", "pcie ", "pcie-devboard ", "usb3-rpi5 ", "usb3-n100 ", "usb2-mini "}) {
    EXPECT_TRUE(says(outcome, std::string("\n") + link)) << link << outcome.text;
  }
  EXPECT_TRUE(says(outcome, "(a guess)")) << outcome.text;
}

// A network that the chip makes slower is not called a success, whatever the share of its operators there.
TEST_F(FrontOfHouse, WhatIsNotWorthItIsSaidFirst) {
  QuantizedModel model;
  std::int32_t x = model.input({1, 4, 4, 8});
  x = model.conv(x, 8, 1);
  ASSERT_TRUE(tflite::save_model(model.finish({x}), path("tiny.tflite")).ok());
  const Outcome outcome = reef("check " + path("tiny.tflite"));
  EXPECT_EQ(outcome.text.rfind("Not worth it over USB 3, desktop host: ", 0), 0u) << outcome.text;
  EXPECT_TRUE(says(outcome, "x slower than the CPU alone")) << outcome.text;
}

// ---- What classifiers get right ----

TEST_F(FrontOfHouse, ClassifiersAreMeasuredWhereSamplesSayWhatIsRight) {
  // One folder for each class, whose order is that of the model's.
  for (const auto& picture : fs::directory_iterator(kModels + "images")) {
    const std::string name = picture.path().filename().string();
    const fs::path folder = fs::path(path("photos")) / name.substr(0, name.find('_'));
    fs::create_directories(folder);
    fs::copy_file(picture.path(), folder / name);
  }
  const std::string quantize = "quantize --json " + kModels + "reef_creatures_float.tflite --preprocess unit -o " +
                               path("creatures.tflite") + " --data ";
  const auto known = json(quantize + path("photos"));
  ASSERT_TRUE(known.contains("top1")) << known.dump(1);
  EXPECT_EQ(known["top1"]["samples"], 16);
  EXPECT_GT(known["top1"]["float"], 0.9);
  EXPECT_GT(known["top1"]["quantized"], 0.9);
  EXPECT_FALSE(json(quantize + kModels + "images").contains("top1"));  // nothing says which class is which number
}

// ---- What detectors see ----

TEST_F(FrontOfHouse, DetectorsShowThingsAndDrawThem) {
  const std::string scene = kModels + "scenes/scene_1.jpg";
  const Outcome outcome =
      reef("run " + kModels + "reef_detector_int8.tflite --image " + scene + " --draw " + path("out.png"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(says(outcome, "boxes as x0 y0 x1 y1 in pixels of the picture")) << outcome.text;
  const auto drawn = image::load(path("out.png"), 3), given = image::load(scene, 3);
  ASSERT_TRUE(drawn.ok() && given.ok());
  EXPECT_EQ(drawn->width, 3 * given->width);  // 240 x 200 would be too small for legible names
  EXPECT_NE(drawn->samples, given->samples);
  const auto found = json("run --json " + kModels + "reef_detector_int8.tflite --image " + scene)["found"]["things"];
  ASSERT_GT(found.size(), 0u);
  for (const auto& thing : found) {
    EXPECT_GE(thing["score"], 0.25);
    EXPECT_TRUE(thing.contains("label"));
    EXPECT_LT(thing["box"][0], thing["box"][2]);
    EXPECT_LE(thing["box"][2], given->width);
  }
  EXPECT_TRUE(says(reef("run --raw " + kModels + "reef_detector_int8.tflite --image " + scene), "output 0 '"));
}

// The truth of the shipped pictures is known: each thing is found, by the float YOLO and by what is compiled of it.
TEST_F(FrontOfHouse, AYoloFindsWhatIsThere) {
  const std::string model = kModels + "shapes_yolo.onnx";
  ASSERT_EQ(
      reef("compile " + model + " --data " + kModels + "shapes --preprocess yolo -o " + folder_.string()).exit_code, 0);
  for (const std::string& file : {model, path("shapes_yolo_int8_edgetpu.tflite")}) {
    int right = 0, all = 0;
    for (const char* name : {"shapes_03", "shapes_05", "shapes_08"}) {
      const auto found = json("run --json --preprocess yolo " + file + " --image " + kModels + "shapes/" + name +
                              ".jpg --labels " + kModels + "shapes_yolo_labels.txt")["found"]["things"];
      std::ifstream truth(kModels + "shapes/" + name + std::string(".txt"));
      int label = 0;
      for (double cx, cy, w, h; truth >> label >> cx >> cy >> w >> h; ++all) {
        for (const auto& thing : found) {
          const double x = (thing["box"][0].get<double>() + thing["box"][2].get<double>()) / 2 / 128;
          const double y = (thing["box"][1].get<double>() + thing["box"][3].get<double>()) / 2 / 128;
          if (thing["class"] == label && std::abs(x - cx) < 0.08 && std::abs(y - cy) < 0.08) {
            ++right;
            break;
          }
        }
      }
    }
    EXPECT_GE(right, all - 1) << file;
    EXPECT_GE(all, 5);
  }
}

TEST_F(FrontOfHouse, AQuantizedDetectorIsJudgedByItsBoxes) {
  const Outcome outcome = reef("quantize " + kModels + "shapes_yolo.onnx --data " + kModels +
                               "shapes --preprocess yolo -o " + path("yolo.tflite"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(says(outcome, "detector finds ")) << outcome.text;
  EXPECT_TRUE(says(outcome, " boxes kept")) << outcome.text;
}

TEST_F(FrontOfHouse, SegmentersNameTheirSegments) {
  const Outcome outcome = reef("run " + kModels + "reef_segmenter_int8.tflite --image " + kModels +
                               "scenes/scene_2.jpg --draw " + path("s.png"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(says(outcome, "segments, by their share of the picture:\n  water ")) << outcome.text;
  EXPECT_TRUE(fs::exists(path("s.png")));
}

// ---- Pictures ----

TEST_F(FrontOfHouse, DamagedPicturesAreLeftOutByName) {
  fs::create_directories(path("mixed"));
  for (const char* name : {"crab_1.jpg", "fish_1.jpg", "turtle_1.jpg", "shell_1.jpg"}) {
    fs::copy_file(kModels + "images/" + name, path("mixed/") + name);
  }
  std::ofstream(path("mixed/aaa_broken.jpg")) << "no picture";
  std::ifstream whole(kModels + "images/fish_2.jpg", std::ios::binary);
  std::ostringstream bytes;
  bytes << whole.rdbuf();
  std::ofstream(path("mixed/cut.png"), std::ios::binary) << "\x89PNG\r\n\x1a\n and nothing more";
  const Outcome outcome = reef("quantize " + kModels + "reef_creatures_float.tflite --data " + path("mixed") +
                               " --preprocess unit -o " + path("o.tflite"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(says(outcome, "2 left out as damaged: aaa_broken.jpg, cut.png")) << outcome.text;
}

// Pixels from 0 to 255, where the model was trained with 0 to 1: it is sure of the same few classes whatever it is
// shown.
TEST_F(FrontOfHouse, WrongPreprocessingIsNoticed) {
  const std::string quantize =
      "quantize " + kModels + "reef_creatures_float.tflite --data " + kModels + "images -o " + path("o.tflite");
  const Outcome outcome = reef(quantize);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(says(outcome, "preprocessing is a guess")) << outcome.text;
  // Whatever the first guess is, the right one is taken.
  EXPECT_TRUE(says(outcome, "preprocessing: scale=1/255 (")) << outcome.text;
  EXPECT_FALSE(says(reef(quantize + " --preprocess unit"), "probably wrong"));
  for (const char* wrong : {"none", "caffe"}) {
    const Outcome warned = reef(quantize + " --preprocess " + wrong);
    EXPECT_TRUE(says(warned, "is probably wrong: with --preprocess unit")) << warned.text;
    EXPECT_TRUE(says(warned, "next       the same with --preprocess unit")) << warned.text;
  }
}

// Networks that were trained with numbers from -1 to 1, and samples without labels.
TEST_F(FrontOfHouse, TheLikelyPresetIsTaken) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  for (const char* name : {"cifar_resnet8", "cifar_mobilenetv2"}) {
    const Outcome outcome =
        reef(fmt::format("quantize {}/onnx/{}.onnx --data {}/data/cifar10_eval.npz --limit 40 --held-back 0 -o {}", zoo,
                         name, zoo, path("o.tflite")));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    EXPECT_TRUE(says(outcome, "the float model does best with tf")) << outcome.text;
    EXPECT_TRUE(says(outcome, "preprocessing: mean=127.5,std=127.5 (")) << outcome.text;
  }
}

// A recurrent network that its rewrites would bring to the chip, and make slower.
TEST_F(FrontOfHouse, RewritesThatCostTimeAreNotMade) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const std::string model = zoo + "/onnx/fashion_gru.onnx";
  const Outcome usual = reef("check " + model), forced = reef("check --all-rewrites " + model);
  EXPECT_TRUE(says(usual, "are not made because the model would take")) << usual.text;
  EXPECT_TRUE(says(usual, "Once quantized: Not worth it")) << usual.text;
  EXPECT_FALSE(says(forced, "are not made because")) << forced.text;
  const auto fast = json("check --json " + model), slow = json("check --json --all-rewrites " + model);
  EXPECT_LT(fast["predicted_ms"], slow["predicted_ms"]);
}

// ---- The command line ----

std::string help_at(int columns, const std::string& command) {
  const std::string line = fmt::format("env COLUMNS={} {} {} --help 2>&1", columns, REEF_PROGRAM, command);
  std::FILE* pipe = ::popen(line.c_str(), "r");
  std::array<char, 4096> chunk{};
  std::string text;
  for (std::size_t n; (n = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) text.append(chunk.data(), n);
  EXPECT_EQ(::pclose(pipe), 0);
  return text;
}

// The commands that stand under the headings "Commands" or "Start here" and the like, each line's first word.
std::vector<std::string> commands_in(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream lines(help);
  bool is_list = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != ' ') is_list = line.back() == ':' && line != "Options:" && line != "Arguments:";
    if (line.rfind("Example", 0) == 0) return names;
    std::istringstream words(line);
    std::string name;
    if (is_list && line.rfind("  ", 0) == 0 && line[2] != ' ' && words >> name && name[0] != '-') names.push_back(name);
  }
  return names;
}

// The example commands as a shell reads them: lines that end in a backslash joined, spaces made single.
std::vector<std::string> examples_in(const std::string& help) {
  std::vector<std::string> commands;
  std::istringstream lines(help);
  bool are_examples = false, goes_on = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] != ' ') {
      are_examples = line == "Example:" || line == "Examples:";
      continue;
    }
    if (!are_examples) continue;
    if (!goes_on) commands.emplace_back();
    goes_on = line.back() == '\\';
    if (goes_on) line.pop_back();
    std::istringstream words(line);
    for (std::string word; words >> word;) commands.back() += (commands.back().empty() ? "" : " ") + word;
  }
  EXPECT_FALSE(goes_on) << help;
  return commands;
}

TEST_F(FrontOfHouse, EveryCommandHasExamplesThatCanBeCopiedAtAnyWidth) {
  std::vector<std::string> commands = {""};
  for (const std::string& name : commands_in(help_at(110, ""))) {
    commands.push_back(name);
    if (name == "help") continue;  // lists the program's own commands
    for (const std::string& sub : commands_in(help_at(110, name))) commands.push_back(name + " " + sub);
  }
  EXPECT_GE(commands.size(), 28U);
  for (const std::string& command : commands) {
    const std::vector<std::string> wanted = examples_in(help_at(110, command));
    EXPECT_FALSE(wanted.empty()) << "reef " << command << " --help has no example";
    for (const std::string& example : wanted) {
      std::ofstream(path("example.sh")) << example << "\n";
      EXPECT_EQ(std::system(("bash -n " + path("example.sh")).c_str()), 0) << example;
      EXPECT_NE((" " + example).find(" reef "), std::string::npos) << example;
    }
    for (const int columns : {40, 57, 80}) EXPECT_EQ(examples_in(help_at(columns, command)), wanted) << command;
  }
}

TEST_F(FrontOfHouse, HelpIsWrappedAndGrouped) {
  for (const int columns : {50, 80, 110}) {
    for (const char* command : {"", "compile", "run", "quantize", "learn imprint", "virtual-usb"}) {
      std::istringstream lines(help_at(columns, command));
      for (std::string text; std::getline(lines, text);) {
        // One word alone may be longer: a path, a command of an example.
        const bool is_one_word = text.find(' ', text.find_first_not_of(' ')) == std::string::npos;
        EXPECT_TRUE(text.size() <= static_cast<std::size_t>(columns) || is_one_word) << command << ": " << text;
      }
    }
  }
  const Outcome help = reef("compile --help");
  for (const char* heading : {"\nArguments:\n", "\nOptions:\n", "\nSamples:\n", "\nQuantizing:\n", "\nLimits:\n"}) {
    EXPECT_TRUE(says(help, heading)) << heading << help.text;
  }
}

TEST_F(FrontOfHouse, PagesAndCompletionsKnowEveryCommand) {
  const Outcome written = reef("man -o " + path("man1"));
  EXPECT_EQ(written.exit_code, 0) << written.text;
  const Outcome help = reef("--help");
  const std::string bash = reef("completion bash").text, fish = reef("completion fish").text;
  ASSERT_NE(help.text.find("Start here:"), std::string::npos) << help.text;
  std::istringstream lines(help.text.substr(help.text.find("Start here:")));
  int commands = 0;
  for (std::string line; std::getline(lines, line) && line.find("Options:") == std::string::npos;) {
    std::istringstream words(line);
    std::string name;
    if (line.rfind("  ", 0) != 0 || line[2] == ' ' || !(words >> name)) continue;
    ++commands;
    EXPECT_TRUE(fs::exists(path("man1/reef-" + name + ".1"))) << name;
    EXPECT_NE(bash.find("'" + name + "')"), std::string::npos) << name;
    EXPECT_NE(fish.find(" -a " + name + " "), std::string::npos) << name;
  }
  EXPECT_GE(commands, 18);
  std::ofstream(path("reef.bash")) << bash;
  std::ofstream(path("reef.fish")) << fish;
  EXPECT_EQ(std::system(("bash -n " + path("reef.bash")).c_str()), 0);
  // What bash proposes.
  const std::string ask =
      "bash -c 'source " + path("reef.bash") +
      "; COMP_WORDS=(reef compile --no); COMP_CWORD=2; _reef; printf \"%s\\n\" \"${COMPREPLY[@]}\"; "
      "COMP_WORDS=(reef quantize --mode int); COMP_CWORD=3; _reef; printf \"%s\\n\" \"${COMPREPLY[@]}\"; "
      "COMP_WORDS=(reef help ver); COMP_CWORD=2; _reef; printf \"%s\\n\" \"${COMPREPLY[@]}\"; "
      "COMP_WORDS=(reef co); COMP_CWORD=1; _reef; printf \"%s\\n\" \"${COMPREPLY[@]}\"' > " +
      path("answers");
  EXPECT_EQ(std::system(ask.c_str()), 0);
  std::ifstream file(path("answers"));
  std::ostringstream answers;
  answers << file.rdbuf();
  for (const char* word : {"--no-verify\n", "--no-rewrites\n", "int8\n", "int16x8\n", "compile\n", "compare\n",
                           "completion\n", "verify\n"}) {
    EXPECT_NE(answers.str().find(word), std::string::npos) << word << answers.str();
  }
}

// What a shell prints for `command`; nothing: the shell is not installed.
std::string said_by(const std::string& shell, const std::string& command, const std::string& file) {
  if (std::system((shell + " -c true 2>/dev/null").c_str()) != 0) return "";
  EXPECT_EQ(std::system((command + " > " + file).c_str()), 0) << command;
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST_F(FrontOfHouse, ShellsCompleteWordsAndFiles) {
  for (const char* shell : {"zsh", "fish"}) {
    std::ofstream(path(shell)) << reef(std::string("completion ") + shell).text;
  }
  const std::string fish =
      said_by("fish", "fish -c 'source " + path("fish") + "; complete -C \"reef help quant\"'", path("fish_says"));
  if (!fish.empty()) {
    EXPECT_EQ(fish.rfind("quantize", 0), 0u) << fish;
  }
  // Outside of its line editor zsh lacks the functions that take the answers: these print them.
  const std::string zsh = said_by(
      "zsh",
      "zsh -f -c 'compdef() {}; compadd() { print -- \"$@\" }; _files() { print files }; source " + path("zsh") +
          "; words=(reef eval --metric t); CURRENT=4; _reef; words=(reef run x); "
          "CURRENT=3; _reef'",
      path("zsh_says"));
  if (!zsh.empty()) {
    EXPECT_EQ(zsh, "-- top1 top5 map50 psnr miou\nfiles\n");
  }
  if (fish.empty() && zsh.empty()) GTEST_SKIP() << "neither zsh nor fish is installed";
}

TEST_F(FrontOfHouse, ManPagesHaveNoWarnings) {
  if (std::system("man --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no man";
  ASSERT_EQ(reef("man -o " + path("pages")).exit_code, 0);
  for (const auto& page : fs::directory_iterator(path("pages"))) {
    const std::string command = "LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l " + page.path().string() + " 2> " +
                                path("warnings") + " > " + path("text");
    EXPECT_EQ(std::system(command.c_str()), 0) << page.path();
    EXPECT_EQ(fs::file_size(path("warnings")), 0u) << page.path();
    EXPECT_GT(fs::file_size(path("text")), 200u) << page.path();
  }
}

TEST_F(FrontOfHouse, ModelsAreListedAndCopied) {
  const auto listed = json("models --json");
  ASSERT_GE(listed["models"].size(), 6u);
  for (const auto& model : listed["models"]) {
    const std::string name = model["name"];
    const Outcome outcome = reef("models " + name + " -o " + path(name));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    const std::string file = fs::path(model["file"].get<std::string>()).filename();
    EXPECT_TRUE(fs::exists(path(name + "/" + file))) << name;
    EXPECT_GT(model["predicted_ms"], 0.01) << name;
    EXPECT_EQ(reef("check " + path(name + "/" + file)).exit_code, 0) << name;
  }
}

TEST_F(FrontOfHouse, CompiledModelsFindTheirDevice) {
  ASSERT_EQ(reef("compile " + kModels + "reef_creatures_int8.tflite -o " + folder_.string()).exit_code, 0);
  fs::copy_file(kModels + "reef_creatures_labels.txt", path("reef_creatures_labels.txt"));
  const Outcome outcome =
      reef("run " + path("reef_creatures_int8_edgetpu.tflite") + " --image " + kModels + "images/crab_1.jpg");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(says(outcome, "answer       crab")) << outcome.text;
  EXPECT_TRUE(says(outcome, "on the chip  ")) << outcome.text;
}

TEST_F(FrontOfHouse, FlagsForProgramsThatPassNone) {
  const std::string compiler = (fs::path(REEF_PROGRAM).parent_path() / "edgetpu_compiler").string();
  const std::string line = "cd " + folder_.string() + " && REEF_COMPILE_FLAGS='--no-verify -a' " + compiler + " " +
                           kModels + "reef_creatures_int8.tflite > out 2> err";
  EXPECT_EQ(std::system(line.c_str()), 0);
  std::ifstream file(path("err"));
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find("REEF_COMPILE_FLAGS adds --no-verify -a"), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("not verified: not asked for"), std::string::npos) << text.str();
}

}  // namespace
}  // namespace reef::testing
