// SPDX-License-Identifier: Apache-2.0
#include "data/labels.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>

#include "base/file.h"

namespace reef::data {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 26;
constexpr std::size_t kMaxLabels = 1 << 20;

std::vector<std::string> split_lines(std::string_view whole) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // Windows' editors put it in front
  if (whole.starts_with(kByteOrderMark)) whole.remove_prefix(kByteOrderMark.size());
  std::istringstream text{std::string(whole)};
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

Result<std::vector<std::string>> lines_of(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, kMaxFileBytes));
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  REEF_REQUIRE(text.find('\0') == std::string_view::npos, "'{}' is no text file: it should have one name in each line",
               path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  REEF_REQUIRE(
      first == std::string_view::npos || (text[first] != '{' && !(text[first] == '[' && path.ends_with(".json"))),
      "'{}' is JSON, which Reef does not read here: names of classes stand one in each line of a text, and boxes "
      "('class cx cy w h', a line each) in a .txt file beside each picture",
      path);
  REEF_REQUIRE(!path.ends_with(".yaml") && !path.ends_with(".yml"),
               "'{}' is YAML, which Reef does not read: write the names of classes into a text, one in each line",
               path);
  return split_lines(text);
}

}  // namespace

Result<std::vector<std::string>> load_class_names(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(const std::vector<std::string> lines, lines_of(path));
  std::vector<std::string> names;
  std::size_t next = 0;
  for (std::string line : lines) {
    line.erase(line.find_last_not_of(" \t") + 1);  // "7 " is the label 7, not number 7 without a label
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), index);
    const auto digits = static_cast<std::size_t>(end - line.data());
    if (error == std::errc() && digits < line.size() &&
        std::string_view(" \t,:").find(line[digits]) != std::string_view::npos) {
      line.erase(0, line.find_first_not_of(" \t,:", digits));
      next = index;
    }
    REEF_REQUIRE(next < kMaxLabels, "'{}' numbers a label {}; that is too many", path, next);
    if (names.size() <= next) names.resize(next + 1);
    names[next++] = line;
  }
  return names;
}

Result<std::map<std::string, std::int64_t>> load_label_map(const std::string& path,
                                                           const std::vector<std::string>& class_names) {
  REEF_ASSIGN_OR_RETURN(const std::vector<std::string> lines, lines_of(path));
  std::map<std::string, std::int64_t> result;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    const std::size_t split = line.find_last_of(" \t,;");
    REEF_REQUIRE(split != std::string::npos && split > 0, "'{}', line {}: there is no label behind '{}'", path, i + 1,
                 line);
    const std::size_t name_end = line.find_last_not_of(" \t,;", split);
    REEF_REQUIRE(name_end != std::string::npos, "'{}', line {}: there is no name", path, i + 1);
    const std::string name = line.substr(0, name_end + 1), label = line.substr(split + 1);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
    if (error != std::errc() || end != label.data() + label.size()) {
      const auto found = std::find(class_names.begin(), class_names.end(), label);
      REEF_REQUIRE(found != class_names.end(), "'{}', line {}: '{}' is neither a number nor a class name", path, i + 1,
                   label);
      number = found - class_names.begin();
    }
    result[name] = number;
  }
  return result;
}

namespace {

// Whether the numbers behind a class are corners of a polygon (x1 y1 x2 y2 x3 y3 ...), as for masks and turned boxes,
// and not a box with keypoints behind it. Keypoints have a visibility of 0, 1 or 2 as their third number, or are left
// out.
bool are_corners(const std::vector<double>& numbers) {
  constexpr std::size_t kFewest = 6, kBox = 4;
  if (numbers.size() < kFewest || numbers.size() % 2 != 0) return false;
  if ((numbers.size() - kBox) % 3 != 0) return true;
  for (std::size_t i = kBox + 2; i < numbers.size(); i += 3) {
    if (numbers[i] != 0 && numbers[i] != 1 && numbers[i] != 2) return true;
  }
  return false;
}

// The upright box around a polygon: centre, width, height.
std::vector<double> box_around(const std::vector<double>& corners) {
  double left = corners[0], right = left, top = corners[1], bottom = top;
  for (std::size_t i = 0; i < corners.size(); i += 2) {
    left = std::min(left, corners[i]);
    right = std::max(right, corners[i]);
    top = std::min(top, corners[i + 1]);
    bottom = std::max(bottom, corners[i + 1]);
  }
  return {(left + right) / 2, (top + bottom) / 2, right - left, bottom - top};
}

}  // namespace

Result<Truth> read_boxes(std::string_view text, const std::string& name) {
  const std::vector<std::string> lines = split_lines(text);
  Truth truth{ir::DataType::kFloat64, {0, 5}, {}};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find_first_not_of(" \t") == std::string::npos) continue;
    std::istringstream line(lines[i]);
    double label = -1;
    line >> label;
    std::vector<double> numbers;
    for (double number = 0; line >> number;) numbers.push_back(number);
    REEF_REQUIRE(label >= 0 && numbers.size() >= 4 && line.eof(), "'{}', line {}: '{}' is not 'class cx cy w h'", name,
                 i + 1, lines[i].substr(0, 80));
    if (are_corners(numbers)) numbers = box_around(numbers);
    truth.values.insert(truth.values.end(), {numbers[0], numbers[1], numbers[2], numbers[3], label});
    ++truth.shape[0];
  }
  return truth;
}

Result<Truth> load_boxes(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, kMaxFileBytes));
  return read_boxes({reinterpret_cast<const char*>(file.data()), file.size()}, path);
}

Truth class_truth(std::int64_t label) { return {ir::DataType::kInt64, {}, {static_cast<double>(label)}}; }

Result<Truth> read_truth(std::string_view text, const std::vector<std::string>& class_names, const std::string& name) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const std::string_view word =
      first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (!word.empty() && error == std::errc() && end == word.data() + word.size()) return class_truth(number);
  const auto known = std::find(class_names.begin(), class_names.end(), word);
  if (known != class_names.end()) return class_truth(known - class_names.begin());
  auto boxes = read_boxes(word, name);
  if (boxes.ok()) return boxes;
  return invalid_input("'{}': '{}' is no class number, no name of the labels file and no boxes ('class cx cy w h')",
                       name, word.substr(0, 80));
}

std::optional<std::int64_t> leading_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  return end == text.data() + text.size() || *end == '_' || *end == '-' || *end == '.' ? std::optional(value)
                                                                                       : std::nullopt;
}

std::string first_folder(const std::string& name) {
  const std::size_t slash = name.find('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

Result<std::map<std::int64_t, std::string>> label_by_folder(std::vector<NamedPicture>& pictures,
                                                            const std::vector<std::string>& class_names) {
  std::map<std::string, std::int64_t> number;
  for (const NamedPicture& picture : pictures) number[first_folder(picture.name)] = -1;
  const bool are_numbers = std::all_of(number.begin(), number.end(),
                                       [](const auto& entry) { return leading_number(entry.first).has_value(); });
  std::int64_t next = 0;
  std::map<std::int64_t, std::string> names;
  for (auto& [name, label] : number) {
    label = are_numbers ? *leading_number(name) : next++;
    if (!class_names.empty()) {
      const auto found = std::find(class_names.begin(), class_names.end(), name);
      REEF_REQUIRE(found != class_names.end() || are_numbers, "sub-folder '{}' is no class of the labels file", name);
      if (found != class_names.end()) label = found - class_names.begin();
    }
    names[label] = name;
  }
  std::map<std::string, std::int64_t> seen;
  std::vector<std::pair<std::int64_t, std::size_t>> turns;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const std::string folder = first_folder(pictures[i].name);
    pictures[i].right = class_truth(number[folder]);
    turns.emplace_back(seen[folder]++, i);
  }
  std::sort(turns.begin(), turns.end());
  std::vector<NamedPicture> ordered;
  for (const auto& turn : turns) ordered.push_back(std::move(pictures[turn.second]));
  pictures = std::move(ordered);
  return names;
}

Status label_by_file(const std::string& path, std::vector<NamedPicture>& pictures,
                     const std::vector<std::string>& class_names) {
  REEF_ASSIGN_OR_RETURN(const auto map, load_label_map(path, class_names));
  for (NamedPicture& picture : pictures) {
    auto found = map.find(picture.name);
    if (found == map.end()) found = map.find(picture.name.substr(picture.name.rfind('/') + 1));
    REEF_REQUIRE(found != map.end(), "'{}' has no label for '{}'", path, picture.name);
    picture.right = class_truth(found->second);
  }
  return ok_status();
}

}  // namespace reef::data
