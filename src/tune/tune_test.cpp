// SPDX-License-Identifier: Apache-2.0
// Goals, choices, the store and the search. The search runs against a made-up model whose results are put into the
// store, so that what it asks for can be followed to the end.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include <unistd.h>

#include <gtest/gtest.h>

#include "tune/search.h"

namespace reef::tune {
namespace {

namespace fs = std::filesystem;

class TuneFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("reef_tune_{}_{}", ::getpid(),
                                                      ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

TEST(TuneChoices, TextIsReadBackAndNamesOnlyWhatDiffers) {
  Choices choices;
  EXPECT_EQ(tag_of(choices), "default");
  choices.height = 24;
  choices.width = 32;
  choices.cut = 0.45;
  choices.quantizer = "mse";
  choices.rewrites = "none";
  choices.segments = 2;
  choices.level = 2;
  EXPECT_EQ(tag_of(choices), "24x32_cut45_mse_none-rewrites_n2_O2");
  const auto again = parse_choices(to_text(choices));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(*again, choices);
}

TEST(TuneChoices, WrongWordsAreRefused) {
  for (const char* text : {"size=24", "size=0x3", "cut=1", "cut=-1", "cut=x", "quantizer=best", "rewrites=some",
                           "segments=0", "level=3", "speed=1", "level"}) {
    EXPECT_FALSE(parse_choices(text).ok()) << text;
    EXPECT_FALSE(parse_task(std::string("compile ") + text).ok()) << text;
  }
  EXPECT_FALSE(parse_task("bake size=given").ok());
}

TEST(TuneChoices, TasksLeaveOutWhatDoesNotMatterToThem) {
  Choices choices;
  choices.cut = 0.3;
  choices.quantizer = "mse";
  choices.level = 2;
  EXPECT_EQ(to_text(task(TaskKind::kStudy, choices)), to_text(task(TaskKind::kStudy)));
  EXPECT_EQ(task(TaskKind::kBody, choices).choices.quantizer, "default");
  EXPECT_EQ(task(TaskKind::kQuantize, choices).choices.level, static_cast<int>(tiled::kDefaultLevel));
  EXPECT_EQ(task(TaskKind::kCompile, choices).choices, choices);
}

TEST(TuneGoal, IsReadWithUnits) {
  const auto goal = parse_goal("latency <= 5000us, drop<1%,accuracy>80%,fit");
  ASSERT_TRUE(goal.ok()) << goal.status().message();
  EXPECT_DOUBLE_EQ(*goal->latency_ms, 5);
  EXPECT_DOUBLE_EQ(*goal->drop, 0.01);
  EXPECT_DOUBLE_EQ(*goal->accuracy, 0.8);
  EXPECT_TRUE(goal->fit);
  EXPECT_TRUE(parse_goal("")->empty());
  for (const char* text : {"fast", "latency<", "latency<-1ms", "latency<5 kg", "drop<x", "latency>5ms", "accuracy<80%"})
    EXPECT_FALSE(parse_goal(text).ok()) << text;
}

TEST(TuneGoal, TheNearestMissesLeastAndSaysByHowMuch) {
  const Goal goal = *parse_goal("latency<1ms,drop<1%");
  const GoalFigures slow{2.0, 0.90, 0.90, true, false}, near{1.1, 0.895, 0.90, true, false},
      wrong{0.5, 0.5, 0.90, true, false};
  EXPECT_EQ(choose_point(goal, {slow, near, wrong}), 1);
  EXPECT_GT(miss_of(goal, near), 0);
  EXPECT_NE(describe_miss(goal, near).find("1.100 ms"), std::string::npos);
  EXPECT_EQ(describe_miss(goal, near).find("points"), std::string::npos) << "the drop is within the goal";
  const GoalFigures good{0.9, 0.895, 0.90, true, false}, better{0.8, 0.892, 0.90, true, false};
  EXPECT_EQ(choose_point(goal, {good, better}), 1) << "with an accuracy to keep, the faster one";
  EXPECT_EQ(choose_point(*parse_goal("latency<1ms"), {good, better}), 0)
      << "with a time to keep, the more accurate one";
  EXPECT_EQ(choose_point(goal, {}), -1);
}

TEST_F(TuneFolder, AResultCountsOnlyWithItsFilesAsTheyWere) {
  const std::string name = "a_int8.tflite";
  {
    Store store(folder_.string());
    store.set_context("one");
    ASSERT_TRUE(store.save("quantize x", {{"accuracy", 0.5}}, {{name, {1, 2, 3}}}).ok());
  }
  Store store(folder_.string());
  store.set_context("one");
  ASSERT_TRUE(store.find("quantize x"));
  EXPECT_EQ(store.find("quantize x")->value("accuracy", 0.0), 0.5);
  EXPECT_FALSE(store.find("quantize y"));
  EXPECT_EQ(store.files_of("quantize x").size(), 2u);
  Store other(folder_.string());
  other.set_context("two");
  EXPECT_FALSE(other.find("quantize x")) << "other samples, another program: another result";
  std::ofstream(path(name), std::ios::binary) << "other";
  Store damaged(folder_.string());
  damaged.set_context("one");
  EXPECT_FALSE(damaged.find("quantize x"));
  std::ofstream(path(store.record_name("quantize x"))) << "{ not JSON";
  EXPECT_FALSE(damaged.find("quantize x"));
}

TEST_F(TuneFolder, HashesFollowContentsAndNames) {
  const std::string a = path("a.bin"), b = path("b.bin");
  std::ofstream(a) << "samples";
  std::ofstream(b) << "samples";
  Store store(folder_.string());
  const auto of_a = store.hash_of_files({a}, ""), again = store.hash_of_files({a}, ""),
             of_b = store.hash_of_files({b}, "");
  ASSERT_TRUE(of_a.ok() && again.ok() && of_b.ok());
  EXPECT_EQ(*of_a, *again);
  EXPECT_NE(*of_a, *of_b) << "names can decide what is right";
  // As on another machine: below another folder, and a file that stood elsewhere put into it.
  for (const char* place : {"here/set", "there"}) fs::create_directories(folder_ / place);
  for (const char* name : {"here/set/1.png", "there/1.png"}) std::ofstream(path(name)) << "picture";
  for (const char* name : {"here/labels.txt", "there/labels.txt"}) std::ofstream(path(name)) << "labels";
  EXPECT_EQ(*store.hash_of_files({path("here/set/1.png"), path("here/labels.txt")}, path("here/set")),
            *store.hash_of_files({path("there/labels.txt"), path("there/1.png")}, path("there")));
  std::ofstream(a) << "Samples";
  EXPECT_NE(*store.hash_of_files({a}, ""), *of_a);
}

// A model whose float bodies, quantization and times follow simple rules.
class MadeUpModel {
 public:
  explicit MadeUpModel(Store& store) : store_(store) {}
  double quantization_loss = 0.004;
  bool streams = false, compiles = true;

  void answer(const Task& task) {
    ++asked[to_text(task)];
    const Choices& c = task.choices;
    const double size = c.height == 0 ? 1 : c.height / 32.0;
    const double accuracy = 0.9 - 0.08 * c.cut * c.cut - 0.5 * (1 - size);
    const double ms = (1 - 0.5 * c.cut) * (0.3 + 0.7 * size * size);
    Json json;
    std::vector<Store::File> files;
    switch (task.kind) {
      case TaskKind::kSurvey:
        json = {{"metric", "top1"},
                {"unit", ""},
                {"sizes", {{28, 28}, {16, 16}}},
                {"choosing_samples", 1000},
                {"reporting_samples", 1000},
                {"float_accuracy", 0.9}};
        break;
      case TaskKind::kFloat:
        json = {
            {"accuracy", accuracy}, {"estimated_ms", ms}, {"parameters", 1000}, {"streamed_bytes", streams ? 64 : 0}};
        break;
      case TaskKind::kStudy:
        json["bodies"] = Json::array();
        for (const double cut : {0.2, 0.4, 0.6}) {
          json["bodies"].push_back({{"cut", cut},
                                    {"estimated_ms", ms * (1 - 0.5 * cut)},
                                    {"parameters", 500},
                                    {"streamed_bytes", streams ? 64 : 0}});
        }
        break;
      case TaskKind::kBody:
        json = {{"accuracy", accuracy}};
        break;
      case TaskKind::kQuantize:
        json = {{"accuracy", accuracy - quantization_loss},
                {"standard_error", 0.001},
                {"file", tag_of(c)},
                {"hash", c.quantizer == "minmax" ? tag_of(body_of(c)) + "default" : tag_of(body_of(c)) + c.quantizer}};
        break;
      case TaskKind::kCompile:
        json = {{"simulated_ms", 1.1 * ms * (c.level == 2 ? 0.9 : 1) / c.segments},
                {"files", {tag_of(c)}},
                {"streamed_bytes", streams && c.segments == 1 ? 64 : 0},
                {"operators", 9},
                {"operators_on_edgetpu", 9}};
        if (!compiles) json = {{"error", "an operator has no code"}};
        break;
      case TaskKind::kReport:
        json = {{"accuracy", accuracy - 0.001}};
        break;
    }
    ASSERT_TRUE(store_.save(to_text(task), json, std::move(files)).ok());
  }

  std::map<std::string, int> asked;

 private:
  Store& store_;
};

// Until nothing is missing; `order`: which of the pending tasks is done first.
void run_to_end(Search& search, MadeUpModel& model, bool backwards = false, int most = 1000) {
  for (int done = 0; done < most;) {
    auto tasks = search.next();
    ASSERT_TRUE(tasks.ok()) << tasks.status().message();
    if (tasks->empty()) return;
    if (backwards) std::reverse(tasks->begin(), tasks->end());
    for (const Task& task : *tasks) {
      if (done++ == most) return;
      model.answer(task);
    }
  }
}

std::vector<std::string> names_of(const Search& search) {
  std::vector<std::string> names;
  for (const Point& point : search.points()) names.push_back(tag_of(point.choices) + (point.is_on_front ? "*" : ""));
  return names;
}

TEST_F(TuneFolder, TheSearchBuildsAFrontAndMeasuresNothingTwice) {
  Store store(folder_.string());
  store.set_context("made up");
  MadeUpModel model(store);
  Search search({.goal = {}, .points = 10, .devices = 1}, store);
  run_to_end(search, model);
  ASSERT_EQ(search.points().size(), 10u);
  for (const auto& [task, times] : model.asked) EXPECT_EQ(times, 1) << task;
  std::set<std::string> names;
  int on_front = 0;
  for (const Point& point : search.points()) {
    names.insert(tag_of(point.choices));
    on_front += point.is_on_front ? 1 : 0;
    EXPECT_TRUE(point.report_accuracy);
    for (const Point& other : search.points()) {
      if (point.is_on_front) {
        EXPECT_FALSE(other.simulated_ms < point.simulated_ms && other.accuracy > point.accuracy);
      }
    }
  }
  EXPECT_EQ(names.size(), 10u) << "no point twice";
  EXPECT_TRUE(names.contains("default"));
  EXPECT_GE(on_front, 3);
  EXPECT_FALSE(names.contains("16x16")) << "it was measured to lose a quarter of the accuracy: not worth a file";
}

TEST_F(TuneFolder, OrderAndInterruptionsDoNotChangeTheResult) {
  std::vector<std::string> names[2];
  for (int i = 0; i < 2; ++i) {
    Store store(path(fmt::format("{}", i)));
    store.set_context("made up");
    MadeUpModel model(store);
    if (i == 1) {  // killed in the middle, three times
      for (int kill = 0; kill < 3; ++kill) {
        Search search({.goal = {}, .points = 8, .devices = 1}, store);
        run_to_end(search, model, true, 7);
      }
    }
    Store again(path(fmt::format("{}", i)));
    again.set_context("made up");
    MadeUpModel rest(again);
    Search search({.goal = {}, .points = 8, .devices = 1}, again);
    run_to_end(search, rest, i == 1);
    names[i] = names_of(search);
    for (const auto& [task, times] : rest.asked) EXPECT_FALSE(model.asked.contains(task)) << task;
  }
  EXPECT_EQ(names[0], names[1]);
}

TEST_F(TuneFolder, AGoalIsSearchedFor) {
  Store store(folder_.string());
  store.set_context("made up");
  MadeUpModel model(store);
  Search search({.goal = *parse_goal("latency<0.8ms"), .points = 6, .devices = 1}, store);
  run_to_end(search, model);
  ASSERT_GE(search.chosen(), 0);
  const Point& chosen = search.points()[at(search.chosen())];
  EXPECT_LE(chosen.simulated_ms, 0.8);
  EXPECT_EQ(miss_of(*parse_goal("latency<0.8ms"), search.figures_of(chosen)), 0);
  EXPECT_GT(chosen.accuracy, 0.87);
}

TEST_F(TuneFolder, WaysToQuantizeAreTriedWhereQuantizationCosts) {
  for (const double loss : {0.0, 0.03}) {
    Store store(path(fmt::format("{}", loss)));
    store.set_context("made up");
    MadeUpModel model(store);
    model.quantization_loss = loss;
    Search search({.goal = {}, .points = 20, .devices = 1}, store);
    run_to_end(search, model);
    const bool tried = std::any_of(model.asked.begin(), model.asked.end(), [](const auto& one) {
      return one.first.find("quantizer=mse") != std::string::npos;
    });
    EXPECT_EQ(tried, loss > 0);
    for (const auto& [task, times] : model.asked) {
      EXPECT_FALSE(task.starts_with("compile") && task.find("quantizer=minmax") != std::string::npos)
          << "it gives the same bytes as the default";
    }
  }
}

TEST_F(TuneFolder, SegmentsAreForModelsThatStreamAndForThoseWithDevices) {
  for (const int devices : {1, 2}) {
    Store store(path(fmt::format("{}", devices)));
    store.set_context("made up");
    MadeUpModel model(store);
    model.streams = true;
    Search search({.goal = *parse_goal("fit"), .points = 20, .devices = devices}, store);
    run_to_end(search, model);
    const bool is_cut = std::any_of(search.points().begin(), search.points().end(),
                                    [](const Point& point) { return point.choices.segments > 1; });
    EXPECT_EQ(is_cut, devices > 1);
    const Point& chosen = search.points()[at(search.chosen())];
    EXPECT_EQ(chosen.streamed_bytes > 0, devices == 1);
  }
}

TEST_F(TuneFolder, AModelThatDoesNotCompileIsAnErrorWithTheReason) {
  Store store(folder_.string());
  store.set_context("made up");
  MadeUpModel model(store);
  model.compiles = false;
  Search search({.goal = {}, .points = 6, .devices = 1}, store);
  while (true) {
    const auto tasks = search.next();
    if (!tasks.ok()) {
      EXPECT_NE(tasks.status().message().find("has no code"), std::string::npos);
      return;
    }
    ASSERT_FALSE(tasks->empty());
    for (const Task& task : *tasks) model.answer(task);
  }
}

TEST_F(TuneFolder, ATimeLimitLeavesWhatIsBuilt) {
  Store store(folder_.string());
  store.set_context("made up");
  MadeUpModel model(store);
  Search search({.goal = {}, .points = 12, .devices = 1}, store);
  run_to_end(search, model, false, 20);
  while (true) {
    const auto tasks = search.next(/*only_reports=*/true);
    ASSERT_TRUE(tasks.ok());
    if (tasks->empty()) break;
    for (const Task& task : *tasks) {
      EXPECT_EQ(task.kind, TaskKind::kReport);
      model.answer(task);
    }
  }
  EXPECT_GE(search.points().size(), 1u);
  EXPECT_LT(search.points().size(), 12u);
}

}  // namespace
}  // namespace reef::tune
