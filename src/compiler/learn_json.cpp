// SPDX-License-Identifier: Apache-2.0
#include "compiler/learn_json.h"

#include <functional>
#include <map>
#include <thread>

#include "base/file.h"
#include "compiler/output_check.h"
#include "data/labels.h"
#include "report/learning_curve.h"

namespace reef::compiler {
namespace {

using Json = nlohmann::ordered_json;

// Where a value of the request goes; false: it has another type.
using Taker = std::function<bool(const Json&)>;

Taker text(std::string& target) {
  return [&target](const Json& value) {
    if (value.is_string()) target = value.get<std::string>();
    return value.is_string();
  };
}
Taker flag(bool& target) {
  return [&target](const Json& value) {
    if (value.is_boolean()) target = value.get<bool>();
    return value.is_boolean();
  };
}
template <typename T>
Taker number(T& target) {
  return [&target](const Json& value) {
    const bool fits = value.is_number() && value.get<double>() > -2e9 && value.get<double>() < 2e9;
    if (fits) target = static_cast<T>(value.get<double>());
    return fits;
  };
}

struct Words {
  std::string method = "imprint", device, solver = "lbfgs", model_labels, mirror = "auto";
  double l2 = -1;
  int threads = 0;
};

std::map<std::string, Taker> takers(LearnRequest& request, Words& words) {
  LearnOptions& options = request.options;
  learn::SoftmaxOptions& softmax = options.softmax;
  return {{"method", text(words.method)},
          {"model", text(options.model)},
          {"data", text(options.data.path)},
          {"array", text(options.data.arrays)},
          {"truth", text(options.data.truth)},
          {"labels", text(options.data.labels)},
          {"preprocess", text(options.data.preprocess)},
          {"output", text(request.output)},
          {"plot", text(request.plot)},
          {"test", text(options.test)},
          {"embedding", text(options.embedding)},
          {"device", text(words.device)},
          {"model_labels", text(words.model_labels)},
          {"mirror", text(words.mirror)},
          {"hold_back", number(options.held_back)},
          {"seed", number(options.seed)},
          {"threads", number(words.threads)},
          {"keep_classes", flag(options.keep_classes)},
          {"resume", flag(options.resume)},
          {"compile", flag(options.compile)},
          {"curve", flag(options.has_curve)},
          {"solver", text(words.solver)},
          {"l2", number(words.l2)},
          {"iterations", number(softmax.max_iterations)},
          {"learning_rate", number(softmax.learning_rate)},
          {"batch", number(softmax.batch_size)},
          {"patience", number(softmax.patience)},
          {"balanced", flag(softmax.are_classes_balanced)}};
}

Status apply(const Words& words, LearnRequest& request) {
  LearnOptions& options = request.options;
  REEF_REQUIRE(words.method == "imprint" || words.method == "softmax", "method '{}' is neither imprint nor softmax",
               words.method);
  REEF_REQUIRE(words.solver == "lbfgs" || words.solver == "sgd", "solver '{}' is neither lbfgs nor sgd", words.solver);
  REEF_ASSIGN_OR_RETURN(options.mirroring, mirroring_from(words.mirror));
  REEF_REQUIRE(!options.model.empty() && !options.data.path.empty() && !request.output.empty(),
               "model, data and output must be given");
  REEF_REQUIRE(options.held_back >= 0 && options.held_back < 1, "hold_back must be in [0, 1)");
  options.method = words.method == "softmax" ? LearnMethod::kSoftmax : LearnMethod::kImprinting;
  options.softmax.solver = words.solver == "sgd" ? learn::Solver::kSgd : learn::Solver::kLbfgs;
  options.softmax.seed = options.seed;
  if (words.l2 >= 0) options.softmax.l2 = words.l2;
  REEF_ASSIGN_OR_RETURN(const std::string device, device_for_learning(words.device, options.compile));
  REEF_ASSIGN_OR_RETURN(options.embed.place, runtime::find_placement(device));
  options.embed.threads = words.threads > 0 ? words.threads : static_cast<int>(std::thread::hardware_concurrency());
  options.compares_methods = !request.plot.empty();
  request.model_labels = words.model_labels;
  if (words.model_labels.empty()) return ok_status();
  REEF_ASSIGN_OR_RETURN(options.model_labels, data::load_class_names(words.model_labels));
  return ok_status();
}

std::string plot_page(const LearnOptions& options, const LearnResult& result) {
  const bool is_softmax = options.method == LearnMethod::kSoftmax;
  const char* const names[] = {"imprinting", "softmax regression"};
  return report::learning_curve_page(
      "Accuracy against pictures", fmt::format("{}; {}. Tested on {}", options.model, result.data, result.tested_on),
      {{names[is_softmax], result.curve}, {names[!is_softmax], result.other_curve}}, result.chance);
}

}  // namespace

Result<std::string> device_for_learning(const std::string& word, bool compiles) {
  REEF_REQUIRE(!compiles || word != "cpu", "a compiled extractor does not run on the CPU: device is virtual, usb, ...");
  if (!word.empty()) return word;
  return std::string(compiles ? "virtual" : "cpu");
}

Result<Mirroring> mirroring_from(std::string_view word) {
  if (word == "on") return Mirroring::kOn;
  if (word == "off") return Mirroring::kOff;
  REEF_REQUIRE(word == "auto", "mirror '{}' is neither auto nor on nor off", word);
  return Mirroring::kAuto;
}

Result<LearnRequest> learn_request_from_json(std::string_view given) {
  const Json json = Json::parse(given, nullptr, false);
  REEF_REQUIRE(json.is_object(), "what to learn is not a JSON object");
  LearnRequest request;
  Words words;
  const std::map<std::string, Taker> known = takers(request, words);
  for (const auto& [name, value] : json.items()) {
    const auto found = known.find(name);
    REEF_REQUIRE(found != known.end(), "learning has no option '{}'", name);
    REEF_REQUIRE(value.is_null() || found->second(value), "option '{}' cannot be {}", name,
                 value.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  REEF_RETURN_IF_ERROR(apply(words, request));
  return request;
}

Result<LearnedReport> learn_and_write(const LearnRequest& request) {
  LearnedReport report;
  data::DatasetOptions test;
  test.path = request.options.test;
  REEF_RETURN_IF_ERROR(check_files({{request.output, learned_labels_path(request.output), request.plot},
                                    {request.options.model},
                                    {request.options.data, test},
                                    {request.model_labels}}));
  REEF_RETURN_IF_ERROR(check_ending(request.output, Content::kModel));
  REEF_RETURN_IF_ERROR(check_ending(request.plot, Content::kPage));
  REEF_ASSIGN_OR_RETURN(report.result, learn_classes(request.options));
  REEF_ASSIGN_OR_RETURN(report.files, learned_files(report.result, request.output));
  const LearnedFiles& files = report.files;
  std::vector<FileContent> contents = {{files.model_path, files.model}, {files.labels_path, files.labels}};
  std::string page;
  if (!request.plot.empty()) {
    REEF_REQUIRE(report.result.curve.size() > 1,
                 "there is no curve to draw: at least 2 pictures of each class and some to test with are needed");
    page = plot_page(request.options, report.result);
    contents.push_back({request.plot, bytes_of(page)});
  }
  REEF_RETURN_IF_ERROR(write_files(contents));
  return report;
}

Json learned_json(const LearnOptions& options, const LearnResult& result, const std::string& output,
                  const std::string& labels) {
  const bool is_softmax = options.method == LearnMethod::kSoftmax;
  Json json = {
      {"method", is_softmax ? "softmax" : "imprint"},
      {"model", options.model},
      {"output", output},
      {"labels", labels},
      {"head_found", learn::to_string(result.found)},
      {"dimension", result.dimension},
      {"data", result.data},
      {"preprocess", result.preprocess},
      {"device", options.embed.place.name},
      {"kept", result.kept},
      {"mirrored", nullptr},
      {"classes", Json::array()},
      {"rejected", Json::array()},
      {"time",
       {{"kind", "measured"}, {"embedding_s", result.embedding_seconds}, {"training_s", result.training_seconds}}}};
  if (result.mirror_test) {
    const learn::MirrorTest& test = *result.mirror_test;
    json["mirrored"] = {{"used", result.is_mirrored},
                        {"pictures", test.pictures},
                        {"right", test.right},
                        {"mirrored_right", test.mirrored_right},
                        {"changed", test.changed}};
  }
  for (std::size_t c = 0; c < result.class_names.size(); ++c) {
    json["classes"].push_back({{"number", c}, {"name", result.class_names[c]}, {"images", result.images[c]}});
  }
  for (const RejectedSample& each : result.rejected) {
    json["rejected"].push_back({{"name", each.name}, {"reason", each.reason}});
  }
  if (is_softmax) {
    json["training"] = {
        {"iterations", result.iterations}, {"stopped_early", result.has_stopped_early}, {"l2", result.l2}};
  } else {
    json["training"] = {{"factor", result.factor}};
  }
  json["test"] = nullptr;
  if (result.confusion.total() > 0) {
    const std::vector<std::size_t> seen = result.confusion.classes_seen();
    Json matrix = Json::array();
    for (const std::size_t truth : seen) {
      Json row = Json::array();
      for (const std::size_t answer : seen) row.push_back(result.confusion.counts[truth][answer]);
      matrix.push_back(std::move(row));
    }
    json["test"] = {{"on", result.tested_on},
                    {"samples", result.confusion.total()},
                    {"right", result.confusion.right()},
                    {"accuracy", result.confusion.accuracy()},
                    {"classes", seen},
                    {"confusion", std::move(matrix)}};
  }
  json["curve"] = Json::array();
  for (const learn::CurvePoint& point : result.curve) {
    json["curve"].push_back(
        {{"images", point.images}, {"accuracy", point.accuracy}, {"spread", point.spread}, {"draws", point.draws}});
  }
  json["collapsed"] = Json::array();
  for (const learn::CollapsedPair& pair : result.collapsed) {
    json["collapsed"].push_back({{"a", pair.a}, {"b", pair.b}, {"right", pair.right}, {"cosine", pair.cosine}});
  }
  json["notes"] = result.notes;
  return json;
}

}  // namespace reef::compiler
