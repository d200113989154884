// SPDX-License-Identifier: Apache-2.0
#include "usage.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/shell_word.h"

namespace reef::app {
namespace {

// Lower case, without leading dashes, '-' for '_'.
std::string normalized(const std::string& word) {
  const std::size_t begin = word.find_first_not_of('-');
  std::string result = begin == std::string::npos ? "" : word.substr(begin);
  for (char& c : result) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// Letters to insert, delete, replace or exchange with their neighbour.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const bool is_same = a[i - 1] == b[j - 1];
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (is_same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

// Names that other programs give to what some option of ours is.
const std::vector<std::vector<std::string>>& synonyms() {
  static const std::vector<std::vector<std::string>> groups = {
      {"data", "images", "image-dir", "pictures", "photos", "samples", "dataset", "representative-dataset",
       "calibration-data", "calib", "calib-data", "calibration-dir", "int8"},
      {"out", "output", "out-dir", "output-dir", "output-path", "out-file", "output-file", "outdir"},
      {"in", "input", "inputs", "input-file"},
      {"image", "picture", "photo"},
      {"min-runtime-version", "runtime", "runtime-version"},
      {"threads", "jobs", "num-threads", "workers"},
      {"input-shape", "input-shapes", "shape", "shapes", "input-size", "imgsz", "overwrite-input-shape"},
      {"time-limit", "timeout", "timeout-sec"},
      {"labels", "label-file", "classes", "names"},
      {"limit", "max-samples", "num-samples"},
      {"keep-nchw", "keep-ncw-or-nchw-or-ncdhw-input-names"},
  };
  return groups;
}

// Names that other programs give to what some command of ours does.
const std::vector<std::vector<std::string>>& command_synonyms() {
  static const std::vector<std::vector<std::string>> groups = {
      {"run", "infer", "predict", "detect", "classify", "invoke"},
      {"eval", "evaluate", "validate", "val", "test", "accuracy"},
      {"check", "analyze", "analyse", "explain", "profile", "benchmark"},
      {"exec", "shell"},
      {"compare", "diff", "debug"},
      {"quantize", "calibrate"},
      {"inspect", "info", "show", "dump"},
      {"disasm", "disassemble"},
      {"asm", "assemble"},
      {"models", "list", "download", "zoo"},
  };
  return groups;
}

std::string synonym_of(const std::string& word, const std::vector<std::vector<std::string>>& groups,
                       const std::vector<std::string>& known) {
  const std::string wanted = normalized(word);
  for (const auto& group : groups) {
    if (std::find(group.begin(), group.end(), wanted) == group.end()) continue;
    for (const std::string& candidate : known) {
      if (std::find(group.begin(), group.end(), normalized(candidate)) != group.end()) return candidate;
    }
  }
  return {};
}

// "--long" names of a command's options, as they are typed.
std::vector<std::string> long_options(const CommandHelp& command) {
  std::vector<std::string> names;
  for (const OptionHelp& option : command.options) {
    std::copy_if(option.names.begin(), option.names.end(), std::back_inserter(names),
                 [](const std::string& name) { return name.starts_with("--"); });
  }
  return names;
}

// The command with this path at or beneath `command`, which must be one of them.
const CommandHelp& command_at(const CommandHelp& command, const std::string& path) {
  for (const CommandHelp& sub : command.commands) {
    if (path == sub.path || path.starts_with(sub.path + " ")) return command_at(sub, path);
  }
  return command;
}

std::string quoted_list(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(fmt::format("'{}'", word));
  return fmt::format("{}", fmt::join(quoted, ", "));
}

// Other commands that have an option of exactly this name.
std::string where_it_exists(const CommandHelp& program, const CommandHelp& command, const std::string& option) {
  std::vector<std::string> found;
  for (const CommandHelp& other : program.commands) {
    const auto names = long_options(other);
    if (&other != &command && std::find(names.begin(), names.end(), option) != names.end()) found.push_back(other.path);
  }
  return found.empty() ? "" : fmt::format("; {} {} it", fmt::join(found, ", "), found.size() == 1 ? "has" : "have");
}

std::string unknown_options(const CommandHelp& program, const CommandHelp& command,
                            const std::vector<std::string>& unknown) {
  std::string text = fmt::format("there is no option {}", quoted_list(unknown));
  const std::vector<std::string> known = long_options(command);
  std::vector<std::string> meant;
  for (const std::string& word : unknown) {
    const std::string name = word.substr(0, word.find('='));
    std::string near = word.starts_with("--") ? nearest_word(name, known) : "";
    if (near.empty() || edit_distance(normalized(near), normalized(name)) > 1) {
      const std::string synonym = synonym_of(name, synonyms(), known);
      if (!synonym.empty()) near = synonym;
    }
    if (!near.empty() && std::find(meant.begin(), meant.end(), near) == meant.end()) meant.push_back(near);
  }
  if (!meant.empty()) return text + fmt::format("; did you mean {}?", fmt::join(meant, ", "));
  return text + where_it_exists(program, command, unknown[0].substr(0, unknown[0].find('=')));
}

// The option with which a file is given that stands alone on the command line.
std::string option_for(const CommandHelp& command, const std::string& word) {
  const std::vector<std::string> options = long_options(command);
  const auto has = [&](const char* name) { return std::find(options.begin(), options.end(), name) != options.end(); };
  std::error_code error;
  const std::filesystem::path path(word);
  const std::string ending = normalized(path.extension().string());
  const bool is_picture =
      ending == ".jpg" || ending == ".jpeg" || ending == ".png" || ending == ".bmp" || ending == ".webp";
  if (is_picture && has("--image")) {
    return fmt::format("; did you mean --image {}? (one picture at a time)", shell_word(word));
  }
  if (std::filesystem::is_directory(path, error) && has("--data")) {
    return fmt::format("; did you mean --data {}?", shell_word(word));
  }
  return "";
}

// `word` stands where a command under `command` should; empty: nothing does.
std::string missing_command(const CommandHelp& command, const std::string& word) {
  std::vector<std::string> names;
  for (const CommandHelp& sub : command.commands) names.push_back(sub.path.substr(command.path.size() + 1));
  const std::string list = fmt::format("there {} {}", names.size() == 1 ? "is" : "are", fmt::join(names, ", "));
  if (word.empty()) return "a command is missing; " + list;
  const std::string near = nearest_word(word, names);
  return fmt::format("there is no command '{}'; {}", word, near.empty() ? list : fmt::format("did you mean {}?", near));
}

std::string missing_argument(const CommandHelp& command, const std::string& what) {
  const std::string name = what.substr(0, what.find(" is required"));
  for (const OptionHelp& option : command.options) {
    if (option.key != name) continue;
    if (option.choices.empty()) return fmt::format("'{}' is missing: {}", name, option.description);
    return fmt::format("'{}' is missing; it is one of {}", name, fmt::join(option.choices, ", "));
  }
  return fmt::format("'{}' is missing", name);
}

// CLI11: "--in: 1 required TEXT missing", "--mean-std: At least 2 required but received 1", "--image: At Most 1
// required but received 2".
std::string missing_value(const std::string& what) {
  const std::size_t colon = what.find(": ");
  constexpr std::string_view kAtLeast = ": At least ";
  if (const std::size_t at = what.find(kAtLeast); at != std::string::npos) {
    return fmt::format("{} needs {} values", what.substr(0, at), std::atoi(what.c_str() + at + kAtLeast.size()));
  }
  if (const std::size_t at = what.find(": At Most 1 required"); at != std::string::npos) {
    return fmt::format("{} can be given only once", what.substr(0, at));
  }
  if (colon == std::string::npos || what.find("missing", colon) == std::string::npos) return what;
  const int count = std::atoi(what.c_str() + colon + 2);
  return count > 1 ? fmt::format("{} needs {} more values", what.substr(0, colon), count)
                   : fmt::format("{} needs a value", what.substr(0, colon));
}

// The whole text is a number.
bool parse_number(const std::string& text, double& value) {
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size();
}

std::string without_prefix(const std::string& what, std::string_view prefix) {
  return what.starts_with(prefix) ? what.substr(prefix.size()) : what;
}

}  // namespace

std::string nearest_word(const std::string& word, const std::vector<std::string>& known) {
  const std::string wanted = normalized(word);
  std::string best;
  // One letter can be anything.
  std::size_t best_distance = wanted.size() < 2 ? 1 : std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::string name = normalized(candidate);
    const bool extends = wanted.size() >= 3 && name.starts_with(wanted);
    const std::size_t distance = extends ? 1 : edit_distance(wanted, name);
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::string meant_command(const std::string& word, const std::vector<std::string>& known) {
  const std::string synonym = synonym_of(word, command_synonyms(), known);
  return synonym.empty() ? nearest_word(word, known) : synonym;
}

Validator one_of(std::vector<std::string> words) {
  const std::string list = fmt::format("{}", fmt::join(words, ", "));
  return {[words, list](std::string& text) -> std::string {
            for (const std::string& word : words) {
              if (normalized(word) != normalized(text) || text.empty()) continue;
              text = word;
              return {};
            }
            const std::string near = nearest_word(text, words);
            return fmt::format("'{}' is not allowed; allowed: {}{}", text, list,
                               near.empty() ? "" : fmt::format(" (did you mean {}?)", near));
          },
          "{" + fmt::format("{}", fmt::join(words, ",")) + "}"};
}

Validator between(double least, double most) {
  const std::string range = fmt::format("{:.15g} to {:.15g}", least, most);
  return {[least, most, range](std::string& text) -> std::string {
            double value = 0;
            const std::string number = text.substr(0, text.find('%'));
            if (!parse_number(number, value) || std::isnan(value)) {
              return fmt::format("'{}' is no number; allowed: {}", text, range);
            }
            if (value >= least && value <= most && number == text) return {};
            constexpr double kPercent = 100;
            const bool is_share = most == 1 && value > 0 && value <= kPercent && (number != text || value > 1);
            return fmt::format("{} is out of range; allowed: {}{}", text, range,
                               is_share ? fmt::format(" ({} % is {:.6g})", number, value / kPercent) : "");
          },
          fmt::format("{:.15g}..{:.15g}", least, most)};
}

Validator not_negative() {
  return {[](std::string& text) -> std::string {
            double value = 0;
            if (!parse_number(text, value)) return fmt::format("'{}' is no number", text);
            return value >= 0 ? "" : fmt::format("{} is out of range; allowed: 0 and more", text);
          },
          ""};
}

Validator positive() {
  return {[](std::string& text) -> std::string {
            double value = 0;
            if (!parse_number(text, value)) return fmt::format("'{}' is no number", text);
            return value > 0 ? "" : fmt::format("{} is out of range; allowed: more than 0", text);
          },
          ""};
}

Validator size_in_bytes() {
  return {[](std::string& text) -> std::string {
            std::size_t digits = 0;
            while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
            const std::string unit = normalized(text.substr(digits));
            constexpr std::string_view kUnits = "kmg";
            const bool is_plain = unit.empty() || unit == "b";
            const std::size_t power = is_plain ? 0 : kUnits.find(unit[0]) + 1;
            const bool is_unit =
                is_plain || (power > 0 && (unit.size() == 1 || unit.substr(1) == "b" || unit.substr(1) == "ib"));
            constexpr std::size_t kMostDigits = 9;  // a billion gigabytes still fit 64 bits
            if (digits == 0 || digits > kMostDigits || !is_unit) {
              return fmt::format("'{}' is no size; sizes look like 65536, 256K or 1M", text);
            }
            text = std::to_string(std::stoull(text.substr(0, digits)) << (10 * power));
            return {};
          },
          ""};
}

std::string help_of(const CommandHelp& program, const std::string& path) {
  return help_text(command_at(program, path), terminal_columns());
}

std::string usage_error(const CommandHelp& program, const ParseOutcome& outcome) {
  const std::string& path = outcome.path;
  const CommandHelp& command = command_at(program, path);
  std::vector<std::string> unknown, surplus;
  for (const std::string& word : outcome.remaining) {
    (word.size() > 1 && word[0] == '-' ? unknown : surplus).push_back(word);
  }
  const std::string &kind = outcome.error, &what = outcome.what;
  std::string sentence;
  const bool runs_programs = path.ends_with(" exec") || path.ends_with(" virtual-usb");
  if (!surplus.empty() && !command.commands.empty()) {
    sentence = missing_command(command, surplus[0]);
  } else if (!unknown.empty() && runs_programs) {
    sentence =
        fmt::format("there is no option {}; if the program takes it, put -- before the program: {} -- PROGRAM ...",
                    quoted_list(unknown), path);
  } else if (!unknown.empty()) {
    sentence = unknown_options(program, command, unknown);
  } else if (kind == "RequiredError" && what.starts_with("A subcommand")) {
    sentence = missing_command(command, "");
  } else if (kind == "RequiredError") {
    sentence = missing_argument(command, what);
  } else if (kind == "ArgumentMismatch") {
    sentence = missing_value(what);
  } else if (kind == "ConversionError") {
    sentence = without_prefix(what, "Could not convert: ") + ": that is no number, or one that does not fit";
  } else if (kind == "ExcludesError") {
    sentence = fmt::format("{}; give one of them", what);
    if (const std::size_t at = what.find(" excludes "); at != std::string::npos) {
      sentence = fmt::format("{} and {} do not go together", what.substr(0, at), what.substr(at + 10));
    }
  } else if (!surplus.empty()) {
    sentence = fmt::format("too many arguments: {}{}", quoted_list(surplus), option_for(command, surplus[0]));
  } else {
    sentence = what;
  }
  return fmt::format("{}: {}\n`{} --help` lists what it takes.", path, sentence, path);
}

}  // namespace reef::app
