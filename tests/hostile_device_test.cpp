// SPDX-License-Identifier: Apache-2.0
// Damaged packages executed to the end by the virtual device: bits of instructions, of the package around them and of
// sizes in it flipped, instructions cut off. Whatever the bytes, a run ends within its steps, with bounded memory, in
// an error that says something or in tensors; and the device works afterwards.
//
// A program written by hand always; files of the collection where it is present. REEF_HOSTILE_DEVICE raises the number
// of damaged packages (per kind of damage), best in the asan build.
#include <chrono>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "execute/device/device.h"
#include "execute/device/timeline.h"
#include "formats/darwinn/reader.h"
#include "formats/darwinn/writer.h"
#include "formats/tflite/reader.h"
#include "handwritten_packages.h"
#include "process_memory.h"
#include "zoo.h"

namespace reef::testing {
namespace {

constexpr std::int64_t kMaxSteps = 300'000;

int damaged_packages() {
  const char* text = std::getenv("REEF_HOSTILE_DEVICE");
  return text != nullptr ? std::atoi(text) : 600;
}

// ---- Packages to damage ----

// Most kinds of units at work: constants are filled in, multiplied, moved over the ring and sent to the host.
darwinn::Package handwritten() {
  return stand_alone_package(joined({kAskForEightBytes, kFillTwoWords,
                                     R"(
mesh_south tiles=0 fill fill_value=0x00000001
  out narrow word 8: for x4 +1
)",
                                     kFence,
                                     R"(
narrow_to_wide tiles=0 line_level=1
  in narrow word 8: for x4 +1
  out wide line 7: for x1 +1
)",
                                     kFence, kMultiplyWords, kFence, kPackLine, kFence,
                                     R"(
ring_send tiles=0 channel=a to_tiles=2
  in wide line 5: for x1 +1
ring_receive_a tiles=2
  out wide line 6: for x1 +1
tile_fence tiles=all drain=all
wide_to_narrow tiles=2 line_level=1
  in wide line 6: for x1 +1
  out narrow word 4: for x2 +1
)",
                                     kSendLineAndEnd}));
}

std::vector<std::string> files_to_damage() {
  std::vector<std::string> files;
  if (const std::string zoo = zoo_folder(); !zoo.empty()) {
    for (const char* name : {"dense_256/v16", "bright_16x16/v16", "gabor_64x64_p4/v16", "mnist_dense/v1",
                             "split_concat/v15", "rl_mlp_tanh/v16", "op_model_padding_64x64x3/v1",
                             "asr_tflite_model_test_compile_fm15_ASR_Model10/v2", "keras_lstm_mnist_ptq/v15"}) {
      files.push_back(zoo + "/pairs/" + name + "_edgetpu.tflite");
    }
  }
  // Transposed clips, several generations, and the two smallest of the newest.
  if (const std::string wild = wild_folder(); !wild.empty()) {
    for (const char* name : {"google-coral_voice_commands_v0.8", "NobuoTsukamoto_mnist", "dav354_model",
                             "google-coral_testconv1", "MarcelloCeresini_model"}) {
      files.push_back(wild + "/" + name + "/compiled_edgetpu.tflite");
    }
  }
  return files;
}

std::vector<darwinn::Package> packages_to_damage() {
  std::vector<darwinn::Package> packages = {handwritten()};
  for (const std::string& file : files_to_damage()) {
    const auto model = tflite::load_model(file);
    if (!model.ok()) continue;
    for (const ir::Operator& op : model->subgraphs[0].operators) {
      if (!darwinn::is_edge_tpu_op(op)) continue;
      auto options = darwinn::read_custom_options(op.custom_options);
      EXPECT_TRUE(options.ok()) << options.status().message();
      if (options.ok()) packages.push_back(std::move(options->package));
    }
  }
  return packages;
}

// ---- Damage ----

void flip_bits(std::vector<std::uint8_t>& bytes, std::mt19937& random) {
  const int bits = 1 << (random() % 5);
  for (int k = 0; k < bits && !bytes.empty(); ++k) {
    bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1u << (random() % 8));
  }
}

Bytes damaged_instructions(const Bytes& bitstream, std::mt19937& random) {
  std::vector<std::uint8_t> bytes(bitstream.data(), bitstream.data() + bitstream.size());
  if (random() % 8 == 0) {
    bytes.resize(random() % (bytes.size() + 1));
    if (random() % 2 == 0) bytes.resize(bytes.size() / 16 * 16);
  } else {
    flip_bits(bytes, random);
  }
  return Bytes(std::move(bytes));
}

darwinn::Package with_damaged_instructions(darwinn::Package package, std::mt19937& random) {
  darwinn::Executable& executable = package.executables[random() % package.executables.size()];
  if (executable.instruction_chunks.empty()) return package;
  darwinn::InstructionChunk& chunk = executable.instruction_chunks[random() % executable.instruction_chunks.size()];
  chunk.bitstream = damaged_instructions(chunk.bitstream, random);
  return package;
}

// Sizes as a writer of packages could lie about them.
darwinn::Package with_damaged_sizes(darwinn::Package package, std::mt19937& random) {
  static constexpr std::int32_t kNumbers[] = {0, 1, 7, 255, 65536, 1 << 24, 0x7fffffff};
  const auto number = [&] { return kNumbers[random() % std::size(kNumbers)]; };
  darwinn::Executable& executable = package.executables[random() % package.executables.size()];
  std::vector<std::int32_t*> sizes = {&executable.scratch_size_bytes};
  for (auto* layers : {&executable.input_layers, &executable.output_layers}) {
    for (darwinn::Layer& layer : *layers) {
      sizes.insert(sizes.end(), {&layer.size_bytes, &layer.y_dim, &layer.x_dim, &layer.z_dim});
      if (auto* info = std::get_if<darwinn::OutputInfo>(&layer.info); info != nullptr && info->layout) {
        for (auto* table :
             {&info->layout->tile_offset, &info->layout->x_to_local_offset, &info->layout->x_to_row_size}) {
          if (!table->empty()) sizes.push_back(&(*table)[random() % table->size()]);
        }
      }
    }
  }
  for (int k = 0; k < 1 + static_cast<int>(random() % 3); ++k) *sizes[random() % sizes.size()] = number();
  return package;
}

// ---- Running ----

struct Tally {
  int unreadable = 0, errors = 0, runs = 0;
  double slowest = 0;  // seconds
};

class Runner {
 public:
  explicit Runner(std::int64_t max_cycles) { options_.max_cycles = max_cycles; }

  void run(Result<darwinn::Package> package) {
    const auto begin = std::chrono::steady_clock::now();
    Status status = package.ok() ? execute(std::move(*package)) : package.status();
    EXPECT_FALSE(!status.ok() && status.message().empty());
    ++(status.ok() ? tally.runs : package.ok() ? tally.errors : tally.unreadable);
    tally.slowest =
        std::max(tally.slowest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  Tally tally;

 private:
  // One device for all, as in a server: what one package leaves behind must not harm the next.
  Status execute(darwinn::Package package) {
    REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(std::move(package)));
    std::vector<std::vector<std::uint8_t>> tensors;
    for (const darwinn::Layer& layer : loaded->inputs()) {
      tensors.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)), std::uint8_t{100});
    }
    const std::vector<std::span<const std::uint8_t>> inputs(tensors.begin(), tensors.end());
    if (!device_) device_ = std::make_unique<device::Device>(options_);
    // Every fourth one is followed, as `reef run` does, every eighth for races.
    ++runs_;
    if (runs_ % 4 != 0) return device_->run(loaded, inputs).status();
    device::Timeline timeline({.timing = {}, .find_races = runs_ % 8 == 0});
    device_->set_observer(&timeline);
    device_->set_queue_depths(device::kShallowQueues);
    const Status status = device_->run(loaded, inputs).status();
    for (const device::ProgramRecord& record : timeline.take_records()) {
      for (const device::Race& race : record.races) EXPECT_FALSE(record.describe(race).empty());
    }
    device_->set_observer(nullptr);
    device_->set_queue_depths({});
    return status;
  }
  device::Options options_;
  std::unique_ptr<device::Device> device_;
  int runs_ = 0;
};

template <typename Damage>
void run_damaged(const char* what, int count, const Damage& damage) {
  const std::vector<darwinn::Package> packages = packages_to_damage();
  std::mt19937 random(20250115);
  Runner runner(kMaxSteps);
  const double before = resident_mib();
  for (int i = 0; i < count; ++i) {
    runner.run(damage(packages[random() % packages.size()], random));
  }
  const Tally& tally = runner.tally;
  const double most = most_resident_mib();
  fmt::print("{}: {} unreadable, {} errors, {} runs, slowest {:.2f} s, memory {:.0f} MiB at first, {:.0f} at most\n",
             what, tally.unreadable, tally.errors, tally.runs, tally.slowest, before, most);
  EXPECT_GT(tally.errors, 0);
  EXPECT_LT(tally.slowest, 20) << "seconds, sanitizers included";
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these keep freed memory
  EXPECT_LT(most - before, 1500) << "MiB";
#endif
}

TEST(HostileDevice, TheHandwrittenProgramRuns) {
  Runner runner(kMaxSteps);
  runner.run(handwritten());
  EXPECT_EQ(runner.tally.runs, 1);
}

TEST(HostileDevice, DamagedInstructionsEndInErrorsOrTensors) {
  run_damaged("instructions", 4 * damaged_packages(),
              [](const darwinn::Package& package, std::mt19937& random) -> Result<darwinn::Package> {
                return with_damaged_instructions(package, random);
              });
}

TEST(HostileDevice, DamagedSizesEndInErrorsOrTensors) {
  run_damaged("sizes", damaged_packages(),
              [](const darwinn::Package& package, std::mt19937& random) -> Result<darwinn::Package> {
                return with_damaged_sizes(package, random);
              });
}

TEST(HostileDevice, DamagedPackagesEndInErrorsOrTensors) {
  run_damaged("packages", 2 * damaged_packages(),
              [](const darwinn::Package& package, std::mt19937& random) -> Result<darwinn::Package> {
                REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> bytes, darwinn::write_package(package));
                if (random() % 8 == 0) {
                  bytes.resize(random() % bytes.size());
                } else {
                  flip_bits(bytes, random);
                }
                return darwinn::read_package(Bytes(std::move(bytes)));
              });
}

// A device that failed is a device that was reset: it gives the right bytes afterwards, the package that failed being
// gone.
TEST(HostileDevice, AFailureLeavesNothingBehind) {
  auto good = device::LoadedPackage::load(handwritten());
  ASSERT_TRUE(good.ok()) << good.status().message();
  device::Options options;
  options.max_cycles = kMaxSteps;
  device::Device device(options);
  const auto right = device.run(*good, {});
  ASSERT_TRUE(right.ok()) << right.status().message();
  std::mt19937 random(4);
  int failures = 0;
  for (int i = 0; i < 300; ++i) {
    auto bad = device::LoadedPackage::load(with_damaged_instructions(handwritten(), random));
    if (!bad.ok() || device.run(*bad, {}).ok()) continue;
    ++failures;
    bad = device::LoadedPackage::load(handwritten());  // frees the damaged one
    const auto again = device.run(*good, {});
    ASSERT_TRUE(again.ok()) << again.status().message();
    ASSERT_EQ(*again, *right);
  }
  EXPECT_GT(failures, 50);
}

}  // namespace
}  // namespace reef::testing
