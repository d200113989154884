// SPDX-License-Identifier: Apache-2.0
#include "evaluate/partial.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace reef::evaluate {
namespace {

using Json = nlohmann::json;
constexpr int kVersion = 1;

}  // namespace

std::string partial_text(const Metric& metric, const std::string& settings, std::span<const std::string> keys) {
  Json samples = Json::object();
  for (std::size_t i = 0; i < keys.size(); ++i) samples[keys[i]] = metric.kept(static_cast<std::int64_t>(i));
  return Json({{"reef_partial", kVersion}, {"settings", settings}, {"samples", samples}})
             .dump(-1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

PartialMerger::PartialMerger(Metric& metric, std::string settings, const std::vector<std::string>& keys)
    : metric_(metric), settings_(std::move(settings)), keys_(keys), is_there_(keys.size(), 0) {
  for (std::size_t i = 0; i < keys.size(); ++i) position_[keys[i]] = static_cast<std::int64_t>(i);
}

Status PartialMerger::add(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  REEF_REQUIRE(json.is_object() && json.contains("reef_partial") && json.contains("samples") &&
                   json["samples"].is_object() && json.contains("settings") && json["settings"].is_string(),
               "it is no part of an evaluation (reef eval --partial writes them)");
  REEF_REQUIRE(json["reef_partial"] == kVersion, "another version of Reef wrote it");
  REEF_REQUIRE(json["settings"] == settings_,
               "it was measured with another model, another metric, other options or another version of Reef");
  for (const auto& [key, kept] : json["samples"].items()) {
    const auto found = position_.find(key);
    REEF_REQUIRE(found != position_.end(), "sample '{}' is none of these", key);
    char& is_there = is_there_[at(found->second)];
    REEF_REQUIRE(is_there == 0, "sample '{}' is in another part, too", key);
    is_there = 1;
    REEF_RETURN_IF_ERROR(metric_.restore(found->second, kept).in(fmt::format("sample '{}'", key)));
  }
  return ok_status();
}

Status PartialMerger::check_complete() const {
  const auto missing = std::count(is_there_.begin(), is_there_.end(), 0);
  if (missing == 0) return ok_status();
  const auto first = std::find(is_there_.begin(), is_there_.end(), 0) - is_there_.begin();
  return invalid_input("{} of {} samples are in none of the parts, the first is '{}'", missing, is_there_.size(),
                       keys_[at(first)]);
}

}  // namespace reef::evaluate
