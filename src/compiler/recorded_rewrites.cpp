// SPDX-License-Identifier: Apache-2.0
#include "compiler/recorded_rewrites.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

#include <fmt/ranges.h>

#include "emit/compiled_model.h"

namespace reef::compiler {
namespace {

constexpr std::string_view kStart = "rewrites made: ";
constexpr std::string_view kAsked = "; asked for: ";
constexpr std::string_view kRuntime = "; runtime ";

std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(", "), list.size());
    if (end > 0) words.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 2, list.size()));
  }
  return words;
}

std::optional<PlanOptions> parse(std::string_view line) {
  const std::size_t asked = line.find(kAsked), runtime = line.find(kRuntime);
  if (!line.starts_with(kStart) || asked == line.npos || runtime == line.npos || asked > runtime) return std::nullopt;
  const std::vector<std::string> made = words_of(line.substr(kStart.size(), asked - kStart.size()));
  PlanOptions options;
  const std::size_t number = runtime + kRuntime.size();
  const auto [end, error] = std::from_chars(line.data() + number, line.data() + line.size(), options.runtime);
  if (error != std::errc() || options.runtime < ops::kOldestRuntime || options.runtime > ops::kNewestRuntime) {
    return std::nullopt;
  }
  std::set<std::string> known;
  for (const passes::PassInfo& info : passes::passes_of(passes::Stage::kChip)) {
    known.emplace(info.name);
    if (std::find(made.begin(), made.end(), info.name) == made.end()) options.rewrites.disable.emplace_back(info.name);
  }
  for (const std::string& name : words_of(line.substr(asked + kAsked.size(), runtime - asked - kAsked.size()))) {
    if (known.contains(name)) options.rewrites.enable.push_back(name);
  }
  return options;
}

}  // namespace

std::string rewrites_remark(const std::vector<passes::Application>& rewrites, const PlanOptions& options) {
  std::set<std::string> made, asked;
  for (const passes::Application& each : rewrites) {
    if (each.made) made.emplace(each.rewrite);
  }
  if (made.empty()) return {};
  for (const std::string& name : options.rewrites.enable) {
    if (made.contains(name)) asked.insert(name);
  }
  return fmt::format("{}{}{}{}{}{}", kStart, fmt::join(made, ", "), kAsked, fmt::join(asked, ", "), kRuntime,
                     options.runtime);
}

std::optional<PlanOptions> recorded_rewrites(const ir::Model& compiled) {
  for (const ir::Metadata& entry : compiled.metadata) {
    if (entry.name != emit::kRemarksName) continue;
    const Bytes& data = compiled.buffers[at(entry.buffer)].data;
    std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      if (auto options = parse(text.substr(0, end))) return options;
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  return std::nullopt;
}

}  // namespace reef::compiler
