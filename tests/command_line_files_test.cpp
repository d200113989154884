// SPDX-License-Identifier: Apache-2.0
// Which files commands may write: every command that writes, with every kind of path that it must refuse.
//
// All inputs here hold text that is no model. A command that looked at them before it looked at its outputs would
// complain of that instead: so the refusals also come before any work.
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/file.h"
#include "command_line.h"

namespace reef::testing {
namespace {

namespace fs = std::filesystem;

// A command line in which OUT is the result in question; other results are NEW1 and NEW2, inputs are in capitals too.
struct Writer {
  const char* line;
  std::vector<const char*> inputs;  // that OUT must not be
  const char* program = "reef";
};

const Writer kWriters[] = {
    {"prune MODEL -o OUT --data DATA --params 0.5", {"MODEL", "PICTURE"}},
    {"prune MODEL -o NEW1 --data DATA --params 0.5 --masks OUT", {"MODEL", "PICTURE"}},
    {"quantize MODEL -o OUT --mode float16", {"MODEL"}},
    {"quantize MODEL --data DATA --shard 0/2 --partial OUT", {"MODEL", "PICTURE"}},
    {"eval MODEL --data DATA --metric top1 --partial OUT", {"MODEL", "PICTURE"}},
    {"quantize MODEL -o OUT --data DATA", {"MODEL", "PICTURE", "BOXES"}},
    {"quantize MODEL -o OUT --data ARRAYS", {"MODEL", "ARRAYS"}},
    {"quantize MODEL -o NEW1 --data DATA --report OUT", {"MODEL", "PICTURE"}},
    {"convert MODEL -o OUT", {"MODEL"}},
    {"convert ONNX -o OUT --data DATA", {"ONNX", "PICTURE"}},
    {"convert ONNX -o NEW1 --map OUT", {"ONNX"}},
    {"convert SAVED_MODEL -o OUT", {"SAVED_MODEL_FILE"}},
    {"compile MODEL -o OUT", {"MODEL"}},
    {"compile MODEL -o OUT --json", {"MODEL"}},
    {"compile ONNX -o OUT --data DATA", {"ONNX", "PICTURE"}},
    {"-o OUT MODEL", {"MODEL"}, "edgetpu_compiler"},
    {"check MODEL --write-rewritten OUT", {"MODEL"}},
    {"compare MODEL PACKAGE --data DATA -o OUT", {"MODEL", "PACKAGE", "PICTURE"}},
    {"learn imprint --model MODEL --data DATA -o OUT", {"MODEL", "PICTURE"}},
    {"learn imprint --model MODEL --data DATA --resume -o OUT", {"MODEL"}},
    {"learn imprint --model MODEL --data ARRAYS --test TEST --model-labels LABELS --keep-classes -o OUT",
     {"MODEL", "ARRAYS", "TEST"}},
    {"learn softmax --model MODEL --data DATA -o OUT", {"MODEL", "PICTURE"}},
    {"learn softmax --model MODEL --data DATA -o NEW1 --plot OUT", {"MODEL", "PICTURE"}},
    {"learn split MODEL --extractor OUT --head NEW1", {"MODEL"}},
    {"learn split MODEL --extractor NEW1 --head OUT", {"MODEL"}},
    {"learn join MODEL PACKAGE -o OUT", {"MODEL", "PACKAGE"}},
    {"retarget --template PACKAGE MODEL -o OUT", {"PACKAGE", "MODEL"}},
    {"retarget --template PACKAGE --source LABELS MODEL -o OUT", {"LABELS"}},
    {"run PACKAGE --device virtual --trace OUT --in RAW --image PICTURE --labels LABELS",
     {"PACKAGE", "RAW", "PICTURE", "LABELS"}},
    {"disasm PACKAGE -o OUT", {"PACKAGE"}},
    {"asm LISTING -o OUT", {"LISTING"}},
    {"asm LISTING --container PACKAGE -o OUT", {"LISTING", "PACKAGE"}},
    {"virtual-usb --log OUT -- true", {}},
    {"devices --test --device virtual --report OUT", {}},
    {"devices --test --device virtual --report OUT --firmware RAW", {"RAW"}},
};

class CommandLineFiles : public CommandLine {
 protected:
  CommandLineFiles() {
    for (const char* folder : {"data", "data/cat", "saved", "sub", "away"}) fs::create_directories(folder_ / folder);
    names_ = {{"SAVED_MODEL_FILE", "saved/saved_model.pb"},
              {"SAVED_MODEL", "saved"},
              {"PICTURE", "data/cat/1.png"},
              {"BOXES", "data/cat/1.txt"},
              {"DATA", "data"},
              {"ARRAYS", "arrays.npz"},
              {"TEST", "test.npz"},
              {"LABELS", "labels.txt"},
              {"MODEL", "model.tflite"},
              {"ONNX", "model.onnx"},
              {"PACKAGE", "package_edgetpu.tflite"},
              {"LISTING", "listing.s"},
              {"RAW", "in.bin"},
              {"NEW1", "new1.tflite"}};
    for (const auto& [word, name] : names_) {
      if (fs::is_directory(folder_ / name) || word.starts_with("NEW")) continue;
      std::ofstream(folder_ / name) << "this is " << name << ", not what a program expects\n";
    }
    before_ = state();
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  Outcome run(const Writer& writer, const std::string& out) const {
    std::istringstream words(writer.line);
    std::string line;
    for (std::string word; words >> word;) {
      const auto known = names_.find(word);
      line += ' ' + (word == "OUT" ? "'" + out + "'" : known == names_.end() ? word : path(known->second));
    }
    const std::string program = (fs::path(REEF_PROGRAM).parent_path() / writer.program).string();
    return shell("cd " + path("away") + " && TMPDIR='" + temporary_folder_of_program() + "' timeout 60 " + program +
                 line);
  }

  static Outcome shell(const std::string& command) {
    Outcome outcome;
    std::FILE* pipe = ::popen(("( " + command + " ) 2>&1").c_str(), "r");
    std::array<char, 4096> chunk{};
    for (std::size_t n; (n = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;)
      outcome.text.append(chunk.data(), n);
    outcome.exit_code = WEXITSTATUS(::pclose(pipe));
    return outcome;
  }

  // Everything in the folder: names, kinds, modes and contents.
  std::map<std::string, std::string> state() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      struct stat info {};
      ::lstat(entry.path().c_str(), &info);
      std::string& text = all[entry.path().string()] = fmt::format("{:o} ", info.st_mode);
      if (!entry.is_regular_file() || entry.is_symlink()) continue;
      std::ostringstream content;
      content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      text += content.str();
    }
    return all;
  }

  // Refuses with `words` and changes nothing.
  void expect_refusal(const Writer& writer, const std::string& out, const std::string& words) {
    SCOPED_TRACE(std::string(writer.line) + ", OUT = " + out);
    const auto before = state();
    const Outcome outcome = run(writer, out);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.text;
    EXPECT_NE(outcome.text.find(words), std::string::npos) << outcome.text;
    EXPECT_EQ(outcome.text.find("internal error"), std::string::npos) << outcome.text;
    EXPECT_EQ(state(), before);
  }

  void for_each_writer(const std::function<void(const Writer&)>& use) {
    for (const Writer& writer : kWriters) use(writer);
  }

  std::map<std::string, std::string> names_, before_;
};

TEST_F(CommandLineFiles, NoInputIsReplacedUnderAnyName) {
  fs::create_directory_symlink(folder_, path("sub/again"));
  for_each_writer([&](const Writer& writer) {
    for (const char* word : writer.inputs) {
      const std::string input = path(names_.at(word)), name = names_.at(word);
      const std::string words = "would replace the input '" + input + "'";
      expect_refusal(writer, input, words);
      expect_refusal(writer, "../" + name, words);
      expect_refusal(writer, path("sub/../" + name), words);
      expect_refusal(writer, path("sub/again/" + name), words);
      fs::create_symlink(input, path("soft.tflite"));
      expect_refusal(writer, path("soft.tflite"), words);
      fs::create_hard_link(input, path("hard.tflite"));
      expect_refusal(writer, path("hard.tflite"), words);
      fs::remove(path("soft.tflite"));
      fs::remove(path("hard.tflite"));
    }
  });
  fs::remove(path("sub/again"));
  EXPECT_EQ(state(), before_);
}

// Whether OUT may also be a folder, in which the command chooses a name.
bool takes_folder(const Writer& writer) {
  const std::string line = writer.line;
  if (line.starts_with("quantize") && line.ends_with("--report OUT")) return true;
  if (line.find("-o OUT") == std::string::npos) return false;
  const auto begins = [&](const char* command) { return line.starts_with(command); };
  return begins("-o") || begins("compile") || begins("prune") || begins("quantize") || begins("convert") ||
         begins("compare") || begins("learn");
}

TEST_F(CommandLineFiles, NothingButRegularFilesIsReplaced) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  fs::create_symlink("fifo", path("link_to_fifo"));
  fs::create_directories(path("folder.tflite"));
  // A node of the test's own, a copy of /dev/null.
  const bool has_node = ::mknod(path("node").c_str(), S_IFCHR | 0666, ::makedev(1, 3)) == 0;
  for_each_writer([&](const Writer& writer) {
    expect_refusal(writer, path("fifo"), "it is a FIFO");
    expect_refusal(writer, path("link_to_fifo"), "it is a FIFO");
    if (has_node) expect_refusal(writer, path("node"), "it is a device");
    // Where a folder is taken, what it refuses is the model, which is none.
    expect_refusal(writer, path("folder.tflite"), takes_folder(writer) ? "" : "it is a folder");
  });
  if (!has_node) GTEST_SKIP() << "mknod needs root: device nodes were not tried";
}

TEST_F(CommandLineFiles, MissingFoldersAreNoticedBeforeAnyWork) {
  for_each_writer([&](const Writer& writer) {
    expect_refusal(writer, path("missing/out.tflite"), "mkdir -p " + path("missing"));
    expect_refusal(writer, path("model.tflite/out.tflite"), path("model.tflite"));
  });
}

TEST_F(CommandLineFiles, WriteProtectedFilesAreKept) {
  std::ofstream(path("old.tflite")) << "protected";
  ASSERT_EQ(::chmod(path("old.tflite").c_str(), 0444), 0);
  for_each_writer([&](const Writer& writer) { expect_refusal(writer, path("old.tflite"), "write-protected"); });
}

TEST_F(CommandLineFiles, TwoResultsNeedTwoFiles) {
  const std::string model = path("model.tflite"), out = path("out.tflite"), other = path("sub/../out.tflite");
  for (const std::string& line : {
           "learn split " + model + " --extractor " + out + " --head " + out,
           "learn split " + model + " --extractor " + out + " --head " + other,
           "quantize " + model + " --data " + path("data") + " -o " + out + " --report " + other,
           "convert " + model + " -o " + out + " --map " + other,
           "learn imprint --model " + model + " --data " + path("data") + " -o " + out + " --plot " + out,
           "learn imprint --model " + model + " --data " + path("data") + " -o " + out + " --plot " +
               path("out_labels.txt"),
       }) {
    const Outcome outcome = reef(line);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.text;
    EXPECT_NE(outcome.text.find("two results would go to one file"), std::string::npos) << line << outcome.text;
  }
  EXPECT_EQ(state(), before_);
}

// What is written besides: labels, logs, results of a run.
TEST_F(CommandLineFiles, NamesThatFollowFromOthersAreChecked) {
  const std::string model = path("model.tflite");
  std::ofstream(path("x_labels.txt")) << "names";
  std::ofstream(path("out0.bin")) << "raw";
  std::ofstream(path("model_edgetpu.log")) << "log";
  const auto before = state();
  for (const auto& [line, words] : std::map<std::string, std::string>{
           {"learn imprint --model " + model + " --data " + path("data") + " --keep-classes --model-labels " +
                path("x_labels.txt") + " -o " + path("x.tflite"),
            "would replace the input '" + path("x_labels.txt") + "'"},
           {"run " + model + " --in " + path("out0.bin") + " --out " + folder_.string(), "out0.bin"},
           {"run " + model + " --out " + model, "is not a folder"},
           {"run " + model + " --out " + model + "/deeper", "is not a folder"},
           {"compile " + path("model_edgetpu.log") + " -o " + path("model_edgetpu.tflite"), "would replace the input"},
           {"compile " + model + " " + path("model.onnx") + " -o " + path("one.tflite"), "names one file"},
           {"compile " + model + " -n 2 -o " + path("one.tflite"), "names one file"},
           {"compile " + model + " -o " + path("no_folder"), "mkdir -p"},
           {"compile " + model + " " + path("sub/model.tflite") + " -o " + path("away"), "would both become"},
       }) {
    const Outcome outcome = reef(line);
    EXPECT_EQ(outcome.exit_code, 1) << line << outcome.text;
    EXPECT_NE(outcome.text.find(words), std::string::npos) << line << outcome.text;
  }
  EXPECT_EQ(state(), before);
  EXPECT_EQ(shell("cd " + folder_.string() + " && " REEF_PROGRAM " convert model.tflite").exit_code, 1);
  EXPECT_EQ(state(), before);
}

// The table above has every command that writes; a new one must come here or there.
TEST_F(CommandLineFiles, EveryCommandIsAccountedFor) {
  // --out of run: above. models, man, export, train and tune write several files into a folder, exec becomes another
  // program.
  std::set<std::string> known = {"run", "eval",   "devices",    "verify", "audit", "inspect", "models",
                                 "man", "export", "completion", "exec",   "help",  "train",   "tune"};
  for (const Writer& writer : kWriters)
    known.insert(std::string(writer.line).substr(0, std::string(writer.line).find(' ')));
  std::istringstream help(reef("--help").text);
  bool is_list = false;
  int commands = 0;
  for (std::string line; std::getline(help, line);) {
    if (is_list && line.starts_with("  ") && line[2] != ' ') {
      const std::string command = line.substr(2, line.find(' ', 2) - 2);
      EXPECT_TRUE(known.contains(command)) << command;
      ++commands;
    }
    is_list = (is_list && !line.starts_with("Options:")) || line.starts_with("Usage:");
  }
  EXPECT_GE(commands, 15);
}

// A FIFO that nobody writes into: opening it would wait for ever.
TEST_F(CommandLineFiles, AFifoAsInputIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo(path("fifo.onnx").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo(path("fifo.npz").c_str(), 0600), 0);
  const std::string kModel = REEF_SOURCE_DIR "/models/reef_creatures_int8.tflite ";
  for (const std::string& line : {
           "run " + path("fifo"),
           "run " + path("fifo.onnx"),
           "inspect " + path("fifo"),
           "inspect " + path("fifo.onnx"),
           "check " + path("fifo"),
           "compile " + path("fifo"),
           "audit " + path("fifo"),
           "disasm " + path("fifo"),
           "asm " + path("fifo") + " -o " + path("x"),
           "verify " + path("fifo") + " " + path("fifo"),
           "convert " + path("fifo.onnx") + " -o " + path("x"),
           "quantize " + path("fifo") + " -o " + path("x"),
           "learn split " + path("fifo") + " --extractor " + path("x") + " --head " + path("y"),
           "eval " + kModel + "--data " + path("fifo.npz") + " --metric top1",
           "run " + kModel + "--in " + path("fifo"),
           "run " + kModel + "--image " + path("fifo"),
           "run " + kModel + "--labels " + path("fifo"),
       }) {
    const Outcome outcome = shell("timeout 20 " REEF_PROGRAM " " + line);
    EXPECT_EQ(outcome.exit_code, 1) << line << outcome.text;
    EXPECT_NE(outcome.text.find("fifo"), std::string::npos) << line << outcome.text;
  }
}

}  // namespace
}  // namespace reef::testing
