// SPDX-License-Identifier: Apache-2.0
// What the program writes, and where to: standard output that fails, names that would control a terminal, results of
// `reef compile` in a folder or in a file, signals.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "command_line.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "quantized_model.h"

namespace reef::testing {
namespace {

namespace fs = std::filesystem;

const std::string kCreatures = REEF_SOURCE_DIR "/models/reef_creatures_int8.tflite";
const std::string kFloatCreatures = REEF_SOURCE_DIR "/models/reef_creatures_float.tflite";
const std::string kImages = REEF_SOURCE_DIR "/models/images";

class CommandLineOutput : public CommandLine {
 protected:
  CommandLineOutput() {
    QuantizedModel model;
    const std::int32_t x = model.conv(model.input({1, 16, 16, 3}), 8, 3, 1, "RELU");
    EXPECT_TRUE(tflite::save_model(model.finish({model.conv(x, 8, 3)}), path("net.tflite")).ok());
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void compile_net() const {
    ASSERT_EQ(reef("compile " + path("net.tflite") + " -o " + folder_.string()).exit_code, 0);
  }
  std::string content(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path(name), std::ios::binary).rdbuf();
    return text.str();
  }
  std::set<std::string> files(const std::string& folder = "") const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / folder)) names.insert(entry.path().filename().string());
    return names;
  }

  // Commands that print, each in a few forms. The package is net_edgetpu.tflite.
  std::vector<std::string> printing_commands() const {
    const std::string net = path("net.tflite"), package = path("net_edgetpu.tflite");
    return {"--help",
            "--version",
            "run --help",
            "learn imprint --help",
            "run " + net,
            "run " + net + " --json",
            "run " + package + " --device virtual",
            "check " + net,
            "check " + net + " --json",
            "check " + net + " --ops",
            "inspect " + net,
            "inspect " + net + " --json",
            "inspect " + net + " --text",
            "inspect " + package,
            "inspect " REEF_SOURCE_DIR "/models/cifar_resnet8.onnx",
            "disasm " + package,
            "audit " + package,
            "audit " + package + " --json",
            "devices",
            "devices --json",
            "verify " + net + " " + package,
            "verify " + net + " " + package + " --json",
            "convert " + net + " -o " + path("c.tflite"),
            "convert " + net + " --json -o " + path("c.tflite"),
            "quantize " + kFloatCreatures + " --mode float16 -o " + path("q.tflite"),
            "quantize " + kFloatCreatures + " --mode float16 --json -o " + path("q.tflite"),
            "compile " + net + " -o " + path("again.tflite"),
            "compile " + net + " --json -o " + path("again.tflite"),
            "compile " + net + " --stop-after partition",
            "compile " + net + " --stop-after emit",
            "eval " + kCreatures + " --limit 2 --metric top1 --data " + kImages +
                " --labels " REEF_SOURCE_DIR "/models/reef_creatures_labels.txt",
            "learn split " + kCreatures + " --extractor " + path("e.tflite") + " --head " + path("h.tflite")};
  }

  // The program with its standard output at `fd`.
  static Outcome with_output(int fd, const std::string& arguments) {
    int errors[2];
    EXPECT_EQ(::pipe(errors), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGPIPE, SIG_DFL);  // as a shell starts it
      ::dup2(fd, STDOUT_FILENO);
      ::dup2(errors[1], STDERR_FILENO);
      ::close(errors[0]);
      ::execl("/bin/sh", "sh", "-c", ("exec " REEF_PROGRAM " " + arguments).c_str(), nullptr);
      ::_exit(127);
    }
    ::close(errors[1]);
    Outcome outcome;
    std::array<char, 4096> chunk{};
    for (ssize_t n; (n = ::read(errors[0], chunk.data(), chunk.size())) > 0;) {
      outcome.text.append(chunk.data(), static_cast<std::size_t>(n));
    }
    ::close(errors[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
  }

  void expect_failure_at(int fd) const {
    for (const std::string& command : printing_commands()) {
      const Outcome outcome = with_output(fd, command);
      EXPECT_EQ(outcome.exit_code, 1) << command << ": " << outcome.text;
      EXPECT_NE(outcome.text.find("cannot write to standard output"), std::string::npos) << command << outcome.text;
      EXPECT_EQ(outcome.text.find("internal error"), std::string::npos) << command << outcome.text;
    }
  }
};

TEST_F(CommandLineOutput, AFullDiskBehindStandardOutputIsAFailure) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) GTEST_SKIP() << "there is no /dev/full";
  compile_net();
  expect_failure_at(full);
  const std::string program = (fs::path(REEF_PROGRAM).parent_path() / "edgetpu_compiler").string();
  for (const char* arguments : {"--help", "--version", "net.tflite -o again.tflite"}) {
    const std::string line = fmt::format("cd {} && {} {} >/dev/full 2>&1", folder_.string(), program, arguments);
    EXPECT_EQ(WEXITSTATUS(std::system(line.c_str())), 1) << line;
  }
  ::close(full);
}

TEST_F(CommandLineOutput, AClosedPipeIsAFailure) {
  compile_net();
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);
  expect_failure_at(ends[1]);
  ::close(ends[1]);
}

// Nothing that is opened later may take the place of a standard output that is closed.
TEST_F(CommandLineOutput, AClosedStandardOutputIsAFailure) {
  compile_net();
  for (const std::string& command : printing_commands()) {
    const std::string line = fmt::format("{} {} >&- 2>{}", REEF_PROGRAM, command, path("errors"));
    EXPECT_EQ(WEXITSTATUS(std::system(line.c_str())), 1) << command;
    const auto errors = read_file(path("errors"), 1 << 20);
    ASSERT_TRUE(errors.ok());
    const std::string text(reinterpret_cast<const char*>(errors->data()), errors->size());
    EXPECT_NE(text.find("cannot write to standard output"), std::string::npos) << command << text;
  }
  const auto converted = tflite::load_model(path("c.tflite"));
  EXPECT_TRUE(converted.ok()) << converted.status().message();
}

TEST_F(CommandLineOutput, MessagesThatCannotBeShownChangeNothing) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const std::string line =
      fmt::format("{} compile {} -o {} 2>/dev/full >/dev/null", REEF_PROGRAM, path("net.tflite"), path("made.tflite"));
  EXPECT_EQ(WEXITSTATUS(std::system(line.c_str())), 0);
  EXPECT_TRUE(fs::exists(path("made.tflite")));
}

bool has_control_characters(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F; }) ||
         text.find("\xc2\x9b") != std::string::npos;
}

// Names in a model and of files that would clear the screen, set the window's title, or forge a line.
TEST_F(CommandLineOutput, NamesDoNotControlTheTerminal) {
  const std::string wild =
      "a\x1b[2J\x1b]0;owned\x07\xc2\x9b"
      "31m\r\nforged line";
  QuantizedModel made;
  const std::int32_t x = made.conv(made.input({1, 16, 16, 3}), 8, 3, 1, "RELU");
  ir::Model model = made.finish({made.unary("HARD_SWISH", made.conv(x, 8, 3))});
  model.description = "described \x1b[1m";
  model.subgraphs[0].name = wild;
  for (std::size_t i = 0; i < model.subgraphs[0].tensors.size(); ++i) {
    model.subgraphs[0].tensors[i].name = wild + std::to_string(i);
  }
  const std::string file = path("wild\x1b[31m.tflite"), quoted = "'" + file + "'";
  ASSERT_TRUE(tflite::save_model(model, file).ok());
  const std::string package = "'" + path("p\x1b[31m_edgetpu.tflite") + "'";
  for (const std::string& command : {"inspect " + quoted,
                                     "inspect --tensors " + quoted,
                                     "inspect --text " + quoted,
                                     "run " + quoted,
                                     "run --profile " + quoted,
                                     "check " + quoted,
                                     "check --ops " + quoted,
                                     "compile -s " + quoted + " -o " + package,
                                     "compile --explain " + quoted + " -o " + package,
                                     "compile --stop-after partition " + quoted,
                                     "compile --stop-after lower " + quoted,
                                     "run --device virtual " + package,
                                     "inspect " + package,
                                     "disasm " + package,
                                     "audit " + package,
                                     "verify " + quoted + " " + package,
                                     "run --device virtual --layers all --source " + quoted + " " + package,
                                     "convert " + quoted + " -o '" + path("c\x1b[31m.tflite") + "'",
                                     "run '" + path("missing\x1b[31m") + "'",
                                     std::string("run --frob\x1b[31m"),
                                     std::string("frob\x1b[31m"),
                                     "inspect '" + path("missing\x1b[31m.onnx") + "'",
                                     "check " + quoted + " --write-rewritten '" + path("no\x1b/x") + "'",
                                     "eval " + quoted + " --metric top1 --data '" + path("none\x1b[31m") + "'"}) {
    const Outcome outcome = reef(command);
    EXPECT_FALSE(outcome.text.empty()) << command;
    EXPECT_FALSE(has_control_characters(outcome.text)) << command << ": " << outcome.text;
  }
  const Outcome listed = reef("inspect --tensors " + quoted);
  EXPECT_NE(listed.text.find("a\\x1b[2J\\x1b]0;owned\\x07\\x9b31m\\r\\nforged line0"), std::string::npos)
      << listed.text;
  // Programs get the names as they are.
  const auto json = nlohmann::json::parse(reef("inspect --json " + quoted).text, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["file"], file);
  EXPECT_EQ(json["subgraphs"][0]["tensors"][0]["name"], wild + "0");
}

// console.h is the only way out: what goes another way is neither made printable nor noticed when it fails.
TEST_F(CommandLineOutput, CommandsPrintThroughTheConsole) {
  for (const auto& entry : fs::directory_iterator(REEF_SOURCE_DIR "/apps/reef")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("console.") || name == "main.cpp") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    for (const char* call :
         {"fmt::print(", "printf(", "fwrite(", "std::fputs(", "std::puts(", "std::cout", "std::cerr"}) {
      EXPECT_EQ(text.str().find(call), std::string::npos) << name << " calls " << call;
    }
  }
}

TEST_F(CommandLineOutput, CompileTakesAFolderOrAFile) {
  fs::create_directories(path("folder"));
  fs::create_directories(path("folder.tflite"));
  const std::string here = "cd " + folder_.string() + " && ";
  const std::string google = (fs::path(REEF_PROGRAM).parent_path() / "edgetpu_compiler").string();
  const auto compile = [&](const std::string& program, const std::string& out) {
    return WEXITSTATUS(std::system((here + program + " net.tflite -o " + out + " >/dev/null 2>&1").c_str()));
  };
  for (const std::string& program : {std::string(REEF_PROGRAM) + " compile", google}) {
    EXPECT_EQ(compile(program, "folder"), 0);
    EXPECT_EQ(files("folder"), (std::set<std::string>{"net_edgetpu.tflite", "net_edgetpu.log"}));
    EXPECT_EQ(compile(program, "folder.tflite/"), 0);
    EXPECT_EQ(files("folder.tflite"), (std::set<std::string>{"net_edgetpu.tflite", "net_edgetpu.log"}));
    EXPECT_EQ(compile(program, "folder/mine.tflite"), 0);
    EXPECT_EQ(files("folder"),
              (std::set<std::string>{"net_edgetpu.tflite", "net_edgetpu.log", "mine.tflite", "mine.log"}));
    EXPECT_EQ(compile(program, "out_edgetpu.tflite"), 0);
    EXPECT_EQ(compile(program, "out_edgetpu.tflite"), 0);  // a second time
    EXPECT_TRUE(files().contains("out_edgetpu.tflite") && files().contains("out_edgetpu.log"));
    EXPECT_EQ(compile(program, "nowhere"), 1);
    EXPECT_EQ(compile(program, "nowhere/x.tflite"), 1);
    EXPECT_FALSE(files().contains("nowhere"));
    for (const char* name : {"folder/mine.tflite", "folder/mine.log", "folder/net_edgetpu.log"}) fs::remove(path(name));
  }
  EXPECT_TRUE(tflite::load_model(path("out_edgetpu.tflite")).ok());
  // A refusal is one of the compiler's: Google's version line first, or one JSON object.
  const std::string refused = " net.tflite -o nowhere 2>/dev/null >stdout";
  EXPECT_EQ(WEXITSTATUS(std::system((here + google + refused).c_str())), 1);
  EXPECT_TRUE(content("stdout").starts_with("Edge TPU Compiler version")) << content("stdout");
  EXPECT_EQ(WEXITSTATUS(std::system((here + REEF_PROGRAM " compile --json" + refused).c_str())), 1);
  const auto json = nlohmann::json::parse(content("stdout"), nullptr, false);
  ASSERT_TRUE(json.is_object()) << content("stdout");
  EXPECT_EQ(json["compiled"], false);
}

TEST_F(CommandLineOutput, StopAfterWritesNothing) {
  fs::create_directories(path("empty"));
  for (const char* stage : {"partition", "emit"}) {
    const std::string line = fmt::format(
        "cd {} && {} compile {} --data {} --preprocess unit --limit 8 --held-back 0 --stop-after {} >{} 2>&1",
        path("empty"), REEF_PROGRAM, kFloatCreatures, kImages, stage, path("text"));
    EXPECT_EQ(WEXITSTATUS(std::system(line.c_str())), 0);
    EXPECT_GT(fs::file_size(path("text")), 100u);
    EXPECT_TRUE(files("empty").empty()) << stage;
  }
}

// Both would become a_int8.tflite.
TEST_F(CommandLineOutput, FloatModelsOfOneNameAreRefusedBeforeQuantizing) {
  for (const char* folder : {"1", "2", "out"}) fs::create_directories(path(folder));
  fs::copy_file(kFloatCreatures, path("1/a.tflite"));
  fs::copy_file(kFloatCreatures, path("2/a.tflite"));
  fs::copy_file(kCreatures, path("2/a_int8.tflite"));
  const std::string options = " --data " + kImages + " --preprocess unit -o " + path("out");
  for (const char* second : {"2/a.tflite", "2/a_int8.tflite"}) {
    const Outcome outcome = reef("compile " + path("1/a.tflite") + " " + path(second) + options);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.text;
    EXPECT_NE(outcome.text.find("would both become"), std::string::npos) << outcome.text;
    EXPECT_EQ(outcome.text.find("calibrated"), std::string::npos) << outcome.text;
    EXPECT_TRUE(files("out").empty());
  }
  const Outcome nowhere = reef("compile " + path("1/a.tflite") + " --data " + kImages + " -o " + path("nowhere"));
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_NE(nowhere.text.find("mkdir -p"), std::string::npos) << nowhere.text;
  EXPECT_EQ(nowhere.text.find("calibrated"), std::string::npos) << nowhere.text;
  // The quantized model would replace an input.
  const Outcome itself =
      reef("compile " + path("2/a.tflite") + " --data " + kImages + " -o " + path("out/a_int8.tflite"));
  EXPECT_EQ(itself.exit_code, 1);
  EXPECT_NE(itself.text.find("two results would go to one file"), std::string::npos) << itself.text;
}

TEST_F(CommandLineOutput, AListingIsNotAssembledOverItsModel) {
  compile_net();
  const std::string package = path("net_edgetpu.tflite");
  ASSERT_EQ(reef("disasm " + package + " -o " + path("net.s")).exit_code, 0);
  const Outcome outcome = reef("asm " + path("net.s") + " -o " + package);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.text.find("would replace the input"), std::string::npos) << outcome.text;
  EXPECT_EQ(reef("asm " + path("net.s") + " -o " + path("other_edgetpu.tflite")).exit_code, 0);
}

TEST_F(CommandLineOutput, ModesAreKept) {
  std::ofstream(path("old.tflite")) << "old";
  ASSERT_EQ(::chmod(path("old.tflite").c_str(), 0600), 0);
  ASSERT_EQ(reef("convert " + path("net.tflite") + " -o " + path("old.tflite")).exit_code, 0);
  struct stat info {};
  ASSERT_EQ(::stat(path("old.tflite").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_TRUE(tflite::load_model(path("old.tflite")).ok());
}

// Ended at any moment, the command has written both of its files or none, and nothing else.
TEST_F(CommandLineOutput, SignalsLeaveNoStrays) {
  fs::create_directories(path("out"));
  for (int round = 0; round < 24; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      const int null = ::open("/dev/null", O_WRONLY);
      ::dup2(null, STDOUT_FILENO);
      ::dup2(null, STDERR_FILENO);
      ::execl(REEF_PROGRAM, "reef", "compile", path("net.tflite").c_str(), "-o", path("out").c_str(), "--no-verify",
              nullptr);
      ::_exit(127);
    }
    ::usleep(static_cast<useconds_t>(1500 * round));
    ::kill(child, round % 2 == 0 ? SIGINT : SIGTERM);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    const std::set<std::string> made = files("out");
    EXPECT_TRUE(made.empty() || made == (std::set<std::string>{"net_edgetpu.tflite", "net_edgetpu.log"})) << round;
  }
}

// At exact moments: strace sends a signal with the n-th call of a kind. Old files are there, so that all kinds occur.
TEST_F(CommandLineOutput, SignalsWhileFilesAreWrittenLeaveNoStrays) {
  if (std::system("strace -o /dev/null true >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "strace is not there or not allowed";
  fs::create_directories(path("out"));
  int ended = 0;
  for (const char* call : {"fsync", "/^rename", "/^link", "/^unlink"}) {
    for (const auto& [name, number] : {std::pair{"SIGINT", SIGINT}, {"SIGTERM", SIGTERM}}) {
      for (const int when : {1, 2}) {
        const std::string old = "old";
        for (const char* file : {"out/net_edgetpu.tflite", "out/net_edgetpu.log"}) std::ofstream(path(file)) << old;
        const std::string line = fmt::format(
            "strace -f -o /dev/null -e 'trace={0}' -e 'inject={0}:signal={1}:when={2}' {3} compile {4} -o {5}"
            " --no-verify >/dev/null 2>&1",
            call, name, when, REEF_PROGRAM, path("net.tflite"), path("out"));
        const int status = std::system(line.c_str());
        ended += WIFSIGNALED(status) || WEXITSTATUS(status) == 128 + number;
        EXPECT_EQ(files("out"), (std::set<std::string>{"net_edgetpu.tflite", "net_edgetpu.log"})) << line;
        EXPECT_EQ(content("out/net_edgetpu.tflite") == old, content("out/net_edgetpu.log") == old) << line;
      }
    }
  }
  EXPECT_GE(ended, 8);  // the others make fewer calls of a kind
}

}  // namespace
}  // namespace reef::testing
