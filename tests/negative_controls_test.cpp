// SPDX-License-Identifier: Apache-2.0
// What the virtual device notices: programs of the model collection with one field changed (corruption.h) run on it
// with two inputs in a row. A change is noticed if the device reports an error, an output differs, or it finds accesses
// that nothing orders where the unchanged program has none (timeline.h).
//
// What goes unnoticed is run again in other orders of the units, some of which starve one kind of unit: a change that
// matters would show in one of them.
//
// REEF_CORRUPTIONS and REEF_CORRUPTION_SEED choose how many and which; REEF_CORRUPTION_LIST=1 lists every one of them,
// not only those that went unnoticed.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "corruption.h"
#include "execute/device/device.h"
#include "execute/device/timeline.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "trials.h"
#include "zoo.h"
#include "zoo_pairs.h"

namespace reef::testing {
namespace {

using Tensors = std::vector<std::vector<std::uint8_t>>;

// Programs of all compiler generations with every kind of instruction, small enough to be run hundreds of times.
// Networks of one or two output values are left out: these hardly depend on the data.
constexpr const char* kFiles[] = {"dense_256/",
                                  "dense_512/",
                                  "gabor_64x64_p4/",
                                  "gabor_64x64_7k_4o_2s/",
                                  "gabor_128x128_p4/",
                                  "looming_64x64_3x3/",
                                  "op_model_padding_2x2x3/",
                                  "op_model_padding_64x64x3/",
                                  "op_model_padding_128x64x3/",
                                  "mnist_dense/",
                                  "rl_mlp_tanh/",
                                  "split_concat/",
                                  "keras_lstm_mnist_ptq/",
                                  "asr_tflite_model_ASR_Model/",
                                  "asr_tflite_model_test_compile_fm15_ASR_Model10/",
                                  "conv_k3_p32_anchor_conv2d_12x128x32_to_32_k3_s1_same_quant/",
                                  "conv_k3_p32_targets_h12_w184_conv2d_12x184x32_to_32_k3_s1_same_quant/",
                                  "mobilenet_v1_0.25_128_quant/"};

// ---- Running ----

struct Run {
  Status status;
  std::vector<Tensors> outputs;  // by input
  std::int64_t steps = 0;        // of the longest run
  std::set<std::string> races;
};

// What distinguishes one race from another, whatever its times.
std::string key_of(const device::ProgramRecord& record, const device::Race& race) {
  return fmt::format("{} {} {} {} {}", static_cast<int>(record.program->type), static_cast<int>(race.kind),
                     race.first_index, race.second_index, race.breaks_the_order());
}

// On a fresh device: the parameter-caching program, then each of the inputs.
Run run_package(darwinn::Package package, const std::vector<Tensors>& inputs, const device::Options& options) {
  Run run;
  auto loaded = device::LoadedPackage::load(std::move(package));
  if (!loaded.ok()) return {loaded.status(), {}, 0, {}};
  device::Device device(options);
  device::Timeline timeline({.timing = {}, .find_races = true});
  device.set_observer(&timeline);
  device.set_queue_depths(device::kShallowQueues);
  for (const Tensors& tensors : inputs) {
    const std::vector<std::span<const std::uint8_t>> spans(tensors.begin(), tensors.end());
    auto result = device.run(*loaded, spans);
    run.steps = std::max(run.steps, device.chip().steps());
    for (const device::ProgramRecord& record : timeline.take_records()) {
      for (const device::Race& race : record.races) run.races.insert(key_of(record, race));
    }
    if (!result.ok()) {
      run.status = result.status();
      return run;
    }
    run.outputs.push_back(std::move(*result));
  }
  return run;
}

Run run_in_order(darwinn::Package package, const std::vector<Tensors>& inputs, const device::Schedule& order,
                 std::int64_t usual_steps) {
  Run run;
  auto loaded = device::LoadedPackage::load(std::move(package));
  if (!loaded.ok()) return {loaded.status(), {}, 0, {}};
  device::Options options;
  options.max_cycles = 4 * usual_steps + 100'000;
  device::Device device(options);
  device.set_schedule(order);
  const std::vector<std::span<const std::uint8_t>> spans(inputs[0].begin(), inputs[0].end());
  auto result = device.run(*loaded, spans);
  run.status = result.status();
  if (result.ok()) run.outputs.push_back(std::move(*result));
  return run;
}

// The unchanged program in other orders of the units: each is run when it is first asked for, and kept.
class RunsInOrder {
 public:
  const Run& at(std::size_t order, const std::function<Run()>& make) {
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = runs_.try_emplace(order);
    if (is_new) found->second = make();
    return found->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::size_t, Run> runs_;
};

// A compiled file with what it gives when nothing is changed.
struct Subject {
  std::string name;
  darwinn::Package original;
  CorruptiblePackage package;
  std::vector<Tensors> inputs;
  Run right;
  std::shared_ptr<RunsInOrder> right_in_order = std::make_shared<RunsInOrder>();
};

Result<Subject> make_subject(const std::string& name, const std::string& path) {
  REEF_ASSIGN_OR_RETURN(darwinn::Package package, package_of(path));
  REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(package));
  Subject subject;
  subject.name = name;
  std::mt19937 random(11);
  for (int i = 0; i < 2; ++i) {
    Tensors& tensors = subject.inputs.emplace_back();
    for (const darwinn::Layer& layer : loaded->inputs()) {
      auto& bytes = tensors.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)));
      for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    }
  }
  subject.right = run_package(package, subject.inputs, {});
  REEF_RETURN_IF_ERROR(subject.right.status);
  subject.original = package;
  REEF_ASSIGN_OR_RETURN(subject.package, CorruptiblePackage::create(std::move(package)));
  return subject;
}

std::vector<Subject> subjects_of(const std::string& zoo) {
  std::vector<Subject> subjects;
  const std::string folder = zoo + "/pairs/";
  for (const char* pair : kFiles) {
    for (const std::string& path : tflite_files(folder + pair)) {
      const std::string name = path.substr(folder.size());
      if (!std::filesystem::path(path).filename().string().starts_with('v')) continue;
      if (name.find("cocompiled") != std::string::npos) continue;  // the same instructions once more
      auto subject = make_subject(name, path);
      EXPECT_TRUE(subject.ok()) << name << ": " << subject.status().message();
      if (subject.ok()) subjects.push_back(std::move(*subject));
    }
  }
  return subjects;
}

// ---- Judging ----

struct Trial {
  const Subject* subject = nullptr;
  Corruption corruption;
  std::string verdict;  // empty: unnoticed
  std::string message;
  bool shows_in_another_order = false;  // of those that went unnoticed
};

std::string kind_of_error(const std::string& message) {
  static constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"stands still", "standstill"},
      {"nothing wrote", "output from memory that nothing wrote"},
      {"are left on", "lines or words left over"},
      {"asked for and not taken", "transfer left over"},
      {"promised and not sent", "transfer left over"},
      {"was not asked to take", "transfer left over"},
      {"the host more than", "transfer left over"},
      {"of narrow memory", "address beyond a memory"},
      {"of wide memory", "address beyond a memory"},
      {"of scaling memory", "address beyond a memory"},
      {"a transfer of", "transfer outside of the host's buffers"},
      {"a transfer with", "transfer with an unknown tag"},
      {"steps, the loops", "loop nests that contradict each other"},
      {"is complete, its", "loop nests that contradict each other"},
      {"the nest they are stored by", "loop nests that contradict each other"},
      {"before what is there was taken", "buffer overwritten"},
      {"where nothing new is", "buffer read too early"},
      {"are left in the buffer", "units left in a buffer"},
      {"nobody waited for a notification", "notification left over"},
      {"takes more than", "program without end"},
  };
  for (const auto& [part, kind] : kKinds) {
    if (message.find(part) != std::string::npos) return std::string(kind);
  }
  return "another error";
}

void judge(Trial& trial) {
  device::Options options;
  options.max_cycles = 4 * trial.subject->right.steps + 100'000;
  auto package = trial.subject->package.with(trial.corruption);
  ASSERT_TRUE(package.ok()) << package.status().message();
  const Run run = run_package(std::move(*package), trial.subject->inputs, options);
  if (!run.status.ok()) {
    trial.verdict = kind_of_error(run.status.message());
    trial.message = run.status.message();
  } else if (run.outputs != trial.subject->right.outputs) {
    trial.verdict = "changed output";
  } else if (!std::includes(trial.subject->right.races.begin(), trial.subject->right.races.end(), run.races.begin(),
                            run.races.end())) {
    trial.verdict = "race";
  }
}

// Other orders of the units: at random, and each kind of unit in turn only when nothing else can move.
std::vector<device::Schedule> other_orders() {
  std::vector<device::Schedule> orders = {{1, 0}, {2, 0}};
  for (std::uint32_t unit = 0; unit < chip::kTileUnits; ++unit) orders.push_back({3 + unit, 1u << unit});
  return orders;
}

// Whether some other order gives another result than the usual one. Programs of Google's that depend on the order
// anyway tell nothing: their results are compared with those of the unchanged program in the same order.
bool another_order_tells(const Trial& trial) {
  const Subject& subject = *trial.subject;
  const std::vector<device::Schedule> orders = other_orders();
  for (std::size_t i = 0; i < orders.size(); ++i) {
    auto package = subject.package.with(trial.corruption);
    if (!package.ok()) return true;
    const Run changed = run_in_order(std::move(*package), subject.inputs, orders[i], subject.right.steps);
    const Run& right = subject.right_in_order->at(
        i, [&] { return run_in_order(subject.original, subject.inputs, orders[i], subject.right.steps); });
    if (changed.status.ok() != right.status.ok() || changed.outputs != right.outputs) return true;
  }
  return false;
}

void judge_all(std::vector<Trial>& trials) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < trials.size(); i = next++) {
      judge(trials[i]);
      if (trials[i].verdict.empty()) trials[i].shows_in_another_order = another_order_tells(trials[i]);
    }
  };
  auto other = std::async(std::launch::async, work);
  work();
  other.wait();
}

void print(const std::vector<Trial>& trials) {
  const bool lists_all = number_from_environment("REEF_CORRUPTION_LIST", 0) != 0;
  std::map<std::string, int> by_verdict;
  std::map<Touches, std::pair<int, int>> by_kind;  // noticed, all
  std::map<std::string, std::pair<int, int>> by_file;
  for (const Trial& trial : trials) {
    const bool is_noticed = !trial.verdict.empty();
    ++by_verdict[is_noticed ? trial.verdict : "unnoticed"];
    for (auto* counts : {&by_kind[trial.corruption.target.touches], &by_file[trial.subject->name]}) {
      counts->first += is_noticed ? 1 : 0;
      ++counts->second;
    }
    if (!is_noticed || lists_all) {
      fmt::print("{}: {} {}{}{}\n",
                 is_noticed                     ? trial.verdict
                 : trial.shows_in_another_order ? "unnoticed, but shows in another order"
                                                : "unnoticed",
                 trial.subject->name, trial.corruption.description, trial.message.empty() ? "" : ": ",
                 trial.message.substr(0, 200));
    }
  }
  for (const auto& [verdict, count] : by_verdict) fmt::print("{:5} {}\n", count, verdict);
  for (const auto& [name, counts] : by_file) fmt::print("{:5} of {:5} {}\n", counts.first, counts.second, name);
  for (const auto& [kind, counts] : by_kind) {
    fmt::print("{}: {} of {} noticed\n", name_of(kind), counts.first, counts.second);
  }
}

struct Shares {
  double of_all = 0;
  double of_what_shows = 0;  // changes that were noticed, or would show in another order
};

Shares noticed_of(const std::vector<Subject>& subjects, Change change, int count) {
  std::mt19937 random(static_cast<unsigned>(number_from_environment("REEF_CORRUPTION_SEED", 1)));
  std::vector<Trial> trials;
  for (int i = 0; i < count; ++i) {
    Trial& trial = trials.emplace_back();
    trial.subject = &subjects[random() % subjects.size()];
    auto corruption = trial.subject->package.pick(random, change);
    EXPECT_TRUE(corruption.ok()) << corruption.status().message();
    if (!corruption.ok()) return {};
    trial.corruption = std::move(*corruption);
  }
  judge_all(trials);
  print(trials);
  const auto noticed = std::count_if(trials.begin(), trials.end(), [](const Trial& t) { return !t.verdict.empty(); });
  const double share = static_cast<double>(noticed) / count;
  fmt::print("{} of {} noticed ({:.1f} %)\n", noticed, count, 100 * share);
  const auto missed =
      std::count_if(trials.begin(), trials.end(), [](const Trial& t) { return t.shows_in_another_order; });
  fmt::print("of the other {}, {} show in one of {} other orders of the units\n", count - noticed, missed,
             other_orders().size());
  return {share, static_cast<double>(noticed) / static_cast<double>(noticed + missed)};
}

TEST(NegativeControls, ChangedFieldsAreNoticed) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const std::vector<Subject> subjects = subjects_of(zoo);
  ASSERT_FALSE(subjects.empty());
  const int count = number_from_environment("REEF_CORRUPTIONS", 200);
  fmt::print("---- any other value ----\n");
  const Shares any = noticed_of(subjects, Change::kAny, count);
  fmt::print("---- values near the old one ----\n");
  const Shares near = noticed_of(subjects, Change::kNear, count);
  EXPECT_GE(any.of_all, 0.8);
  EXPECT_GE(near.of_all, 0.7);
  EXPECT_GE(any.of_what_shows, 0.97);
  EXPECT_GE(near.of_what_shows, 0.97);
}

// The same of files that the device was not built on: with transposed clips, stores that step, partial fences.
TEST(NegativeControls, ChangedFieldsOfOtherFilesAreNoticed) {
  REEF_SKIP_WITHOUT_WILD(wild);
  std::vector<Subject> subjects;
  for (const char* name : {"google-coral_voice_commands_v0.8", "face_detection", "pperonski_slim",
                           "NobuoTsukamoto_mnist", "MarcelloCeresini_model", "google-coral_testconv1"}) {
    auto subject = make_subject(name, fmt::format("{}/{}/compiled_edgetpu.tflite", wild, name));
    ASSERT_TRUE(subject.ok()) << name << ": " << subject.status().message();
    subjects.push_back(std::move(*subject));
  }
  const Shares any = noticed_of(subjects, Change::kAny, number_from_environment("REEF_CORRUPTIONS", 200) / 5);
  EXPECT_GE(any.of_all, 0.75);
  EXPECT_GE(any.of_what_shows, 0.95);
}

}  // namespace
}  // namespace reef::testing
