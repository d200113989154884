// SPDX-License-Identifier: Apache-2.0
// reef.h: learning.

#include "compiler/front_end.h"
#include "compiler/learn_json.h"
#include "formats/tflite/writer.h"
#include "guard.h"
#include "learn/engine.h"
#include "learn/softmax_head.h"
#include "learn/softmax_regression.h"

using namespace reef;
using namespace reef::c_api;

struct reef_imprinting {
  learn::ImprintingEngine engine;
};

namespace {

Result<ir::Model> model_of(const void* bytes, std::size_t size) {
  REEF_RETURN_IF_ERROR(require(bytes, "model"));
  const auto* first = static_cast<const std::uint8_t*>(bytes);
  REEF_ASSIGN_OR_RETURN(compiler::FrontEndResult read, compiler::read_tflite_model(Bytes::copy_of({first, size})));
  return std::move(read.model);
}

Status give_model(const ir::Model& model, char** bytes, std::size_t* size) {
  REEF_RETURN_IF_ERROR(require(bytes, "bytes"));
  REEF_RETURN_IF_ERROR(require(size, "size"));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> file, tflite::write_model(model));
  *bytes = give_away(std::string(file.begin(), file.end()));
  *size = file.size();
  return ok_status();
}

Result<learn::Embeddings> rows_of(const float* rows, const std::int32_t* labels, std::size_t count,
                                  std::size_t dimension, std::int32_t classes) {
  REEF_REQUIRE(dimension > 0 && dimension < (1 << 24) && count < (std::size_t{1} << 40) / dimension,
               "{} rows of {} numbers are too many, or none", count, dimension);
  learn::Embeddings result;
  result.dimension = static_cast<int>(dimension);
  if (count > 0) REEF_RETURN_IF_ERROR(require(rows, "rows"));
  result.values.assign(rows, rows + count * dimension);
  result.labels.assign(count, 0);
  if (labels != nullptr) result.labels.assign(labels, labels + count);
  REEF_RETURN_IF_ERROR(learn::check_embeddings(result, classes));
  return result;
}

}  // namespace

reef_status reef_learn(const char* request, void (*progress)(void* user, int64_t done, int64_t all), void* user,
                       char** json) {
  return guarded({{request, "request"}}, [&]() -> Status {
    REEF_ASSIGN_OR_RETURN(compiler::LearnRequest asked, compiler::learn_request_from_json(request));
    if (progress != nullptr) {
      asked.options.embed.progress = [=](std::int64_t done, std::int64_t all) { progress(user, done, all); };
    }
    REEF_ASSIGN_OR_RETURN(const compiler::LearnedReport report, compiler::learn_and_write(asked));
    if (json == nullptr) return ok_status();
    const auto made =
        compiler::learned_json(asked.options, report.result, report.files.model_path, report.files.labels_path);
    *json = give_away(made.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return ok_status();
  });
}

reef_status reef_imprinting_create(const void* model, size_t size, int32_t keep_classes, reef_imprinting** engine) {
  return guarded({{engine, "engine"}}, [&]() -> Status {
    REEF_ASSIGN_OR_RETURN(const ir::Model read, model_of(model, size));
    REEF_ASSIGN_OR_RETURN(learn::ImprintingEngine made, learn::ImprintingEngine::create(read, keep_classes != 0));
    *engine = new reef_imprinting{std::move(made)};
    return ok_status();
  });
}

int32_t reef_imprinting_dimension(const reef_imprinting* engine) {
  return engine == nullptr ? 0 : engine->engine.dimension();
}

int32_t reef_imprinting_class_count(const reef_imprinting* engine) {
  return engine == nullptr ? 0 : engine->engine.classes();
}

const char* reef_imprinting_class_name(const reef_imprinting* engine, int32_t class_id) {
  if (engine == nullptr || class_id < 0 || class_id >= engine->engine.classes()) return "";
  return engine->engine.state()[at(class_id)].name.c_str();
}

reef_status reef_imprinting_set_class_name(reef_imprinting* engine, int32_t class_id, const char* name) {
  return guarded({{engine, "engine"}, {name, "name"}}, [&]() -> Status {
    REEF_REQUIRE(class_id >= 0 && class_id < engine->engine.classes(), "there is no class {}", class_id);
    engine->engine.set_name(class_id, name);
    return ok_status();
  });
}

reef_status reef_imprinting_train(reef_imprinting* engine, const float* embedding, size_t count, int32_t class_id) {
  return guarded({{engine, "engine"}, {embedding, "embedding"}}, [&]() -> Status {
    return engine->engine.train({embedding, count}, class_id);
  });
}

reef_status reef_imprinting_extractor(const reef_imprinting* engine, char** bytes, size_t* size) {
  return guarded({{engine, "engine"}}, [&]() -> Status { return give_model(engine->engine.extractor(), bytes, size); });
}

reef_status reef_imprinting_model(const reef_imprinting* engine, char** bytes, size_t* size) {
  return guarded({{engine, "engine"}}, [&]() -> Status {
    REEF_ASSIGN_OR_RETURN(const ir::Model model, engine->engine.model());
    return give_model(model, bytes, size);
  });
}

void reef_imprinting_free(reef_imprinting* engine) { delete engine; }

reef_status reef_softmax_train(const float* rows, const int32_t* labels, size_t count, size_t dimension,
                               int32_t classes, double l2, float* weights, float* biases) {
  return guarded({{labels, "labels"}, {weights, "weights"}, {biases, "biases"}}, [&]() -> Status {
    REEF_ASSIGN_OR_RETURN(const learn::Embeddings given, rows_of(rows, labels, count, dimension, classes));
    learn::SoftmaxOptions options;
    if (l2 >= 0) options.l2 = l2;
    REEF_ASSIGN_OR_RETURN(const learn::SoftmaxResult trained, learn::train_softmax(given, classes, options));
    std::copy(trained.classifier.weights.begin(), trained.classifier.weights.end(), weights);
    std::copy(trained.classifier.biases.begin(), trained.classifier.biases.end(), biases);
    return ok_status();
  });
}

reef_status reef_softmax_model(const void* extractor, size_t size, const float* weights, const float* biases,
                               int32_t classes, size_t dimension, const float* rows, size_t count, char** bytes,
                               size_t* bytes_size) {
  return guarded({{weights, "weights"}, {biases, "biases"}}, [&]() -> Status {
    REEF_REQUIRE(classes > 0 && classes < (1 << 24), "{} classes are too many, or none", classes);
    REEF_ASSIGN_OR_RETURN(const learn::Embeddings given, rows_of(rows, nullptr, count, dimension, classes));
    REEF_ASSIGN_OR_RETURN(const ir::Model model, model_of(extractor, size));
    REEF_ASSIGN_OR_RETURN(const learn::Head head, learn::find_head(model));
    REEF_ASSIGN_OR_RETURN(const ir::Model base, learn::extractor_of(model, head));
    learn::LinearClassifier layer{classes, static_cast<int>(dimension), {}, {}};
    layer.weights.assign(weights, weights + static_cast<std::size_t>(classes) * dimension);
    layer.biases.assign(biases, biases + classes);
    const ir::Subgraph& graph = base.subgraphs[0];
    REEF_ASSIGN_OR_RETURN(const ir::Model made,
                          learn::softmax_head(graph.tensors[at(graph.outputs[0])], layer, {}, given));
    REEF_ASSIGN_OR_RETURN(const ir::Model joined, learn::join(base, made));
    return give_model(joined, bytes, bytes_size);
  });
}
