// SPDX-License-Identifier: Apache-2.0
// reef.h: learning new classes.
#include <algorithm>
#include <numeric>

#include "formats/tflite/writer.h"
#include "guard.h"
#include "handles.h"
#include "ir/verify.h"
#include "learn/head.h"
#include "learn/imprinting_head.h"
#include "learn/softmax_head.h"
#include "learn/softmax_regression.h"

struct reef_learner {
  reef::learn::Head head;
  reef::ir::Model extractor;
  reef::learn::ReadImprinting kept;
  reef::learn::Embeddings rows;

  int class_count() const {
    const auto added = rows.labels.empty() ? 0 : *std::max_element(rows.labels.begin(), rows.labels.end()) + 1;
    return std::max(static_cast<int>(kept.classes.size()), static_cast<int>(added));
  }
  const reef::ir::Tensor& embedding() const {
    const reef::ir::Subgraph& graph = extractor.subgraphs[0];
    return graph.tensors[static_cast<std::size_t>(graph.outputs[0])];
  }
};

using namespace reef;
using namespace reef::c_api;

namespace {

std::vector<std::string> numbered_classes(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

Result<ir::Model> imprinted_head(const reef_learner& learner) {
  learn::Imprinting imprinting(learner.rows.dimension, learner.kept.classes);
  // New classes come in the order of their numbers.
  std::vector<std::size_t> order(learner.rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::vector<std::int32_t>& labels = learner.rows.labels;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return labels[a] < labels[b]; });
  for (const std::size_t i : order) REEF_RETURN_IF_ERROR(imprinting.train(learner.rows.row(i), labels[i]));
  REEF_ASSIGN_OR_RETURN(learn::MadeHead made,
                        learn::imprinting_head(learner.embedding(), learner.head.is_normalized, imprinting.classes(),
                                               learner.rows, learner.kept.state));
  return std::move(made.model);
}

Result<learn::SoftmaxResult> regression(const reef_learner& learner) {
  REEF_REQUIRE(learner.kept.classes.empty(),
               "softmax regression learns all classes at once and cannot keep the model's; use imprinting");
  return learn::train_softmax(learner.rows, learner.class_count(), {});
}

Result<ir::Model> softmax_head(const reef_learner& learner) {
  REEF_ASSIGN_OR_RETURN(const learn::SoftmaxResult trained, regression(learner));
  return learn::softmax_head(learner.embedding(), trained.classifier, numbered_classes(learner.class_count()),
                             learner.rows);
}

Status require_model(const reef_learner* learner) {
  REEF_RETURN_IF_ERROR(require(learner, "learner"));
  REEF_REQUIRE(!learner->extractor.subgraphs.empty(), "the learner was made without a model");
  return ok_status();
}

Status give_file(const ir::Model& model, char** bytes, size_t* size) {
  REEF_RETURN_IF_ERROR(ir::verify(model));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> file, tflite::write_model(model));
  *bytes = give_away(std::string(file.begin(), file.end()));
  *size = file.size();
  return ok_status();
}

}  // namespace

reef_status reef_learner_create(const reef_model* model, int32_t keep_classes, reef_learner** learner) {
  return guarded([&]() -> Status {
    REEF_RETURN_IF_ERROR(require(model, "model"));
    REEF_RETURN_IF_ERROR(require(learner, "learner"));
    auto made = std::make_unique<reef_learner>();
    const auto head = learn::find_head(*model->model);
    if (!head.ok()) return head.status().in(model->name);
    made->head = *head;
    REEF_ASSIGN_OR_RETURN(made->extractor, learn::extractor_of(*model->model, *head));
    made->rows.dimension = head->dimension;
    if (keep_classes != 0) {
      REEF_REQUIRE(head->kind != learn::HeadKind::kNone && head->is_normalized,
                   "{}: classes can be kept only of a model whose last layer works on normalized embeddings "
                   "(docs/learn.md)",
                   model->name);
      REEF_ASSIGN_OR_RETURN(made->kept, learn::read_classes(*model->model, *head));
    }
    *learner = made.release();
    return ok_status();
  });
}

reef_status reef_learner_create_bare(int32_t dimension, reef_learner** learner) {
  return guarded([&]() -> Status {
    REEF_RETURN_IF_ERROR(require(learner, "learner"));
    REEF_REQUIRE(dimension > 0 && dimension <= 1 << 20, "embeddings cannot have {} elements", dimension);
    auto made = std::make_unique<reef_learner>();
    made->rows.dimension = dimension;
    *learner = made.release();
    return ok_status();
  });
}

void reef_learner_free(reef_learner* learner) { delete learner; }
int32_t reef_learner_dimension(const reef_learner* learner) { return learner == nullptr ? 0 : learner->rows.dimension; }
int32_t reef_learner_class_count(const reef_learner* learner) {
  return learner == nullptr ? 0 : learner->class_count();
}

reef_status reef_learner_extractor(const reef_learner* learner, char** bytes, size_t* size) {
  return guarded([&]() -> Status {
    REEF_RETURN_IF_ERROR(require_model(learner));
    REEF_RETURN_IF_ERROR(require(bytes, "bytes"));
    REEF_RETURN_IF_ERROR(require(size, "size"));
    return give_file(learner->extractor, bytes, size);
  });
}

reef_status reef_learner_add(reef_learner* learner, const float* embedding, size_t count, int32_t class_id) {
  return guarded([&]() -> Status {
    REEF_RETURN_IF_ERROR(require(learner, "learner"));
    REEF_RETURN_IF_ERROR(require(embedding, "embedding"));
    REEF_REQUIRE(count == static_cast<std::size_t>(learner->rows.dimension),
                 "the model's embeddings have {} elements, {} are given", learner->rows.dimension, count);
    const int classes = learner->class_count();
    REEF_REQUIRE(class_id >= 0 && class_id <= classes, "there is no class {}; there are {}, and {} would be a new one",
                 class_id, classes, classes);
    const auto number = static_cast<std::size_t>(class_id);
    REEF_REQUIRE(number >= learner->kept.classes.size() || learner->kept.classes[number].is_trainable,
                 "class {} came with the model and cannot be trained further", class_id);
    learner->rows.add({embedding, count}, class_id);
    return ok_status();
  });
}

void reef_learner_clear(reef_learner* learner) {
  if (learner == nullptr) return;
  learner->rows.values.clear();
  learner->rows.labels.clear();
}

reef_status reef_learner_model(const reef_learner* learner, reef_learning method, char** bytes, size_t* size) {
  return guarded([&]() -> Status {
    REEF_RETURN_IF_ERROR(require_model(learner));
    REEF_RETURN_IF_ERROR(require(bytes, "bytes"));
    REEF_RETURN_IF_ERROR(require(size, "size"));
    REEF_REQUIRE(!learner->rows.empty(), "nothing was added to learn from");
    auto head = method == REEF_IMPRINTING ? imprinted_head(*learner) : softmax_head(*learner);
    if (!head.ok()) return head.status();
    REEF_ASSIGN_OR_RETURN(const ir::Model joined, learn::join(learner->extractor, *head));
    return give_file(joined, bytes, size);
  });
}

reef_status reef_learner_weights(const reef_learner* learner, float* weights, float* biases) {
  return guarded([&]() -> Status {
    REEF_RETURN_IF_ERROR(require(learner, "learner"));
    REEF_RETURN_IF_ERROR(require(weights, "weights"));
    REEF_RETURN_IF_ERROR(require(biases, "biases"));
    REEF_ASSIGN_OR_RETURN(const learn::SoftmaxResult trained, regression(*learner));
    std::copy(trained.classifier.weights.begin(), trained.classifier.weights.end(), weights);
    std::copy(trained.classifier.biases.begin(), trained.classifier.biases.end(), biases);
    return ok_status();
  });
}
