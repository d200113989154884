// SPDX-License-Identifier: Apache-2.0
#include "quantize/equalization.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ir/metadata.h"

namespace reef::quantize {
namespace {

using Json = nlohmann::ordered_json;

bool is_usable(const std::vector<float>& factors) {
  return !factors.empty() &&
         std::all_of(factors.begin(), factors.end(), [](float f) { return std::isfinite(f) && f > 0; });
}

std::vector<std::vector<float>> lists_of(const Json& json) {
  std::vector<std::vector<float>> result;
  if (!json.is_array()) return result;
  for (const Json& list : json) {
    std::vector<float>& factors = result.emplace_back();
    if (!list.is_array()) continue;
    for (const Json& value : list) factors.push_back(value.is_number() ? value.get<float>() : 0.0f);
  }
  return result;
}

}  // namespace

void store_equalization(const NamedFactors& factors, ir::Model& model) {
  if (factors.empty()) return;
  std::map<std::vector<float>, std::size_t> numbers;  // tensors of a stream have the same
  std::string lists;
  Json tensors = Json::object();
  for (const auto& [name, values] : factors) {
    const auto [found, is_new] = numbers.try_emplace(values, numbers.size());
    if (is_new) lists += fmt::format("{}[{:.4g}]", lists.empty() ? "" : ",", fmt::join(values, ","));
    tensors[name] = found->second;
  }
  const std::string json = fmt::format(R"({{"factors":[{}],"tensors":{}}})", lists,
                                       tensors.dump(-1, ' ', false, Json::error_handler_t::replace));
  ir::set_metadata(model, kEqualizationMetadata, json);
}

NamedFactors stored_equalization(const ir::Model& model) {
  NamedFactors result;
  const Bytes* const data = ir::find_metadata(model, kEqualizationMetadata);
  if (data == nullptr) return result;
  const std::string_view text(reinterpret_cast<const char*>(data->data()), data->size());
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("factors") || !json.contains("tensors")) return result;
  if (!json["tensors"].is_object()) return result;
  const std::vector<std::vector<float>> lists = lists_of(json["factors"]);
  for (const auto& [name, number] : json["tensors"].items()) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() >= lists.size()) continue;
    const std::vector<float>& factors = lists[number.get<std::size_t>()];
    if (is_usable(factors)) result[name] = factors;
  }
  return result;
}

}  // namespace reef::quantize
