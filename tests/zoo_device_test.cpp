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
#include "execute/cpu/interpreter.h"
#include "execute/device/device.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "ir/verify.h"
#include "zoo.h"

namespace reef::testing {
namespace {

// ---- Files ----

struct Pair {
  std::string name;  // folder/file
  std::string compiled, source;
  int generation = 0;  // of the compiler: the number after the "v" of the file's name
};

std::vector<Pair> pairs_of(const std::string& zoo) {
  namespace fs = std::filesystem;
  std::vector<Pair> pairs;
  for (const std::string& path : tflite_files(zoo + "/pairs")) {
    const fs::path file = path;
    if (!file.filename().string().starts_with('v')) continue;
    Pair pair;
    pair.name = file.parent_path().filename().string() + "/" + file.stem().string();
    pair.compiled = path;
    pair.generation = std::atoi(file.filename().string().c_str() + 1);
    const fs::path old = file.parent_path() / "source_old.tflite";
    pair.source = (pair.generation < 15 && fs::exists(old) ? old : file.parent_path() / "source.tflite").string();
    pairs.push_back(pair);
  }
  return pairs;
}

// ---- Pictures ----

enum class Picture { kNoise, kSmooth, kExtremes };
constexpr Picture kPictures[] = {Picture::kNoise, Picture::kSmooth, Picture::kExtremes};

// Two files, of one output value each, take many seconds a picture on the virtual device, and some a few tenths.
int pictures_for(const Pair& pair) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> folders) {
    return std::any_of(folders.begin(), folders.end(), [&](std::string_view f) { return pair.name.starts_with(f); });
  };
  if (is_one_of({"op_model_conv_128x128x3x32x7x10/", "op_model_mat_Add/"})) return 1;
  if (is_one_of({"deeplabv3_", "posenet_", "mobilenet_v1_1.0_", "mobilenet_v2_"})) return 2;
  return 3;
}

// Dark is the lowest code of the tensor's type. Tensors of 16 bits, which are states, get noise always.
std::vector<std::uint8_t> picture(Picture kind, const darwinn::Layer& layer, std::mt19937& random) {
  if (layer.data_type == darwinn::DataType::kInt16) kind = Picture::kNoise;
  const std::uint8_t lowest = layer.data_type == darwinn::DataType::kInt8 ? 0x80 : 0;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(device::tensor_bytes(layer)));
  const auto depth = static_cast<std::size_t>(layer.z_dim), width = static_cast<std::size_t>(layer.x_dim);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto c = static_cast<double>(i % depth), x = static_cast<double>(i / depth % width),
               y = static_cast<double>(i / depth / width);
    switch (kind) {
      case Picture::kNoise:
        bytes[i] = static_cast<std::uint8_t>(random());
        break;
      case Picture::kSmooth:
        bytes[i] =
            static_cast<std::uint8_t>(127.5 + 120 * std::sin(0.05 * x + 0.9 * c) * std::cos(0.037 * y + 0.01 * c));
        break;
      case Picture::kExtremes:
        bytes[i] = random() % 2 == 0 ? 0 : 255;
        break;
    }
    bytes[i] ^= lowest;
  }
  return bytes;
}

// A state at rest: the zero point.
std::vector<std::uint8_t> state_at_rest(const ir::Tensor& tensor) {
  const auto zero = static_cast<std::uint64_t>(tensor.quantization.zero_point.at(0));
  const auto size = static_cast<std::size_t>(ir::bits_per_element(tensor.type) / 8);
  std::vector<std::uint8_t> bytes;
  for (std::int64_t i = 0; i < tensor.shape.elements(); ++i) {
    for (std::size_t b = 0; b < size; ++b) bytes.push_back(static_cast<std::uint8_t>(zero >> (8 * b)));
  }
  return bytes;
}

const ir::Tensor* find_tensor(const ir::Model& model, const std::string& name) {
  for (const ir::Tensor& tensor : model.subgraphs[0].tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

// ---- TFLite's numerics ----

// The part of `model` between the tensors `given` and `wanted`.
Result<ir::Model> cut(ir::Model model, const NamedBytes& given, const std::vector<std::string>& wanted) {
  ir::Subgraph& graph = model.subgraphs[0];
  model.signatures.clear();
  graph.inputs.clear();
  graph.outputs.clear();
  std::vector<bool> is_needed(graph.tensors.size());
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const std::string& name = graph.tensors[i].name;
    if (given.contains(name) && !graph.tensors[i].is_variable) graph.inputs.push_back(static_cast<std::int32_t>(i));
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    graph.outputs.push_back(static_cast<std::int32_t>(i));
    is_needed[i] = true;
  }
  std::vector<ir::Operator> kept;
  for (auto op = graph.operators.rbegin(); op != graph.operators.rend(); ++op) {
    const auto needed = [&](std::int32_t t) { return t >= 0 && is_needed[static_cast<std::size_t>(t)]; };
    if (std::none_of(op->outputs.begin(), op->outputs.end(), needed)) continue;
    for (const std::int32_t t : op->inputs) {
      if (t >= 0 && std::find(graph.inputs.begin(), graph.inputs.end(), t) == graph.inputs.end()) {
        is_needed[static_cast<std::size_t>(t)] = true;
      }
    }
    kept.insert(kept.begin(), *op);
  }
  graph.operators = std::move(kept);
  REEF_RETURN_IF_ERROR(ir::verify(model));
  return model;
}

Result<NamedBytes> evaluate_as_tflite(const ir::Model& source, const NamedBytes& given,
                                      const std::vector<std::string>& wanted) {
  REEF_ASSIGN_OR_RETURN(ir::Model part, cut(source, given, wanted));
  cpu::InterpreterOptions options;
  options.tflite_release = ops::TfliteRelease::kCurrent;  // 2.9 ignores the scales per channel of FULLY_CONNECTED
  REEF_ASSIGN_OR_RETURN(auto interpreter,
                        cpu::Interpreter::create(std::make_shared<const ir::Model>(std::move(part)), options));
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  for (int i = 0; i < interpreter->input_count(); ++i) {
    const std::vector<std::uint8_t>& bytes = given.at(std::string(interpreter->input(i).name));
    const std::span<std::byte> to = interpreter->input_bytes(i);
    REEF_REQUIRE(to.size() == bytes.size(), "input {} takes {} bytes", i, to.size());
    std::memcpy(to.data(), bytes.data(), to.size());
  }
  REEF_RETURN_IF_ERROR(interpreter->invoke());
  NamedBytes results;
  for (int i = 0; i < interpreter->output_count(); ++i) {
    const ops::Tensor& tensor = interpreter->output(i);
    const auto* data = reinterpret_cast<const std::uint8_t*>(tensor.data);
    results[std::string(tensor.name)] = {data, data + tensor.bytes};
  }
  return results;
}

// ---- Comparison ----

struct Report {
  int pictures = 0;
  std::int64_t values = 0, equal = 0;
  int largest_difference = 0;
  std::size_t distinct = 0;                 // different values among those compared: few make a weak test
  std::int64_t from_tflite[3] = {0, 0, 0};  // how many are equal, one apart, and further
  int largest_from_tflite = 0;
  bool has_softmax = false;
  std::size_t ops = 0;  // of the source
};

bool is_16_bit(const ir::Tensor& tensor) { return ir::bits_per_element(tensor.type) == 16; }

// Elements as numbers whose differences mean something.
std::vector<int> elements(const ir::Tensor& tensor, const std::vector<std::uint8_t>& bytes) {
  std::vector<int> result;
  if (is_16_bit(tensor)) {
    for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
      result.push_back(static_cast<std::int16_t>(bytes[i] | bytes[i + 1] << 8));
    }
    return result;
  }
  for (const std::uint8_t byte : bytes) {
    result.push_back(tensor.type == ir::DataType::kInt8 ? static_cast<std::int8_t>(byte) : byte);
  }
  return result;
}

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
      for (std::size_t k = 0; k < a.size(); ++k) {
        const int difference = std::abs(a[k] - b[k]);
        ++report_.from_tflite[std::min(difference, 2)];
        report_.largest_from_tflite = std::max(report_.largest_from_tflite, difference);
      }
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
  const std::int64_t compared = r.from_tflite[0] + r.from_tflite[1] + r.from_tflite[2];
  const auto share = [&](std::int64_t count) {
    return 100.0 * static_cast<double>(count) / static_cast<double>(compared);
  };
  fmt::print("{:<80.80} {} {:7}/{:7} {:3} {:6.2f} {:6.2f} {:6.2f} {:3}\n", outcome.pair.name, r.pictures, r.equal,
             r.values, r.distinct, share(r.from_tflite[0]), share(r.from_tflite[1]), share(r.from_tflite[2]),
             r.largest_from_tflite);
}

// Loose, because roundings add up and are amplified from layer to layer: both numerics were confirmed against
// recordings where these exist, and differ.
void expect_close_to_tflite(const Outcome& outcome) {
  constexpr std::size_t kFewOps = 12;
  const Report& r = outcome.report;
  const std::int64_t within_one = r.from_tflite[0] + r.from_tflite[1], all = within_one + r.from_tflite[2];
  const double least = r.has_softmax ? 0.6 : r.ops <= kFewOps ? 0.97 : 0.7;
  EXPECT_GE(static_cast<double>(within_one), least * static_cast<double>(all)) << outcome.pair.name;
  EXPECT_LE(r.largest_from_tflite, 64) << outcome.pair.name;
}

TEST(ZooDevice, GivesTheBytesOfTheChipReference) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  std::vector<Outcome> outcomes;
  for (Pair& pair : pairs_of(zoo)) outcomes.push_back({std::move(pair), ok_status(), {}});
  run_all(outcomes);
  fmt::print(
      "pictures, values equal to the reference's, different values among them; of TFLite's, % equal, one apart, "
      "further, and the furthest\n");
  std::int64_t values = 0;
  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.status.ok()) << outcome.pair.name << ": " << outcome.status.message();
    print(outcome);
    EXPECT_EQ(outcome.report.equal, outcome.report.values)
        << outcome.pair.name << ": the largest difference is " << outcome.report.largest_difference;
    EXPECT_GT(outcome.report.values, 0) << outcome.pair.name;
    expect_close_to_tflite(outcome);
    values += outcome.report.values;
  }
  fmt::print("{} files, {} values\n", outcomes.size(), values);
  EXPECT_GE(outcomes.size(), 58u);
}

}  // namespace
}  // namespace reef::testing
