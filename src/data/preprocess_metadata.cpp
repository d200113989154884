// SPDX-License-Identifier: Apache-2.0
// Preprocessing as JSON, and in a model's metadata. What is stored is foreign when it is read: every field is checked.
#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "data/preprocess.h"
#include "ir/metadata.h"

namespace reef::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFits[] = {"stretch", "crop", "letterbox"};
constexpr std::string_view kColours[] = {"rgb", "bgr", "grey"};
constexpr std::string_view kLayouts[] = {"by_shape", "nhwc", "nchw"};

// Index of the text in `names`, or an error that lists them.
template <typename Enum, std::size_t kCount>
Status read_name(const Json& json, const char* key, const std::string_view (&names)[kCount], Enum& value) {
  if (!json.contains(key)) return ok_status();
  REEF_REQUIRE(json[key].is_string(), "'{}' is no text", key);
  const auto found = std::find(std::begin(names), std::end(names), json[key].get<std::string>());
  REEF_REQUIRE(found != std::end(names), "'{}' is '{}', which is not known", key, json[key].get<std::string>());
  value = static_cast<Enum>(found - std::begin(names));
  return ok_status();
}

Status read_number(const Json& json, const char* key, double& value) {
  if (!json.contains(key)) return ok_status();
  REEF_REQUIRE(json[key].is_number() && std::isfinite(json[key].get<double>()), "'{}' is no number", key);
  value = json[key].get<double>();
  return ok_status();
}

Status read_numbers(const Json& json, const char* key, std::vector<double>& values) {
  if (!json.contains(key)) return ok_status();
  const Json& list = json[key];
  REEF_REQUIRE(list.is_array() && (list.size() == 1 || list.size() == 3 || list.size() == 4),
               "'{}' is no list of 1, 3 or 4 numbers", key);
  values.clear();
  for (const Json& item : list) {
    REEF_REQUIRE(item.is_number() && std::isfinite(item.get<double>()), "'{}' holds something that is no number", key);
    values.push_back(item.get<double>());
  }
  return ok_status();
}

}  // namespace

std::string to_json(const Preprocess& p) {
  Json json;
  if (p.pixels_are_codes) {
    json["pixels_are_codes"] = true;
  } else {
    json["scale"] = p.scale;
    json["mean"] = p.mean;
    json["std"] = p.std;
  }
  json["resize"] = kFits[at(p.fit)];
  if (p.crop != 1) json["crop"] = p.crop;
  if (p.fit == Fit::kLetterbox || p.pad != 114) json["pad"] = p.pad;
  json["colours"] = kColours[at(p.colours)];
  if (p.layout != Layout::kByShape) json["layout"] = kLayouts[at(p.layout)];
  return json.dump();
}

Result<Preprocess> preprocess_from_json(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  REEF_REQUIRE(json.is_object(), "the stored preprocessing is no JSON object");
  Preprocess p;
  if (json.contains("pixels_are_codes")) {
    REEF_REQUIRE(json["pixels_are_codes"].is_boolean(), "'pixels_are_codes' is neither true nor false");
    p.pixels_are_codes = json["pixels_are_codes"].get<bool>();
  }
  REEF_RETURN_IF_ERROR(read_number(json, "scale", p.scale));
  REEF_RETURN_IF_ERROR(read_numbers(json, "mean", p.mean));
  REEF_RETURN_IF_ERROR(read_numbers(json, "std", p.std));
  REEF_RETURN_IF_ERROR(read_name(json, "resize", kFits, p.fit));
  REEF_RETURN_IF_ERROR(read_number(json, "crop", p.crop));
  REEF_RETURN_IF_ERROR(read_number(json, "pad", p.pad));
  REEF_RETURN_IF_ERROR(read_name(json, "colours", kColours, p.colours));
  REEF_RETURN_IF_ERROR(read_name(json, "layout", kLayouts, p.layout));
  // The text form has all checks on values.
  return parse_preprocess(to_string(p));
}

void store_preprocess(const Preprocess& preprocess, ir::Model& model) {
  ir::set_metadata(model, kPreprocessMetadata, to_json(preprocess));
}

Result<std::optional<Preprocess>> stored_preprocess(const ir::Model& model) {
  const Bytes* const data = ir::find_metadata(model, kPreprocessMetadata);
  if (data == nullptr) return std::optional<Preprocess>();
  auto read = preprocess_from_json({reinterpret_cast<const char*>(data->data()), data->size()});
  if (!read.ok())
    return read.status().in(fmt::format("the model's metadata '{}' (--preprocess goes without)", kPreprocessMetadata));
  return std::optional<Preprocess>(*read);
}

}  // namespace reef::data
