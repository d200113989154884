// SPDX-License-Identifier: Apache-2.0
#include "quantize/reading.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "passes/float/test_graph.h"

namespace reef::quantize {
namespace {

using passes::testing::Maker;

// 16 samples of one output: rows of `row` random numbers, the largest far above the others or just above them.
Outputs rows_of(int rows, int row, float lead, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(0, 0.1f);
  Outputs outputs(16);
  for (auto& sample : outputs) {
    std::vector<float>& values = sample.emplace_back();
    for (int r = 0; r < rows; ++r) {
      for (int i = 0; i < row; ++i) values.push_back(draw(random));
      values[values.size() - static_cast<std::size_t>(1 + r % row)] += lead;
    }
  }
  return outputs;
}

Outputs with_noise(Outputs outputs, float size, unsigned seed = 9) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(0, size);
  for (auto& sample : outputs) {
    for (float& v : sample[0]) v += draw(random);
  }
  return outputs;
}

// Adds `size` to the second element of every row: small beside the signal, but another class where it is enough.
Outputs with_another_class(Outputs outputs, int row, float size) {
  for (auto& sample : outputs) {
    for (std::size_t i = 1; i < sample[0].size(); i += static_cast<std::size_t>(row)) sample[0][i] += size;
  }
  return outputs;
}

// Scores of places in front of a sigmoid: nearly all far below 0.
Outputs logits_of(float of_the_few) {
  std::mt19937 random(3);
  std::normal_distribution<float> draw(-9, 2);
  Outputs outputs(16);
  for (auto& sample : outputs) {
    std::vector<float>& values = sample.emplace_back(200);
    for (float& v : values) v = std::min(draw(random), -3.0f);
    for (std::size_t i = 0; i < 4; ++i) values[50 * i] = of_the_few;
  }
  return outputs;
}

TEST(Reading, ScoresInFrontOfASigmoidAreRecognizedAndMayOnlyVeto) {
  Maker make;
  const ir::Model model = make.finish({make.reshape(make.dense(make.input({1, 20}), 200), {1, 200, 1})});
  const Outputs reference = logits_of(1);
  const std::vector<View> views = views_of(model, reference);
  ASSERT_EQ(views.size(), 1u);
  EXPECT_EQ(views[0].read_as, ReadAs::kLogits);
  EXPECT_EQ(views_of(model, logits_of(-5))[0].read_as, ReadAs::kNumbers);                 // nothing is ever found
  EXPECT_EQ(views_of(model, with_noise(logits_of(1), 30))[0].read_as, ReadAs::kNumbers);  // half of it is positive

  const ViewError same = look_at(views[0], reference, reference);
  const ViewError nearer = look_at(views[0], reference, with_noise(reference, 0.05f));
  const ViewError lost = look_at(views[0], reference, logits_of(-2));
  EXPECT_EQ(same.agreement, 1);
  EXPECT_EQ(nearer.agreement, 1);
  EXPECT_EQ(lost.agreement, 0);
  EXPECT_EQ(why_worse({same}, {nearer}), "");
  EXPECT_NE(why_worse({nearer}, {lost}), "");
  EXPECT_GT(lost.sqnr_db, kUsableDb);  // the many below hide it
  EXPECT_EQ(why_useless(lost), "");    // a guess gives no output up
}

TEST(Reading, OutputsAreReadByWhatMakesThem) {
  Maker make;
  const int x = make.input({1, 20});
  const int logits = make.dense(x, 40);
  const int letters = make.op("SOFTMAX", "SoftmaxOptions", Maker::attributes({{"beta", 1.0}}),
                              {make.reshape(logits, {1, 8, 5})}, {1, 8, 5});
  const int scores = make.reshape(make.unary("LOGISTIC", logits), {1, 10, 4});
  const int numbers = make.reshape(logits, {1, 10, 4});
  const ir::Model model = make.finish({letters, scores, numbers, logits});
  const Outputs reference = {{std::vector<float>(40, 0.2f), std::vector<float>(40, 0.7f), std::vector<float>(40, 3),
                              std::vector<float>(40, 3)}};
  const std::vector<View> views = views_of(model, reference);
  ASSERT_EQ(views.size(), 4u);
  EXPECT_EQ(views[0].read_as, ReadAs::kClasses);
  EXPECT_EQ(views[0].row, 5);
  EXPECT_EQ(views[1].read_as, ReadAs::kScores);
  EXPECT_EQ(views[2].read_as, ReadAs::kNumbers);
  EXPECT_EQ(views[3].read_as, ReadAs::kClasses);
  EXPECT_EQ(views[3].row, 40);
}

// What a text recognizer suffered from: nearer to the float model on average, but other letters.
// The largest of many coordinates is no class: the next is hardly smaller.
TEST(Reading, CoordinatesAreNoClasses) {
  Maker make;
  const ir::Model model = make.finish({make.dense(make.input({1, 20}), 300)});
  Outputs landmarks(12), classes(12);
  std::mt19937 random(5);
  std::normal_distribution<float> draw(0, 1);
  for (std::size_t s = 0; s < landmarks.size(); ++s) {
    landmarks[s].emplace_back();
    classes[s].emplace_back();
    for (int i = 0; i < 300; ++i) {
      landmarks[s][0].push_back(100 + 80 * std::sin(0.02f * static_cast<float>(i)) + 0.1f * draw(random));
      classes[s][0].push_back(draw(random));
    }
  }
  EXPECT_EQ(views_of(model, landmarks)[0].read_as, ReadAs::kNumbers);
  EXPECT_EQ(views_of(model, classes)[0].read_as, ReadAs::kClasses);
}

TEST(Reading, OtherClassesAreWorseAtMoreDecibels) {
  const View view{0, ReadAs::kClasses, 10};
  const Outputs reference = rows_of(20, 10, 0.2f);
  const ViewError before = look_at(view, reference, with_noise(reference, 0.05f));
  const ViewError after = look_at(view, reference, with_another_class(reference, 10, 0.25f));
  EXPECT_GT(after.sqnr_db, before.sqnr_db - 30);
  EXPECT_LT(after.agreement, before.agreement);
  EXPECT_NE(why_worse({before}, {after}).find("classes"), std::string::npos);
  EXPECT_EQ(why_worse({after}, {before}), "");
  EXPECT_EQ(why_worse({before}, {before}), "");
}

TEST(Reading, OneSampleOfManyIsChance) {
  const auto with_changed = [](std::size_t changed) {
    ViewError error;
    error.view = View{0, ReadAs::kClasses, 10};
    error.sqnr_db = 30;
    error.asked.assign(16, 1);
    error.agreed.assign(16, 1);
    std::fill_n(error.agreed.begin(), changed, 0);
    error.agreement = 1 - static_cast<double>(changed) / 16;
    return error;
  };
  EXPECT_EQ(why_worse({with_changed(0)}, {with_changed(1)}), "");
  EXPECT_NE(why_worse({with_changed(0)}, {with_changed(3)}), "");
  EXPECT_EQ(why_worse({with_changed(3)}, {with_changed(0)}), "");
}

// Scores of a detector: many that mean nothing, a few above the threshold.
TEST(Reading, LostBoxesAreWorse) {
  const View view{0, ReadAs::kScores};
  const Outputs reference = rows_of(4, 200, 0.6f);
  Outputs dead = reference;
  for (auto& sample : dead) {
    for (float& v : sample[0]) v = v > 0.5f ? 0.2f : v;
  }
  const ViewError whole = look_at(view, reference, with_noise(reference, 0.01f)), lost = look_at(view, reference, dead);
  EXPECT_EQ(whole.agreement, 1);
  EXPECT_EQ(lost.agreement, 0);
  EXPECT_NE(why_worse({whole}, {lost}), "");
  EXPECT_EQ(why_useless(whole), "");
  EXPECT_NE(why_useless(lost), "");
  EXPECT_EQ(missing_db({whole}), 0);
  EXPECT_GT(missing_db({lost}), 0);
}

// Narrower ranges: fewer roundings of the many that nobody looks at, but the few large ones are cut off. None of them
// falls below a threshold yet.
TEST(Reading, LargestScoresThatAreCutOffAreWorse) {
  const View view{0, ReadAs::kLogits};
  const Outputs reference = logits_of(4);
  Outputs cut = with_noise(reference, 0.05f);
  for (auto& sample : cut) {
    for (float& v : sample[0]) v = std::min(v, 0.2f);
  }
  const ViewError wide = look_at(view, reference, with_noise(reference, 0.8f)), narrow = look_at(view, reference, cut);
  EXPECT_GT(narrow.sqnr_db, wide.sqnr_db);
  EXPECT_EQ(narrow.agreement, 1);
  EXPECT_NE(why_worse({wide}, {narrow}).find("largest scores"), std::string::npos);
  EXPECT_EQ(why_worse({narrow}, {look_at(view, reference, with_noise(reference, 0.05f))}), "");
}

TEST(Reading, ScoresOfADetectorThatSeesNothingAreUsable) {
  const View view{0, ReadAs::kScores};
  const Outputs reference = with_noise(rows_of(4, 200, 0), 0);
  Outputs zero = reference;
  for (auto& sample : zero) std::fill(sample[0].begin(), sample[0].end(), 0.05f);
  const ViewError error = look_at(view, reference, zero);
  EXPECT_LT(error.sqnr_db, kUsableDb);
  EXPECT_EQ(why_useless(error), "");
  EXPECT_NE(why_useless(look_at(View{}, reference, zero)), "");  // as numbers, they are lost
}

// The best boxes in the order of their scores: a rounding changes places, not boxes.
TEST(Reading, RowsOfASelectionAreComparedInAnyOrder) {
  Maker make;
  const int x = make.input({1, 20});
  const int values = make.add_tensor({1, 5}), places = make.add_tensor({1, 5}, ir::DataType::kInt32);
  make.add("TOPK_V2", "TopKV2Options", {}, {x, make.scalar(5)}, {values, places});
  const Outputs reference = {{{0.9f, 0.8f, 0.7f, 0.6f, 0.1f}}}, turned = {{{0.8f, 0.9f, 0.7f, 0.1f, 0.6f}}};
  const std::vector<View> views = views_of(make.finish({make.reshape(values, {1, 5, 1})}), reference);
  ASSERT_EQ(views.size(), 1u);
  EXPECT_EQ(views[0].selected_row, 1);
  EXPECT_EQ(look_at(views[0], reference, turned).agreement, 1);
  EXPECT_GT(look_at(views[0], reference, turned).sqnr_db, 100);
  EXPECT_LT(look_at(View{0, ReadAs::kScores}, reference, turned).sqnr_db, 20);
}

// One output may not pay for another.
TEST(Reading, AnOutputThatLosesIsWorseWhateverOthersGain) {
  const Outputs reference = rows_of(10, 10, 1);
  const ViewError clear = look_at(View{}, reference, with_noise(reference, 0.01f));
  const ViewError noisy = look_at(View{}, reference, with_noise(reference, 0.1f));
  const ViewError noisier = look_at(View{}, reference, with_noise(reference, 0.2f));
  EXPECT_NE(why_worse({noisy, noisy}, {clear, noisier}), "");
  EXPECT_EQ(why_worse({noisy, noisy}, {clear, noisy}), "");
  // Far above what matters, some of it may go.
  const ViewError perfect = look_at(View{}, reference, with_noise(reference, 0.001f));
  EXPECT_EQ(why_worse({noisy, perfect}, {clear, clear}), "");
}

}  // namespace
}  // namespace reef::quantize
