// SPDX-License-Identifier: Apache-2.0
// Classifiers on pictures: how often the class that a compiled file on the virtual device names first is the one that
// its source names first on the CPU (TFLite's reference kernels).
//
// The two round differently, so that pictures about which a network is undecided come out differently: TFLite's own
// kernels (reference and XNNPACK, which scales in float32 like the chip) disagree on as many (docs/device.md). Expected
// shares are what was measured on all pictures, REEF_TOP1=full (five minutes); else some are taken. Ties: the first
// class of the largest value; where the CPU holds both classes equal, they count as the same.
// Pictures are resized to the network's input; grey networks get grey ones.
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "execute/cpu/interpreter.h"
#include "execute/device/device.h"
#include "formats/image/image.h"
#include "formats/numpy/npz.h"
#include "formats/tflite/reader.h"
#include "runtime/edge_tpu_op.h"
#include "zoo.h"
#include "zoo_pairs.h"

namespace reef::testing {
namespace {

bool is_full() {
  const char* text = std::getenv("REEF_TOP1");
  return text != nullptr && std::string_view(text) == "full";
}

// ---- Pictures ----

using Pictures = std::vector<image::Image>;

Result<Pictures> pictures_of_folder(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".jpg") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  Pictures pictures;
  for (const std::string& path : paths) {
    REEF_ASSIGN_OR_RETURN(image::Image picture, image::load(path, 3));
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

Result<Pictures> pictures_of_array(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(const numpy::Npz npz, numpy::Npz::load(path));
  REEF_ASSIGN_OR_RETURN(const numpy::Array array, npz.read("images"));
  REEF_REQUIRE(array.shape.size() == 4 && array.type == ir::DataType::kUInt8, "'{}' holds no pictures", path);
  Pictures pictures;
  const auto size = static_cast<std::ptrdiff_t>(array.shape[1] * array.shape[2] * array.shape[3]);
  for (std::ptrdiff_t i = 0; i < array.shape[0]; ++i) {
    image::Image& picture = pictures.emplace_back();
    picture.height = static_cast<int>(array.shape[1]);
    picture.width = static_cast<int>(array.shape[2]);
    picture.channels = static_cast<int>(array.shape[3]);
    picture.samples.assign(array.data.data() + i * size, array.data.data() + (i + 1) * size);
  }
  return pictures;
}

// For networks that nothing recorded suits.
Pictures noise() {
  std::mt19937 random(5);
  Pictures pictures(1000);
  for (image::Image& picture : pictures) {
    picture.height = picture.width = 16;
    picture.channels = 1;
    for (int i = 0; i < picture.height * picture.width; ++i) {
      picture.samples.push_back(static_cast<std::uint8_t>(random()));
    }
  }
  return pictures;
}

Result<Pictures> pictures_of(const std::string& zoo, const std::string& name) {
  if (name == "noise") return noise();
  if (name == "imagenet200") return pictures_of_folder(zoo + "/images/" + name);
  return pictures_of_array(zoo + "/data/" + name + ".npz");
}

// With as many channels: grey is the mean, and is repeated.
image::Image with_channels(const image::Image& picture, int channels) {
  if (picture.channels == channels) return picture;
  image::Image result = picture;
  result.channels = channels;
  result.samples.clear();
  const auto from = static_cast<std::size_t>(picture.channels);
  for (std::size_t i = 0; i < picture.samples.size(); i += from) {
    int sum = 0;
    for (std::size_t c = 0; c < from; ++c) sum += picture.samples[i + c];
    const auto grey = static_cast<std::uint8_t>(sum / picture.channels);
    result.samples.insert(result.samples.end(), static_cast<std::size_t>(channels), grey);
  }
  return result;
}

// ---- Classifiers ----

class Classifier {
 public:
  static Result<Classifier> create(const std::string& path, bool on_device) {
    Classifier result;
    REEF_ASSIGN_OR_RETURN(ir::Model model, tflite::load_model(path));
    cpu::InterpreterOptions options;
    options.tflite_release = ops::TfliteRelease::kCurrent;
    if (on_device) options.foreign_ops.push_back(runtime::edge_tpu_op(std::make_shared<device::Device>()));
    REEF_ASSIGN_OR_RETURN(result.interpreter_,
                          cpu::Interpreter::create(std::make_shared<const ir::Model>(std::move(model)), options));
    REEF_RETURN_IF_ERROR(result.interpreter_->prepare());
    const ir::Shape& shape = result.interpreter_->input(0).shape;
    REEF_REQUIRE(shape.rank() >= 3 && shape[0] == 1, "the input is no picture");
    return result;
  }

  // The first output as unsigned codes.
  Result<std::vector<int>> classify(const image::Image& picture) {
    const ir::Shape& shape = interpreter_->input(0).shape;
    const image::Image fitting =
        image::resize(with_channels(picture, shape.rank() == 4 ? shape[3] : 1), shape[2], shape[1]);
    const std::span<std::byte> input = interpreter_->input_bytes(0);
    REEF_REQUIRE(input.size() == fitting.samples.size(), "the input takes {} bytes", input.size());
    std::memcpy(input.data(), fitting.samples.data(), input.size());
    interpreter_->reset_variables();
    REEF_RETURN_IF_ERROR(interpreter_->invoke());
    const ops::Tensor& output = interpreter_->output(0);
    const auto* data = reinterpret_cast<const std::uint8_t*>(output.data);
    const int flip = output.type == ir::DataType::kInt8 ? 0x80 : 0;
    std::vector<int> codes(data, data + output.bytes);
    for (int& code : codes) code ^= flip;
    return codes;
  }

 private:
  std::unique_ptr<cpu::Interpreter> interpreter_;
};

std::size_t first_class(const std::vector<int>& codes) {
  return static_cast<std::size_t>(std::max_element(codes.begin(), codes.end()) - codes.begin());
}

struct Count {
  int pictures = 0, equal = 0;
  int tied() const { return static_cast<int>(std::count(margins.begin(), margins.end(), 0)); }
  std::set<std::size_t> classes;  // that the CPU names first
  // Where they differ: how much higher the CPU holds its own first class than the device's, in steps of its output.
  std::vector<int> margins;
};

Result<Count> compare(const Pair& pair, const Pictures& pictures, std::size_t most) {
  REEF_ASSIGN_OR_RETURN(Classifier device, Classifier::create(pair.compiled, true));
  REEF_ASSIGN_OR_RETURN(Classifier cpu, Classifier::create(pair.source, false));
  Count count;
  const std::size_t step = std::max<std::size_t>(pictures.size() / most, 1);
  for (std::size_t i = 0; i < pictures.size(); i += step) {
    REEF_ASSIGN_OR_RETURN(const std::vector<int> on_device, device.classify(pictures[i]));
    REEF_ASSIGN_OR_RETURN(const std::vector<int> on_cpu, cpu.classify(pictures[i]));
    const std::size_t of_device = first_class(on_device), of_cpu = first_class(on_cpu);
    ++count.pictures;
    count.equal += of_device == of_cpu ? 1 : 0;
    count.classes.insert(of_cpu);
    if (of_device != of_cpu) count.margins.push_back(on_cpu[of_cpu] - on_cpu[of_device]);
  }
  return count;
}

// Which pictures suit a classifier of the collection, how many of them are quick, and which share agrees at least.
struct Suite {
  std::string_view folder;  // of pairs
  std::string_view pictures;
  std::size_t quick;
  double least;
};
// mnist_dense and the LSTM, made for digits, get pictures of clothes. Google's LSTM rounds its gates' arguments to 8
// bits between -1 and 1, which TFLite does not: it is another network as soon as arguments are larger.
constexpr Suite kSuites[] = {
    {"mobilenet_v1_0.25_128_quant/", "imagenet200", 25, 0.96},
    {"mobilenet_v1_0.25_128_quant/", "shapes_eval", 10, 0.94},
    {"mobilenet_v1_0.5_160_quant/", "imagenet200", 8, 0.96},
    {"mobilenet_v2_1.0_224_quant/", "imagenet200", 4, 0.98},
    {"mobilenet_v2_inat_bird/", "imagenet200", 4, 0.94},
    {"mobilenetv2_small_50/", "imagenet200", 8, 0.99},
    {"mnist_dense/", "fashion_eval", 500, 0.99},
    {"keras_lstm_mnist_ptq/", "fashion_eval", 25, 0.8},
    {"asr_tflite_model_ASR_Model/", "noise", 25, 1},
    {"asr_tflite_model_test_compile_fm15_ASR_Model10/", "noise", 200, 1},
};

TEST(ZooTop1, DeviceAndCpuNameTheSameClassFirst) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  std::map<std::string_view, Pictures> sets;
  for (const Suite& suite : kSuites) {
    if (sets.contains(suite.pictures)) continue;
    auto pictures = pictures_of(zoo, std::string(suite.pictures));
    ASSERT_TRUE(pictures.ok()) << pictures.status().message();
    sets[suite.pictures] = std::move(*pictures);
  }
  Count all;
  fmt::print(
      "pictures, of them with the same first class, classes that the CPU names first; where they differ, by how much "
      "the CPU prefers its own\n");
  for (const Pair& pair : pairs_of(zoo)) {
    for (const Suite& suite : kSuites) {
      if (!pair.name.starts_with(suite.folder)) continue;
      const auto count = compare(pair, sets[suite.pictures], is_full() ? ~std::size_t{0} : suite.quick);
      ASSERT_TRUE(count.ok()) << pair.name << ": " << count.status().message();
      fmt::print("{:<80.80} {:<13} {:5} {:5} {:4} {}\n", pair.name, suite.pictures, count->pictures, count->equal,
                 count->classes.size(), fmt::join(count->margins, ","));
      // One picture more or less is chance.
      EXPECT_GE(count->equal + count->tied() + 1, suite.least * count->pictures) << pair.name;
      all.pictures += count->pictures;
      all.equal += count->equal;
      all.margins.insert(all.margins.end(), count->margins.begin(), count->margins.end());
    }
  }
  fmt::print("{} of {} ({:.2f} %), and {} ties\n", all.equal, all.pictures, 100.0 * all.equal / all.pictures,
             all.tied());
  EXPECT_GT(all.pictures, 0);
}

}  // namespace
}  // namespace reef::testing
