// SPDX-License-Identifier: Apache-2.0
// `reef learn` as a user calls it: the example, what a killed run leaves, compiled extractors, refusals.
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <fstream>

#include <gtest/gtest.h>

#include "base/file.h"
#include "command_line.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "learn/metadata.h"

namespace reef {
namespace {

namespace fs = std::filesystem;
using testing::CommandLine;
using testing::Outcome;

const std::string kModel = REEF_SOURCE_DIR "/models/reef_creatures_int8.tflite";

class Learn : public CommandLine {
 protected:
  Outcome example(const std::string& options) {
    const std::string command = std::string(REEF_PYTHON) +
                                " " REEF_SOURCE_DIR "/examples/python/learn_three_classes.py --reef " + REEF_PROGRAM +
                                " --out " + folder_.string() + " " + options + " 2>&1";
    Outcome outcome;
    std::FILE* pipe = ::popen(command.c_str(), "r");
    std::array<char, 4096> chunk{};
    for (std::size_t n; (n = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;)
      outcome.text.append(chunk.data(), n);
    outcome.exit_code = WEXITSTATUS(::pclose(pipe));
    return outcome;
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string content(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

// The share in the example's last table.
double share(const std::string& text, int images, int column) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    int number = 0;
    double imprint = 0, softmax = 0;
    if (std::sscanf(line.c_str(), "%d %lf%% %lf%%", &number, &imprint, &softmax) == 3 && number == images) {
      return column == 0 ? imprint : softmax;
    }
  }
  ADD_FAILURE() << "no line for " << images << " pictures in:\n" << text;
  return 0;
}

TEST_F(Learn, ThreeClassesFrom1And5And20And100Pictures) {
  const Outcome outcome = example("");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  for (const int method : {0, 1}) {
    EXPECT_GT(share(outcome.text, 1, method), 45) << outcome.text;
    EXPECT_GT(share(outcome.text, 5, method), share(outcome.text, 1, method));
    EXPECT_GT(share(outcome.text, 20, method), share(outcome.text, 1, method) + 5);
  }
  // One direction is not all that there is to such different pictures of a class: many are made more of by regression.
  EXPECT_GT(share(outcome.text, 100, 0), 60) << outcome.text;
  EXPECT_GT(share(outcome.text, 100, 1), 80) << outcome.text;
  const std::string page = content("learning_curve.html");
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_NE(page.find("softmax regression"), std::string::npos);
  EXPECT_EQ(content("imprint_labels.txt"), "anchor\nboat\nbuoy\n");
}

TEST_F(Learn, CompiledExtractorGrowsWithoutBeingCompiledAgain) {
  ASSERT_EQ(example("--train 4 --test 2 --device virtual").exit_code, 0);
  ASSERT_EQ(testing::reef("learn split " + kModel + " --extractor " + path("e.tflite") + " --head " + path("h.tflite"))
                .exit_code,
            0);
  ASSERT_EQ(testing::reef("compile " + path("e.tflite") + " -o " + folder_.string()).exit_code, 0);
  const std::string learn = "learn imprint --device virtual --hold-back 0 --data " + path("train") + " ";
  const Outcome first =
      testing::reef(learn + "--model " + path("e_edgetpu.tflite") + " -o " + path("one_edgetpu.tflite"));
  ASSERT_EQ(first.exit_code, 0) << first.text;
  // A class more.
  fs::create_directories(path("more/turtle"));
  for (const char* name : {"turtle_1.jpg", "turtle_2.jpg"}) {
    fs::copy_file(std::string(REEF_SOURCE_DIR "/models/images/") + name, path("more/turtle/") + name);
  }
  const Outcome second =
      testing::reef("learn imprint --keep-classes --device virtual --hold-back 0 --data " + path("more") + " --model " +
                    path("one_edgetpu.tflite") + " -o " + path("two_edgetpu.tflite"));
  ASSERT_EQ(second.exit_code, 0) << second.text;
  EXPECT_EQ(content("two_edgetpu_labels.txt"), "anchor\nboat\nbuoy\nturtle\n");
  const auto compiled_part = [&](const std::string& name) {
    const ir::Model model = tflite::load_model(path(name)).value();
    for (const ir::Operator& op : model.subgraphs[0].operators) {
      if (darwinn::is_edge_tpu_op(op))
        return std::vector<std::uint8_t>(op.custom_options.data(), op.custom_options.data() + op.custom_options.size());
    }
    return std::vector<std::uint8_t>();
  };
  EXPECT_FALSE(compiled_part("e_edgetpu.tflite").empty());
  EXPECT_EQ(compiled_part("e_edgetpu.tflite"), compiled_part("one_edgetpu.tflite"));
  EXPECT_EQ(compiled_part("e_edgetpu.tflite"), compiled_part("two_edgetpu.tflite"));
  const Outcome run =
      testing::reef("run " + path("two_edgetpu.tflite") +
                    " --device virtual --image " REEF_SOURCE_DIR "/models/images/turtle_1.jpg --top 1 --labels " +
                    path("two_edgetpu_labels.txt"));
  EXPECT_NE(run.text.find("turtle"), std::string::npos) << run.text;
}

TEST_F(Learn, ResumedModelsRememberTheirPictures) {
  ASSERT_EQ(example("--train 6 --test 1").exit_code, 0);
  const std::string base = "learn imprint --hold-back 0 --data " + path("train");
  ASSERT_EQ(testing::reef(base + " --model " + kModel + " -o " + path("m.tflite")).exit_code, 0);
  const std::string more = base + " --model " + path("m.tflite") + " -o " + path("more.tflite");
  const Outcome clash = testing::reef(more + " --keep-classes");
  EXPECT_EQ(clash.exit_code, 1);
  EXPECT_NE(clash.text.find("--resume"), std::string::npos) << clash.text;
  const Outcome resumed = testing::reef(more + " --resume");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.text;
  const auto learning = learn::stored_learning(tflite::load_model(path("more.tflite")).value());
  ASSERT_TRUE(learning.ok() && learning->has_value());
  ASSERT_EQ((*learning)->classes.size(), 3u);
  EXPECT_EQ((*learning)->classes[0].images, 12);
  EXPECT_EQ((*learning)->classes[1].name, "boat");
}

TEST_F(Learn, PicturesThatShouldNotBeLearnedAreNamed) {
  ASSERT_EQ(example("--train 5 --test 1").exit_code, 0);
  fs::copy_file(path("train/boat/000.ppm"), path("train/boat/copy.ppm"));
  fs::copy_file(path("train/boat/001.ppm"), path("train/buoy/boat.ppm"));
  std::ofstream(path("train/anchor/broken.jpg")) << "no picture";
  const Outcome outcome =
      testing::reef("learn imprint --model " + kModel + " -o " + path("m.tflite") + " --data " + path("train"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  for (const char* name : {"boat/copy.ppm", "buoy/boat.ppm", "boat/001.ppm"}) {
    EXPECT_NE(outcome.text.find(std::string("left out: ") + name), std::string::npos) << name << "\n" << outcome.text;
  }
  EXPECT_NE(outcome.text.find("left out as damaged: anchor/broken.jpg"), std::string::npos) << outcome.text;
}

TEST_F(Learn, KilledRunsLeaveTheOldModel) {
  ASSERT_EQ(example("--train 100 --test 1").exit_code, 0);
  std::ofstream(path("m.tflite")) << "old model";
  std::ofstream(path("m_labels.txt")) << "old labels";
  for (const int milliseconds : {1, 20, 60, 150}) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::freopen("/dev/null", "w", stdout);
      std::freopen("/dev/null", "w", stderr);
      ::execl(REEF_PROGRAM, REEF_PROGRAM, "learn", "imprint", "--model", kModel.c_str(), "--data",
              path("train").c_str(), "--threads", "1", "-o", path("m.tflite").c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::usleep(static_cast<useconds_t>(1000 * milliseconds));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it was done before it could be killed";
    EXPECT_EQ(content("m.tflite"), "old model");
    EXPECT_EQ(content("m_labels.txt"), "old labels");
  }
}

TEST_F(Learn, RefusalsSayWhatToDo) {
  ASSERT_EQ(example("--train 2 --test 1").exit_code, 0);
  const std::string data = " --data " + path("train") + " -o " + path("m.tflite") + " --model ";
  const Outcome linear = testing::reef("learn imprint --keep-classes" + data + kModel);
  EXPECT_EQ(linear.exit_code, 1);
  EXPECT_NE(linear.text.find("cannot be kept"), std::string::npos) << linear.text;
  const Outcome flat = testing::reef("learn imprint --data " REEF_SOURCE_DIR "/models/images -o " + path("m.tflite") +
                                     " --model " + kModel);
  EXPECT_EQ(flat.exit_code, 1);
  EXPECT_NE(flat.text.find("sub-folder for each class"), std::string::npos) << flat.text;
  EXPECT_EQ(testing::reef("learn").exit_code, 2);
  EXPECT_EQ(testing::reef("learn imprint").exit_code, 2);
  EXPECT_FALSE(fs::exists(path("m.tflite")));
}

}  // namespace
}  // namespace reef
