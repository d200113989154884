// SPDX-License-Identifier: Apache-2.0
#include "compiler/learn_driver.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>

#include "base/shell_word.h"
#include "compiler/extractor.h"
#include "compiler/front_end.h"
#include "formats/tflite/writer.h"
#include "learn/engine.h"
#include "learn/head_runner.h"
#include "learn/imprinting_head.h"
#include "learn/linear_classifier.h"
#include "learn/metadata.h"
#include "learn/softmax_head.h"
#include "quantize/scale_limits.h"

namespace reef::compiler {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Of softmax regression on a learning curve, where nothing says how many are best.
constexpr int kCurveIterations = 50;

const ir::Tensor& output_of(const ir::Model& model) {
  const ir::Subgraph& graph = model.subgraphs[0];
  return graph.tensors[at(graph.outputs[0])];
}

// Classes of the model and where the data's classes go among them.
struct ClassPlan {
  learn::ReadImprinting kept;
  std::vector<std::int32_t> places;  // of each class of the data
};

Result<ClassPlan> plan_classes(const LearnOptions& options, const ir::Model& model, const learn::Head& head,
                               const std::vector<std::string>& data_classes) {
  ClassPlan plan;
  const bool keeps = options.keep_classes || options.resume;
  if (keeps) {
    REEF_REQUIRE(options.method == LearnMethod::kImprinting,
                 "softmax regression learns all classes at once: it cannot keep or resume; give the pictures of all "
                 "classes together, or use imprinting");
    REEF_RETURN_IF_ERROR(learn::cannot_keep(head).in(options.model));
    REEF_ASSIGN_OR_RETURN(plan.kept, learn::read_classes(model, head));
  }
  std::vector<learn::ImprintedClass>& kept = plan.kept.classes;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i].name.empty() && i < options.model_labels.size()) kept[i].name = options.model_labels[i];
  }
  auto next = static_cast<std::int32_t>(kept.size());
  for (const std::string& name : data_classes) {
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const auto& each) { return each.name == name; });
    if (same == kept.end()) {
      plan.places.push_back(next++);
      continue;
    }
    const auto number = static_cast<std::int32_t>(same - kept.begin());
    REEF_REQUIRE(options.resume, "class '{}' is in the model already, as number {}: add --resume to train it further",
                 name, number);
    REEF_REQUIRE(same->is_trainable,
                 "class '{}' was not learned by imprinting: it can be kept but not trained further; give the new "
                 "pictures another class name",
                 name);
    plan.places.push_back(number);
  }
  return plan;
}

// Rows to train and to test with, with class numbers of the result.
struct Rows {
  learn::Embeddings train, test;
};

struct TrainedHead {
  ir::Model head;
  std::vector<std::string> class_names;
};

Result<TrainedHead> imprint(const ClassPlan& plan, const ir::Tensor& embedding, bool is_normalized,
                            const std::vector<std::string>& data_classes, const learn::Embeddings& rows,
                            LearnResult& result) {
  learn::Imprinting imprinting(rows.dimension, plan.kept.classes);
  // New classes come in the order of their numbers.
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return rows.labels[a] < rows.labels[b]; });
  for (const std::size_t i : order) {
    const std::vector<float> direction = rows.has_mirrored() ? rows.direction(i) : std::vector<float>{};
    const auto picture = rows.has_mirrored() ? std::span<const float>(direction) : rows.row(i);
    REEF_RETURN_IF_ERROR(imprinting.train(picture, rows.labels[i]));
  }
  for (std::size_t c = 0; c < data_classes.size(); ++c) {
    imprinting.classes()[at(plan.places[c])].name = data_classes[c];
  }
  REEF_ASSIGN_OR_RETURN(learn::MadeHead made,
                        learn::imprinting_head(embedding, is_normalized, imprinting.classes(), rows, plan.kept.state));
  result.factor = made.state.factor;
  result.notes.insert(result.notes.end(), made.notes.begin(), made.notes.end());
  TrainedHead trained;
  trained.head = std::move(made.model);
  for (std::size_t c = 0; c < imprinting.classes().size(); ++c) {
    const learn::ImprintedClass& each = imprinting.classes()[c];
    trained.class_names.push_back(each.name.empty() ? std::to_string(c) : each.name);
    if (each.images <= learn::kAdvisedImages || !each.has_changed) continue;
    result.notes.push_back(
        fmt::format("'{}' has {} pictures: from {} on, softmax regression usually makes more of them than imprinting",
                    each.name, each.images, learn::kAdvisedImages));
  }
  return trained;
}

Result<TrainedHead> regress(const LearnOptions& options, const ir::Tensor& embedding,
                            const std::vector<std::string>& data_classes, const learn::Embeddings& rows,
                            LearnResult& result) {
  REEF_ASSIGN_OR_RETURN(const learn::SoftmaxResult trained,
                        learn::train_softmax(rows, static_cast<int>(data_classes.size()), options.softmax));
  result.l2 = trained.l2;
  result.iterations = trained.iterations;
  result.has_stopped_early = trained.has_stopped_early;
  TrainedHead made;
  REEF_ASSIGN_OR_RETURN(made.head, learn::softmax_head(embedding, trained.classifier, data_classes, rows));
  made.class_names = data_classes;
  return made;
}

Result<std::vector<std::int32_t>> answers_of(const ir::Model& head, const learn::Embeddings& rows) {
  REEF_ASSIGN_OR_RETURN(const auto scores, learn::run_head(head, rows));
  std::vector<std::int32_t> answers;
  for (const std::vector<float>& row : scores) answers.push_back(learn::index_of_largest(row));
  return answers;
}

learn::Learner learner_of(LearnMethod method, const LearnOptions& options, int classes, const LearnResult& result) {
  if (method == LearnMethod::kImprinting) {
    return [classes](const learn::Embeddings& train, const learn::Embeddings& test) {
      return learn::imprint_and_answer(train, test, classes);
    };
  }
  // As the whole was trained, or usual where it was not.
  learn::SoftmaxOptions how = options.softmax;
  how.l2 = result.iterations > 0 ? result.l2 : how.l2.value_or(learn::kDefaultL2);
  how.max_iterations = result.iterations > 0 ? result.iterations : std::min(how.max_iterations, kCurveIterations);
  how.held_back = 0;
  how.progress = nullptr;
  return [classes, how](const learn::Embeddings& train,
                        const learn::Embeddings& test) -> Result<std::vector<std::int32_t>> {
    REEF_ASSIGN_OR_RETURN(const learn::SoftmaxResult trained, learn::train_softmax(train, classes, how));
    std::vector<std::int32_t> answers;
    for (std::size_t i = 0; i < test.size(); ++i) answers.push_back(trained.classifier.best(test.row(i)));
    return answers;
  };
}

// With the data's own class numbers: how good the method is after few pictures and many.
Status add_curve(const LearnOptions& options, int classes, const Rows& rows, LearnResult& result) {
  if (!options.has_curve || rows.test.empty() || classes < 2) return ok_status();
  learn::CurveOptions curve;
  curve.seed = options.seed;
  const auto measure = [&](LearnMethod method) {
    return learn::learning_curve(rows.train, rows.test, classes, learner_of(method, options, classes, result), curve);
  };
  REEF_ASSIGN_OR_RETURN(result.curve, measure(options.method));
  const std::string advice = learn::curve_advice(result.curve, rows.test.size());
  if (!advice.empty()) result.notes.push_back(advice);
  result.chance = 1.0 / classes;
  if (!options.compares_methods) return ok_status();
  REEF_ASSIGN_OR_RETURN(result.other_curve, measure(options.method == LearnMethod::kSoftmax ? LearnMethod::kImprinting
                                                                                            : LearnMethod::kSoftmax));
  return ok_status();
}

Status check_classes(const std::vector<std::string>& names, const learn::Embeddings& rows) {
  const auto counts = learn::images_per_class(rows, static_cast<int>(names.size()));
  for (std::size_t c = 0; c < counts.size(); ++c) {
    REEF_REQUIRE(counts[c] > 0, "class '{}' has no picture to learn from", names[c]);
  }
  return ok_status();
}

// Drops mirrored pictures that are something else. Only pictures to learn from are asked.
Status decide_on_mirroring(Mirroring mirroring, int classes, learn::Embeddings& train, LearnResult& result) {
  REEF_REQUIRE(mirroring != Mirroring::kOn || train.has_mirrored(),
               "mirrored pictures need a model with one input [1, height, width, 1, 3 or 4 channels]");
  if (!train.has_mirrored()) return ok_status();
  result.mirror_test = learn::test_mirrored(train, classes);
  result.is_mirrored = mirroring == Mirroring::kOn || result.mirror_test->is_same_class();
  if (!result.is_mirrored) train.mirrored.clear();
  return ok_status();
}

// What to test with: data of its own, or a part of the data to learn from.
Result<Rows> rows_of(const LearnOptions& options, const std::shared_ptr<const ir::Model>& extractor,
                     const LabelledData& data, LearnResult& result) {
  EmbedOptions how = options.embed;
  how.is_mirrored = options.mirroring != Mirroring::kOff;
  REEF_ASSIGN_OR_RETURN(EmbeddedData train, embed(extractor, data, how));
  result.embedding_seconds = train.seconds;
  result.rejected = train.rejected;
  std::optional<data::DatasetOptions> test = test_arrays_beside(options.data);
  if (!options.test.empty()) {
    test = options.data;
    test->path = options.test;
    test->arrays.clear();
    test->truth.clear();
    test->limit = 0;
    test->use = data::Use::kEvaluation;
  }
  const auto classes = static_cast<int>(data.class_names.size());
  if (test) {
    REEF_ASSIGN_OR_RETURN(const LabelledData other, open_labelled(*test, *extractor, &data.class_names));
    REEF_ASSIGN_OR_RETURN(EmbeddedData tested, embed(extractor, other, options.embed, &train));
    result.embedding_seconds += tested.seconds;
    result.rejected.insert(result.rejected.end(), tested.rejected.begin(), tested.rejected.end());
    result.tested_on = other.dataset->describe();
    return Rows{std::move(train.embeddings), std::move(tested.embeddings)};
  }
  const learn::Division parts = learn::divide(train.embeddings.labels, classes, options.held_back, options.seed);
  Rows rows{learn::chosen(train.embeddings, parts.train), learn::chosen(train.embeddings, parts.held_back)};
  if (!rows.test.empty()) result.tested_on = fmt::format("{} samples held back", rows.test.size());
  return rows;
}

learn::Embeddings renumbered(learn::Embeddings rows, const std::vector<std::int32_t>& places) {
  for (std::int32_t& label : rows.labels) label = places[at(label)];
  return rows;
}

void add_advice(const LearnOptions& options, const LabelledData& data, const ClassPlan& plan, const Rows& rows,
                LearnResult& result) {
  const auto classes = static_cast<int>(data.class_names.size());
  const auto counts = learn::images_per_class(rows.train, classes);
  for (const std::string& note : learn::imbalance_notes(counts, data.class_names)) result.notes.push_back(note);
  result.collapsed = learn::collapsed_pairs(rows.train, classes);
  for (learn::CollapsedPair& pair : result.collapsed) {
    result.notes.push_back(fmt::format(
        "'{}' and '{}' fall together: {:.0f} % of their pictures are nearer to their own class than to the other "
        "(half is chance; cosine between the two {:.3f}). Other pictures, another extractor, or one class for both",
        data.class_names[at(pair.a)], data.class_names[at(pair.b)], 100 * pair.right, pair.cosine));
    pair.a = plan.places[at(pair.a)];
    pair.b = plan.places[at(pair.b)];
  }
  if (rows.test.empty()) {
    result.notes.push_back(options.held_back > 0 ? "too few pictures to hold any back: what was made is not measured"
                                                 : "nothing was held back: what was made is not measured");
  }
}

}  // namespace

Result<LearnResult> learn_classes(const LearnOptions& options) {
  FrontEndOptions front_end = options.front_end;
  front_end.budget = options.data.budget;
  REEF_ASSIGN_OR_RETURN(FrontEndResult loaded, load_any_model(options.model, front_end));
  ir::Model& model = loaded.model;
  LearnResult result;
  result.notes = loaded.notes;
  auto head = learn::find_head(model, options.embedding);
  if (!head.ok()) return head.status().in(options.model);
  result.found = head->kind;
  result.dimension = head->dimension;
  if (head->behind >= 0) {
    const ir::Tensor& tensor = model.subgraphs[0].tensors[at(head->behind)];
    result.notes.push_back(
        fmt::format("the model ends in a dense layer of {} numbers without SOFTMAX, as PyTorch's classifiers do. If "
                    "these are scores of classes, "
                    "the {} numbers before them are usually the better embedding: --embedding {}",
                    head->dimension, tensor.shape.last(), shell_word(tensor.name)));
  }
  REEF_ASSIGN_OR_RETURN(ir::Model base, learn::extractor_of(model, *head));
  if (options.compile) {
    REEF_ASSIGN_OR_RETURN(base, compiled_extractor(base, std::filesystem::path(options.model).stem().string()));
  }
  const auto extractor = std::make_shared<const ir::Model>(std::move(base));

  REEF_ASSIGN_OR_RETURN(const LabelledData data, open_labelled(train_arrays(options.data), *extractor));
  result.data = data.dataset->describe();
  REEF_ASSIGN_OR_RETURN(const ClassPlan plan, plan_classes(options, model, *head, data.class_names));
  result.kept = plan.kept.classes.size();
  REEF_ASSIGN_OR_RETURN(Rows rows, rows_of(options, extractor, data, result));
  REEF_RETURN_IF_ERROR(check_classes(data.class_names, rows.train));
  rows.test.mirrored.clear();
  REEF_RETURN_IF_ERROR(
      decide_on_mirroring(options.mirroring, static_cast<int>(data.class_names.size()), rows.train, result));

  const auto start = Clock::now();
  const learn::Embeddings train = renumbered(rows.train, plan.places);
  REEF_ASSIGN_OR_RETURN(const TrainedHead trained,
                        options.method == LearnMethod::kImprinting
                            ? imprint(plan, output_of(*extractor), head->is_normalized, data.class_names, train, result)
                            : regress(options, output_of(*extractor), data.class_names, train, result));
  result.training_seconds = seconds_since(start);
  result.class_names = trained.class_names;
  const auto classes = static_cast<int>(trained.class_names.size());
  result.images = learn::images_per_class(train, classes);

  const learn::Embeddings test = renumbered(rows.test, plan.places);
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int32_t> answers, answers_of(trained.head, test));
  result.confusion = learn::confusion(test.labels, answers, classes);
  add_advice(options, data, plan, rows, result);
  REEF_RETURN_IF_ERROR(add_curve(options, static_cast<int>(data.class_names.size()), rows, result));

  REEF_RETURN_IF_ERROR(quantize::check_scales(trained.head).in("the new head"));
  REEF_ASSIGN_OR_RETURN(result.model, learn::join(*extractor, trained.head));
  if (data.dataset->holds_pictures()) {
    result.preprocess = fmt::format("{} ({})", data::to_string(data.dataset->preprocess().preprocess),
                                    data.dataset->preprocess().origin);
    data::store_preprocess(data.dataset->preprocess().preprocess, result.model);
  }
  return result;
}

std::string learned_labels_path(const std::string& output) {
  std::string stem = output;
  if (stem.ends_with(".tflite")) stem.resize(stem.size() - std::string(".tflite").size());
  return stem + "_labels.txt";
}

Result<LearnedFiles> learned_files(const LearnResult& result, const std::string& output) {
  LearnedFiles files;
  files.model_path = output;
  files.labels_path = learned_labels_path(output);
  REEF_ASSIGN_OR_RETURN(files.model, tflite::write_model(result.model));
  for (std::string name : result.class_names) {
    std::replace(name.begin(), name.end(), '\n', ' ');
    files.labels.insert(files.labels.end(), name.begin(), name.end());
    files.labels.push_back('\n');
  }
  return files;
}

}  // namespace reef::compiler
