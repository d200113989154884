// SPDX-License-Identifier: Apache-2.0
// What a file declares about its tensors is a claim. One claim of one tensor is changed, and everything that Reef does
// with a model without running it is done: it must end with a result or an error, never with a crash, and "verified"
// must mean that the package runs and that a runtime takes its source.
//
//   REEF_CHANGED_SHAPES=4000 reef_tests --gtest_filter='ChangedShapes.*'     more of them
#include "changed_shapes.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include <gtest/gtest.h>

#include "base/file.h"
#include "compiler/compile.h"
#include "compiler/front_end.h"
#include "compiler/partwise_evaluation.h"
#include "compiler/verification.h"
#include "execute/cpu/interpreter.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "ir/pseudo_random.h"
#include "ir/verify.h"
#include "lower/builder.h"
#include "quantize/quantize.h"
#include "quantized_model.h"
#include "random_network.h"
#include "retarget/retarget.h"
#include "runtime/edge_tpu_op.h"
#include "runtime/layer_tensors.h"
#include "trials.h"
#include "zoo.h"
#include "zoo_pairs.h"

namespace reef::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kCases = 250;
constexpr double kSeconds = 20;  // of a case: enough for every one that is honest
constexpr std::int64_t kBytes = std::int64_t{1} << 30;

Budget limits() { return Budget({.seconds = kSeconds, .bytes = kBytes}); }

// A model and what was compiled from it before anything was changed; empty: nothing was.
struct Subject {
  std::string name;
  ir::Model model;
  Bytes compiled;
};

// Prepares a model and, unless that is all, runs it from beginning to end on made-up inputs.
Status runs(const ir::Model& model, bool only_prepare = false) {
  cpu::InterpreterOptions options;
  options.budget = limits();
  options.tflite_release = ops::TfliteRelease::kCurrent;
  options.foreign_ops.push_back(
      runtime::edge_tpu_op(std::make_shared<device::Device>(device::Options{.budget = options.budget})));
  REEF_ASSIGN_OR_RETURN(const auto interpreter,
                        cpu::Interpreter::create(std::make_shared<const ir::Model>(model), options));
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  if (only_prepare) return ok_status();
  for (int i = 0; i < interpreter->input_count(); ++i) {
    ir::fill_pseudo_random(interpreter->input(i).type, 1, interpreter->input_bytes(i));
  }
  return interpreter->invoke();
}

class ChangedShapes : public ::testing::Test {
 protected:
  ChangedShapes() : folder_(fs::temp_directory_path() / fmt::format("reef_changed_shapes_{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~ChangedShapes() override { fs::remove_all(folder_); }

  compiler::CompileResult compile(const ir::Model& model) {
    compiler::CompileOptions options;
    options.models = {(folder_ / "m.tflite").string()};
    options.out_dir = folder_.string();
    options.budget = limits();
    fs::remove(output());
    const auto file = tflite::write_model(model);
    if (!file.ok() || !write_file(options.models[0], *file).ok()) return {};
    return compiler::compile(options);
  }
  std::string output() const { return (folder_ / "m_edgetpu.tflite").string(); }

  Bytes compiled(const ir::Model& model) {
    const compiler::CompileResult result = compile(model);
    if (!result.ok() || result.runs.empty() || result.runs[0].files[0].ops.empty()) return {};
    auto file = read_file(output(), 1 << 30);
    return file.ok() ? std::move(*file) : Bytes();
  }

  // The compiler's promise, if it makes one.
  void expect_honest(const ir::Model& changed, const std::string& what) {
    const compiler::CompileResult result = compile(changed);
    ++outcomes_[result.ok() ? "compiled" : "refused"];
    for (const compiler::Refusal& refusal : result.refusals) {
      EXPECT_EQ(refusal.explanation.find("mistake in Reef"), std::string::npos) << what << ": " << refusal.explanation;
    }
    if (!result.ok() || result.runs.empty() || !result.runs[0].files[0].verified.done) return;
    ++outcomes_["verified"];
    const auto package = compiler::load_tflite_model(output());
    ASSERT_TRUE(package.ok()) << what << ": " << package.status().message();
    const Status package_runs = runs(package->model);
    EXPECT_TRUE(package_runs.ok()) << what << ": verified, but it does not run: " << package_runs.message();
    const auto source = compiler::load_tflite_model((folder_ / "m.tflite").string());
    ASSERT_TRUE(source.ok()) << what << ": " << source.status().message();
    // Whether it runs to its end depends on the inputs: RSQRT refuses negative numbers.
    const Status source_runs = runs(source->model, /*only_prepare=*/true);
    EXPECT_TRUE(source_runs.ok()) << what << ": verified, but no runtime takes its source: " << source_runs.message();
  }

  // As `reef verify` does, with the package of the model as it was.
  static Status verify(const ir::Model& changed, const Bytes& compiled) {
    ir::Model model = changed;
    REEF_RETURN_IF_ERROR(compiler::admit_model(model).status());
    REEF_ASSIGN_OR_RETURN(const compiler::FrontEndResult package, compiler::read_tflite_model(compiled));
    std::vector<compiler::VerifiedPart> parts;
    std::vector<int> generations;
    for (const ir::Operator& op : package.model.subgraphs[0].operators) {
      if (!darwinn::is_edge_tpu_op(op)) continue;
      REEF_ASSIGN_OR_RETURN(const darwinn::CustomOptions options, darwinn::read_custom_options(op.custom_options));
      REEF_ASSIGN_OR_RETURN(compiler::VerifiedPart part, compiler::part_of_package(model, options.package));
      parts.push_back(std::move(part));
      generations.push_back(compiler::compiler_generation_of(options.package));
    }
    std::vector<std::vector<std::uint8_t>> inputs;
    for (const std::int32_t input : model.subgraphs[0].inputs) {
      const ir::Tensor& tensor = model.subgraphs[0].tensors[static_cast<std::size_t>(input)];
      const std::int64_t bytes = ir::byte_size(tensor.shape, tensor.type).value_or(0);
      REEF_REQUIRE(bytes <= kBytes, "too large");
      inputs.emplace_back(static_cast<std::size_t>(bytes));
    }
    return compiler::evaluate_with_parts(model, parts, generations, inputs, limits()).status();
  }

  void try_everything(const Subject& subject, std::mt19937& random) {
    ir::Model changed = subject.model;
    const std::string claim = change_one_claim(changed, random);
    if (claim.empty() || !ir::verify(changed).ok()) return;
    const std::string what = subject.name + ", " + claim;
    SCOPED_TRACE(what);
    ++outcomes_["tried"];
    expect_honest(changed, what);
    if (subject.compiled.empty()) return;
    EXPECT_NE(verify(changed, subject.compiled).code(), StatusCode::kInternal) << what;
    // These two are handed models that did not pass the front end, too: they must not rely on it.
    for (const bool is_admitted : {true, false}) {
      ir::Model model = changed;
      if (is_admitted && !compiler::admit_model(model).ok()) continue;
      retarget::Options how;
      how.budget = limits();
      EXPECT_NE(retarget::retarget(subject.compiled, model, how).status().code(), StatusCode::kInternal) << what;
      const auto package = compiler::read_tflite_model(subject.compiled);
      ASSERT_TRUE(package.ok());
      runtime::LayerTensors::create(package->model, model, 1 << 22, limits()).status().ok();
      reference_alone(model, subject.compiled);
    }
  }

  // The chip reference by itself: what it cannot compute is an error.
  static void reference_alone(const ir::Model& model, const Bytes& compiled) {
    const auto package = compiler::read_tflite_model(compiled);
    for (const ir::Operator& op : package->model.subgraphs[0].operators) {
      if (!darwinn::is_edge_tpu_op(op)) continue;
      const auto options = darwinn::read_custom_options(op.custom_options);
      ASSERT_TRUE(options.ok());
      const auto part = compiler::part_of_package(model, options->package);
      if (!part.ok()) continue;
      compiler::PartVerifier(limits()).verify(model, *part, options->package, 1).ok();
    }
  }

  void report() const {
    std::string text;
    for (const auto& [outcome, count] : outcomes_) text += fmt::format("{} {}, ", count, outcome);
    RecordProperty("outcomes", text);
    std::cout << text << "of changed models\n";
  }

  fs::path folder_;
  std::map<std::string, int> outcomes_;
};

bool has_code(std::string_view op) { return lower::find_lowering(std::string(op)) != nullptr; }

TEST_F(ChangedShapes, OfGeneratedNetworksAreNeverBelieved) {
  const int count = number_from_environment("REEF_CHANGED_SHAPES", kCases);
  constexpr int kChangesOfEach = 5;
  for (int seed = 0; outcomes_["tried"] < count && seed < 2 * count; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    const RandomNetwork network = RandomNetwork::generate(static_cast<unsigned>(seed), has_code);
    auto model = network.build();
    if (!model) continue;
    const Subject subject{network.to_string(), *model, compiled(*model)};
    for (int i = 0; i < kChangesOfEach; ++i) try_everything(subject, random);
  }
  report();
  EXPECT_GT(outcomes_["verified"], 0);
}

TEST_F(ChangedShapes, OfCompiledPairsAreNeverBelieved) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  constexpr std::uintmax_t kLargest = 100'000;  // bytes: the many small ones say more than the few large ones
  const int changes = std::max(1, number_from_environment("REEF_CHANGED_SHAPES", kCases) / 50);
  unsigned seed = 0;
  for (const Pair& pair : pairs_of(zoo)) {
    if (fs::file_size(pair.source) > kLargest || fs::file_size(pair.compiled) > kLargest) continue;
    const auto model = compiler::load_tflite_model(pair.source);
    auto file = read_file(pair.compiled, 1 << 30);
    if (!model.ok() || !file.ok()) continue;
    std::mt19937 random(++seed);
    const Subject subject{pair.name, model->model, std::move(*file)};
    for (int i = 0; i < changes; ++i) try_everything(subject, random);
  }
  report();
}

// What real converters wrote enters as before; where their shapes are corrected, a runtime takes the result.
TEST_F(ChangedShapes, OfRealModelsThereAreFewAndTheyEnter) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  std::vector<std::string> files = tflite_files(zoo);
  if (const std::string wild = zoo + "/../wild"; fs::is_directory(wild)) {
    const std::vector<std::string> more = tflite_files(wild);
    files.insert(files.end(), more.begin(), more.end());
  }
  for (const std::string& file : files) {
    if (!tflite::load_model(file).ok()) continue;
    const auto loaded = compiler::load_tflite_model(file);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    if (!loaded.ok()) continue;
    ++outcomes_[loaded->shape_note.empty() ? "as declared" : "corrected"];
    if (!loaded->shape_note.empty()) std::cout << file << ": " << loaded->shape_note << "\n";
  }
  report();
}

// Float models: quantizing reads shapes everywhere, too. The modes that need no samples.
TEST_F(ChangedShapes, OfFloatModelsAreNeverBelieved) {
  const auto loaded = compiler::load_tflite_model(std::string(REEF_SOURCE_DIR) + "/models/reef_creatures_float.tflite");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const int count = std::max(1, number_from_environment("REEF_CHANGED_SHAPES", kCases) / 5);
  for (int seed = 0; seed < count; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    ir::Model changed = loaded->model;
    const std::string claim = change_one_claim(changed, random);
    if (claim.empty() || !ir::verify(changed).ok() || !compiler::admit_model(changed).ok()) continue;
    quantize::QuantizeOptions how;
    how.mode = seed % 2 == 0 ? quantize::Mode::kFloat16 : quantize::Mode::kDynamic;
    how.budget = limits();
    const auto result = quantize::quantize(changed, nullptr, how);
    EXPECT_NE(result.status().code(), StatusCode::kInternal) << claim << ": " << result.status().message();
  }
}

// The models that were found to crash Reef once, where they are at hand.
TEST_F(ChangedShapes, FilesThatCrashedOnceDoNotAnyMore) {
  const std::string zoo = zoo_folder();
  const fs::path crashes = fs::path(zoo) / "../review/crashes";
  if (zoo.empty() || !fs::is_directory(crashes)) GTEST_SKIP() << "the collection of damaged files is absent";
  for (const auto& entry : fs::recursive_directory_iterator(crashes)) {
    if (entry.path().extension() != ".tflite" || entry.path().filename() == "m_edgetpu.tflite") continue;
    SCOPED_TRACE(entry.path().string());
    const auto source = compiler::load_tflite_model(entry.path().string());
    if (!source.ok()) continue;
    expect_honest(source->model, entry.path().string());
    const fs::path package = entry.path().parent_path() / "m_edgetpu.tflite";
    if (!fs::exists(package)) continue;
    auto compiled = read_file(package.string(), 1 << 30);
    ASSERT_TRUE(compiled.ok());
    EXPECT_NE(verify(source->model, *compiled).code(), StatusCode::kInternal);
    EXPECT_NE(retarget::retarget(*compiled, source->model, {.budget = limits()}).status().code(),
              StatusCode::kInternal);
  }
}

}  // namespace
}  // namespace reef::testing
