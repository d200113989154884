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

Result<std::vector<std::string>> lines_of(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, kMaxFileBytes));
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  REEF_REQUIRE(bytes.find('\0') == std::string_view::npos, "'{}' is no text file: it should have one name in each line",
               path);
  std::istringstream text{std::string(bytes)};
  std::vector<std::string> lines;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // Windows' editors put it in front
  if (text.str().starts_with(kByteOrderMark)) text.seekg(static_cast<std::streamoff>(kByteOrderMark.size()));
  for (std::string line; std::getline(text, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  return lines;
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

Result<Truth> load_boxes(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(const std::vector<std::string> lines, lines_of(path));
  Truth truth{ir::DataType::kFloat64, {0, 5}, {}};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find_first_not_of(" \t") == std::string::npos) continue;
    std::istringstream line(lines[i]);
    double label = 0, cx = 0, cy = 0, w = 0, h = 0;
    line >> label >> cx >> cy >> w >> h;
    REEF_REQUIRE(!line.fail() && label >= 0, "'{}', line {}: '{}' is not 'class cx cy w h'", path, i + 1, lines[i]);
    truth.values.insert(truth.values.end(), {cx, cy, w, h, label});
    ++truth.shape[0];
  }
  return truth;
}

}  // namespace reef::data
