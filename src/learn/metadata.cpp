// SPDX-License-Identifier: Apache-2.0
#include "learn/metadata.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <nlohmann/json.hpp>

namespace reef::learn {
namespace {

using Json = nlohmann::ordered_json;

const Bytes* find(const ir::Model& model) {
  for (const ir::Metadata& entry : model.metadata) {
    if (entry.name == kLearningMetadata && entry.buffer >= 0 &&
        static_cast<std::size_t>(entry.buffer) < model.buffers.size()) {
      return &model.buffers[at(entry.buffer)].data;
    }
  }
  return nullptr;
}

void store_text(std::string_view text, ir::Model& model) {
  if (model.buffers.empty()) model.buffers.resize(1);
  ir::Buffer buffer;
  buffer.data = Bytes(std::vector<std::uint8_t>(text.begin(), text.end()));
  model.buffers.push_back(std::move(buffer));
  model.metadata.push_back({std::string(kLearningMetadata), static_cast<std::int32_t>(model.buffers.size()) - 1});
}

Result<LearnedClass> read_class(const Json& entry, std::size_t number) {
  LearnedClass result;
  REEF_REQUIRE(entry.is_object(), "metadata '{}': class {} is no object", kLearningMetadata, number);
  if (entry.contains("name") && entry["name"].is_string()) result.name = entry["name"].get<std::string>();
  if (entry.contains("images") && entry["images"].is_number_integer())
    result.images = entry["images"].get<std::int64_t>();
  if (entry.contains("sum_length") && entry["sum_length"].is_number()) {
    const auto value = entry["sum_length"].get<double>();
    REEF_REQUIRE(std::isfinite(value) && value > 0, "metadata '{}': class {} has a sum of length {}", kLearningMetadata,
                 number, value);
    result.sum_length = value;
  }
  return result;
}

}  // namespace

std::map<int, double> parse_description(std::string_view description) {
  std::map<int, double> lengths;
  std::istringstream words{std::string(description)};
  std::string number, length;
  while (words >> number) {
    if (!(words >> length)) return {};
    char* end = nullptr;
    const long index = std::strtol(number.c_str(), &end, 10);
    if (*end != 0 || index < 0 || index > 1 << 24) return {};
    const double value = std::strtod(length.c_str(), &end);
    if (*end != 0 || !std::isfinite(value) || value <= 0) return {};
    lengths.emplace(static_cast<int>(index), value);
  }
  return lengths;
}

void store_learning(const Learning& learning, ir::Model& model) {
  drop_learning(model);
  Json json = {{"method", learning.method}, {"classes", Json::array()}};
  std::string description;
  for (std::size_t i = 0; i < learning.classes.size(); ++i) {
    const LearnedClass& each = learning.classes[i];
    Json entry = {{"name", each.name}, {"images", each.images}};
    if (each.sum_length) {
      entry["sum_length"] = *each.sum_length;
      description += fmt::format("{} {:f}\n", i, *each.sum_length);
    }
    json["classes"].push_back(std::move(entry));
  }
  if (!description.empty()) model.description = description;
  store_text(json.dump(-1, ' ', false, Json::error_handler_t::replace), model);
}

Result<std::optional<Learning>> stored_learning(const ir::Model& model) {
  std::optional<Learning> result;
  const std::map<int, double> lengths = parse_description(model.description);
  if (const Bytes* bytes = find(model)) {
    const Json json = Json::parse(bytes->data(), bytes->data() + bytes->size(), nullptr, false);
    REEF_REQUIRE(json.is_object() && json.contains("classes") && json["classes"].is_array(),
                 "metadata '{}' is not what Reef writes", kLearningMetadata);
    result.emplace();
    if (json.contains("method") && json["method"].is_string()) result->method = json["method"].get<std::string>();
    for (std::size_t i = 0; i < json["classes"].size(); ++i) {
      REEF_ASSIGN_OR_RETURN(LearnedClass read, read_class(json["classes"][i], i));
      result->classes.push_back(std::move(read));
    }
    return result;
  }
  if (lengths.empty()) return result;
  result.emplace();
  result->method = "imprinting";
  result->classes.resize(static_cast<std::size_t>(lengths.rbegin()->first) + 1);
  for (const auto& [index, length] : lengths) result->classes[at(index)].sum_length = length;
  return result;
}

void drop_learning(ir::Model& model) {
  std::erase_if(model.metadata, [](const ir::Metadata& entry) { return entry.name == kLearningMetadata; });
  if (!parse_description(model.description).empty()) model.description.clear();
}

void copy_learning(const ir::Model& from, ir::Model& to) {
  if (!parse_description(from.description).empty()) to.description = from.description;
  if (const Bytes* bytes = find(from)) {
    store_text(std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size()), to);
  }
}

}  // namespace reef::learn
