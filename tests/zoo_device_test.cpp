// SPDX-License-Identifier: Apache-2.0
// Every compiled file of the model collection on the virtual device, against the chip reference (chip_reference.h) on
// the model it was compiled from: what the chip sends must be equal to the last byte. Beside it, how far both are from
// TFLite's own numerics.
//
// Nothing of the two paths is shared but the definition of rounding: one executes Google's instructions and parameter
// bytes, the other the source's ops.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <future>
#include <memory>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "chip_reference.h"
#include "execute/device/device.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "zoo.h"
#include "zoo_pairs.h"

namespace reef::testing {
namespace {

// Two files, of one output value each, take many seconds a picture on the virtual device, and some a few tenths.
int pictures_for(const Pair& pair) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> folders) {
    return std::any_of(folders.begin(), folders.end(), [&](std::string_view f) { return pair.name.starts_with(f); });
  };
  if (is_one_of({"op_model_conv_128x128x3x32x7x10/", "op_model_mat_Add/"})) return 1;
  if (is_one_of({"deeplabv3_", "posenet_", "mobilenet_v1_1.0_", "mobilenet_v2_"})) return 2;
  return 3;
}

// ---- Comparison ----

struct Report {
  int pictures = 0;
  std::int64_t values = 0, equal = 0;
  int largest_difference = 0;
  std::size_t distinct = 0;  // different values among those compared: few make a weak test
  Differences from_tflite;
  bool has_softmax = false;
  std::size_t ops = 0;  // of the source
};

class Comparison {
 public:
  static Result<Comparison> create(const Pair& pair) {
    Comparison c;
    c.pair_ = pair;
    REEF_ASSIGN_OR_RETURN(c.source_, tflite::load_model(pair.source));
    REEF_ASSIGN_OR_RETURN(const ir::Model compiled, tflite::load_model(pair.compiled));
    for (const ir::Operator& op : compiled.subgraphs[0].operators) {
      if (op.type != darwinn::kCustomOpName) continue;
      REEF_REQUIRE(c.package_ == nullptr, "several Edge TPU ops");
      REEF_ASSIGN_OR_RETURN(darwinn::CustomOptions options, darwinn::read_custom_options(op.custom_options));
      REEF_ASSIGN_OR_RETURN(c.package_, device::LoadedPackage::load(std::move(options.package)));
    }
    REEF_REQUIRE(c.package_ != nullptr, "no Edge TPU op");
    for (const darwinn::Layer& layer : c.package_->outputs()) c.wanted_.push_back(layer.name);
    c.report_.ops = c.source_.subgraphs[0].operators.size();
    for (const ir::Operator& op : c.source_.subgraphs[0].operators) c.report_.has_softmax |= op.type == "SOFTMAX";
    return c;
  }

  Status run(Picture kind) {
    std::mt19937 random(7 + static_cast<unsigned>(kind));
    NamedBytes given;
    std::vector<std::span<const std::uint8_t>> inputs;
    for (const darwinn::Layer& layer : package_->inputs()) {
      const ir::Tensor* tensor = find_tensor(source_, layer.name);
      REEF_REQUIRE(tensor != nullptr, "the source has no tensor '{}'", layer.name);
      const bool rests = tensor->is_variable && kind != Picture::kExtremes;
      given[layer.name] = rests ? state_at_rest(*tensor) : picture(kind, layer, random);
      inputs.emplace_back(given[layer.name]);
    }
    REEF_ASSIGN_OR_RETURN(const auto results, device_->run(package_, inputs));
    REEF_ASSIGN_OR_RETURN(const NamedBytes expected,
                          evaluate_as_chip(source_, given, wanted_, {.compiler_generation = pair_.generation}));
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      REEF_RETURN_IF_ERROR(compare(wanted_[i], results[i], expected.at(wanted_[i])));
    }
    ++report_.pictures;
    report_.distinct = distinct_.size();
    // TFLite's SOFTMAX overflows for extreme pictures, and a state is not at rest there.
    return kind == Picture::kExtremes ? ok_status() : compare_with_tflite(given, results);
  }

  const Report& report() const { return report_; }

 private:
  const ir::Tensor& tensor_of(std::string name) const {
    const std::string suffix = kVariableOutputSuffix;
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    return *find_tensor(source_, name);
  }

  Status compare(const std::string& name, const std::vector<std::uint8_t>& found,
                 const std::vector<std::uint8_t>& expected) {
    REEF_REQUIRE(found.size() == expected.size(), "'{}' has {} bytes, not {}", name, found.size(), expected.size());
    const ir::Tensor& tensor = tensor_of(name);
    const std::vector<int> a = elements(tensor, found), b = elements(tensor, expected);
    for (std::size_t i = 0; i < a.size(); ++i) {
      ++report_.values;
      report_.equal += a[i] == b[i];
      report_.largest_difference = std::max(report_.largest_difference, std::abs(a[i] - b[i]));
      distinct_.insert(a[i]);
    }
    return ok_status();
  }

  Status compare_with_tflite(const NamedBytes& given, const std::vector<std::vector<std::uint8_t>>& results) {
    REEF_ASSIGN_OR_RETURN(const NamedBytes expected, evaluate_as_tflite(source_, given, wanted_));
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const auto of_tflite = expected.find(wanted_[i]);
      if (of_tflite == expected.end()) continue;  // a variable's new value
      const ir::Tensor& tensor = tensor_of(wanted_[i]);
      const std::vector<int> a = elements(tensor, results[i]), b = elements(tensor, of_tflite->second);
      for (std::size_t k = 0; k < a.size(); ++k) report_.from_tflite.add(a[k], b[k]);
    }
    return ok_status();
  }

  Pair pair_;
  ir::Model source_;
  std::shared_ptr<const device::LoadedPackage> package_;
  std::unique_ptr<device::Device> device_ = std::make_unique<device::Device>();
  std::vector<std::string> wanted_;
  std::set<int> distinct_;
  Report report_;
};

struct Outcome {
  Pair pair;
  Status status;
  Report report;
};

void run(Outcome& outcome) {
  auto comparison = Comparison::create(outcome.pair);
  outcome.status = comparison.ok() ? ok_status() : comparison.status();
  for (int i = 0; i < pictures_for(outcome.pair) && outcome.status.ok(); ++i)
    outcome.status = comparison->run(kPictures[i]);
  if (comparison.ok()) outcome.report = comparison->report();
}

// On two threads, files that take long first.
void run_all(std::vector<Outcome>& outcomes) {
  std::vector<Outcome*> order;
  for (Outcome& outcome : outcomes) order.push_back(&outcome);
  std::stable_sort(order.begin(), order.end(),
                   [](const Outcome* a, const Outcome* b) { return pictures_for(a->pair) < pictures_for(b->pair); });
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < order.size(); i = next++) run(*order[i]);
  };
  auto other = std::async(std::launch::async, work);
  work();
  other.wait();
}

void print(const Outcome& outcome) {
  const Report& r = outcome.report;
  fmt::print("{:<80.80} {} {:7}/{:7} {:3} {}\n", outcome.pair.name, r.pictures, r.equal, r.values, r.distinct,
             r.from_tflite.to_string());
}

// A layer differs by at most one (zoo_numerics_test.cpp). Behind several, roundings add up and are amplified: bounds by
// depth. The two states of a recurrent network are fed back 28 times.
void expect_close_to_tflite(const Outcome& outcome) {
  const Report& r = outcome.report;
  constexpr std::size_t kFewOps = 12;
  const double least_equal = r.ops <= kFewOps && !r.has_softmax ? 0.97 : 0.45;
  const double least_within_one = r.ops <= kFewOps && !r.has_softmax ? 1.0 : 0.70;
  EXPECT_GE(r.from_tflite.share(0), least_equal) << outcome.pair.name;
  EXPECT_GE(r.from_tflite.share(1), least_within_one) << outcome.pair.name;
  EXPECT_LE(r.from_tflite.largest, 40) << outcome.pair.name;
}

TEST(ZooDevice, GivesTheBytesOfTheChipReference) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  std::vector<Outcome> outcomes;
  for (Pair& pair : pairs_of(zoo)) outcomes.push_back({std::move(pair), ok_status(), {}});
  run_all(outcomes);
  fmt::print(
      "pictures, values equal to the reference's, different values among them; of TFLite's, % equal, one apart, two "
      "apart, further, and the furthest\n");
  std::int64_t values = 0;
  Differences from_tflite;
  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.status.ok()) << outcome.pair.name << ": " << outcome.status.message();
    print(outcome);
    EXPECT_EQ(outcome.report.equal, outcome.report.values)
        << outcome.pair.name << ": the largest difference is " << outcome.report.largest_difference;
    EXPECT_GT(outcome.report.values, 0) << outcome.pair.name;
    expect_close_to_tflite(outcome);
    values += outcome.report.values;
    from_tflite.add(outcome.report.from_tflite);
  }
  fmt::print("{} files, {} values; of TFLite's {} {}\n", outcomes.size(), values, from_tflite.all(),
             from_tflite.to_string());
  EXPECT_GE(from_tflite.share(0), 0.85);
  EXPECT_GE(from_tflite.share(1), 0.96);
  EXPECT_GE(outcomes.size(), 58u);
}

}  // namespace
}  // namespace reef::testing
