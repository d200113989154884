// SPDX-License-Identifier: Apache-2.0
#include "data/model_card.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "data/labels.h"
#include "formats/zip/archive.h"
#include "ir/metadata.h"

namespace reef::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostNames = 100'000;
constexpr std::uint64_t kMaxModelBytes = std::uint64_t{1} << 31, kMaxCardBytes = std::uint64_t{1} << 24;

void put_name(std::size_t index, std::string name, std::vector<std::string>& names) {
  if (index >= kMostNames) return;
  if (names.size() <= index) names.resize(index + 1);
  names[index] = std::move(name);
}

// Reads the names out of a Python literal, {0: 'person', 1: "man's"} or ['person', "man's"]. A text that is not whole
// (cut off, without a key, two values side by side) says nothing: half of a list would give classes wrong names.
class PythonNames {
 public:
  explicit PythonNames(std::string_view text) : text_(text) {}

  std::vector<std::string> read() {
    const bool is_whole = take('{') ? read_entries('}', /*has_keys=*/true) : take('[') && read_entries(']', false);
    skip_spaces();
    return is_whole && at_ == text_.size() ? std::move(names_) : std::vector<std::string>();
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  bool take(char wanted) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  bool read_index(std::size_t& index) {
    skip_spaces();
    const auto read = std::from_chars(text_.data() + at_, text_.data() + text_.size(), index);
    if (read.ec != std::errc() || index >= kMostNames) return false;
    at_ = static_cast<std::size_t>(read.ptr - text_.data());
    return true;
  }

  bool read_text(std::string& name) {
    skip_spaces();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
    const char quote = text_[at_++];
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      name += text_[at_];
    }
    return take(quote);
  }

  bool read_entries(char end, bool has_keys) {
    for (std::size_t index = 0; !take(end); ++index) {
      if (!names_.empty() && !take(',')) return false;
      if (!names_.empty() && take(end)) return true;  // a comma behind the last entry
      std::string name;
      if (has_keys && !(read_index(index) && take(':'))) return false;
      if (!read_text(name) || index >= kMostNames) return false;
      put_name(index, std::move(name), names_);
    }
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> names_;
};

std::vector<std::string> names_of_python(std::string_view text) { return PythonNames(text).read(); }

std::vector<std::string> names_of_json(const Json& json) {
  std::vector<std::string> names;
  if (json.is_array()) {
    for (const Json& name : json) {
      if (name.is_string()) put_name(names.size(), name.get<std::string>(), names);
    }
  } else if (json.is_object()) {
    for (const auto& [key, name] : json.items()) {
      const bool is_number = !key.empty() && key.size() < 7 && key.find_first_not_of("0123456789") == std::string::npos;
      if (is_number && name.is_string()) put_name(std::stoul(key), name.get<std::string>(), names);
    }
  } else if (json.is_string()) {
    names = names_of_python(json.get<std::string>());
  }
  return names;
}

// "[17, 3]"
void read_keypoints(const Json& json, ModelCard& card) {
  if (!json.is_array() || json.size() != 2 || !json[0].is_number_integer() || !json[1].is_number_integer()) return;
  const auto count = json[0].get<std::int64_t>(), numbers = json[1].get<std::int64_t>();
  if (count < 1 || count > 1000 || numbers < 2 || numbers > 3) return;
  card.keypoints = static_cast<int>(count);
  card.keypoint_numbers = static_cast<int>(numbers);
}

ModelCard card_of_json(const Json& json) {
  ModelCard card;
  if (!json.is_object()) return card;
  if (json.contains("task") && json["task"].is_string()) card.task = json["task"].get<std::string>();
  if (json.contains("names")) card.names = names_of_json(json["names"]);
  if (json.contains("kpt_shape")) read_keypoints(json["kpt_shape"], card);
  return card;
}

std::string text_of(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::vector<std::string> model_card_lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

// What toolchains append to a model's name.
std::string without_endings(std::string stem) {
  static constexpr std::string_view kEndings[] = {"_edgetpu",    "_int8",    "_quant",   "_full_integer_quant",
                                                  "_float",      "_float32", "_float16", "_integer_quant",
                                                  "_postprocess"};
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::string_view ending : kEndings) {
      if (stem.size() <= ending.size() || !stem.ends_with(ending)) continue;
      stem.resize(stem.size() - ending.size());
      changed = true;
    }
  }
  return stem;
}

bool is_label_file(const std::string& name) { return name == "labels.txt" || name.ends_with("_labels.txt"); }

// The label file beside a model, or an empty path. `is_certain`: it has the model's name.
fs::path labels_beside(const fs::path& model, bool& is_certain) {
  std::error_code error;
  const fs::path folder = model.has_parent_path() ? model.parent_path() : fs::path(".");
  const std::string stem = model.stem().string();
  is_certain = true;
  for (const std::string& name : {stem, without_endings(stem)}) {
    const fs::path path = folder / (name + "_labels.txt");
    if (fs::is_regular_file(path, error)) return path;
  }
  is_certain = false;
  std::vector<fs::path> found;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (is_label_file(it->path().filename().string()) && it->is_regular_file(error)) found.push_back(it->path());
  }
  return found.size() == 1 ? found.front() : fs::path();
}

}  // namespace

ModelCard card_of_properties(const std::vector<std::pair<std::string, std::string>>& properties) {
  ModelCard card;
  for (const auto& [key, value] : properties) {
    if (key == "task") card.task = value;
    if (key == "names") card.names = names_of_python(value);
    if (key == "kpt_shape") read_keypoints(Json::parse(value, nullptr, false), card);
  }
  return card;
}

ModelCard card_of_archive(const Bytes& file) {
  const auto archive = zip::Archive::open(file);
  if (!archive.ok()) return {};
  const zip::Member* labels = nullptr;
  for (const zip::Member& member : archive->members()) {
    if (member.bytes > kMaxCardBytes) continue;
    if (member.name.ends_with("metadata.json")) {
      const auto text = archive->read(member);
      if (!text.ok()) continue;
      ModelCard card = card_of_json(Json::parse(text_of(*text), nullptr, false));
      if (!card.is_empty()) return card;
    }
    if (member.name.ends_with(".txt") && member.name.find("label") != std::string::npos) labels = &member;
  }
  ModelCard card;
  if (labels == nullptr) return card;
  if (const auto text = archive->read(*labels); text.ok()) card.names = model_card_lines_of(text_of(*text));
  return card;
}

void store_card(const ModelCard& card, ir::Model& model) {
  if (card.is_empty()) return;
  Json json = Json::object();
  if (!card.task.empty()) json["task"] = card.task;
  if (!card.names.empty()) json["names"] = card.names;
  if (card.keypoints > 0) json["kpt_shape"] = {card.keypoints, card.keypoint_numbers};
  ir::set_metadata(model, kCardMetadata, json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

ModelCard stored_card(const ir::Model& model) {
  const Bytes* const data = ir::find_metadata(model, kCardMetadata);
  return data == nullptr ? ModelCard() : card_of_json(Json::parse(text_of(*data), nullptr, false));
}

Result<FoundNames> find_class_names(const std::string& wanted, const std::string& model_path, const ir::Model& model,
                                    std::size_t classes) {
  FoundNames found;
  if (!wanted.empty()) {
    REEF_ASSIGN_OR_RETURN(found.names, load_class_names(wanted));
    found.origin = wanted;
    return found;
  }
  found = {stored_card(model).names, "the model"};
  if (!found.names.empty()) return found;
  if (model_path.ends_with(".tflite")) {
    if (const auto file = read_file(model_path, kMaxModelBytes); file.ok()) found.names = card_of_archive(*file).names;
    if (!found.names.empty()) return found;
  }
  bool is_certain = false;
  const fs::path beside = labels_beside(model_path, is_certain);
  if (beside.empty()) return FoundNames();
  auto names = load_class_names(beside.string());
  if (!names.ok()) return FoundNames();  // nobody has asked for this file
  if (!is_certain && classes > 0 && names->size() != classes) return FoundNames();
  return FoundNames{std::move(names).value(), beside.string()};
}

}  // namespace reef::data
