// SPDX-License-Identifier: Apache-2.0
#include "plan_options.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "chip/links.h"
#include "command_help.h"

namespace reef::app {
namespace {

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string link_names() {
  std::vector<std::string_view> names;
  for (const chip::LinkProfile& link : chip::link_profiles()) names.push_back(link.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

void add_plan_flags(Command& command, PlanFlags& flags) {
  const OptionGroup group(command, "What goes to the Edge TPU");
  command.add_option("--link", flags.link,
                     "Host and link that times are predicted for: " + link_names() + "; check: all");
  command
      .add_option("--choose", flags.choose,
                  "Of the parts that could run on the chip, compile the 'first' (as Google's compiler does) or the "
                  "'best', which takes most work off the CPU")
      .option_text("WHICH");
  command
      .add_option("--cache", flags.cache,
                  "Whose parameters stay on the chip where not all have room: 'in-order', models and layers in the "
                  "order in which they are given and executed; 'least-time', those whose sending costs most "
                  "(default; with -O0, of one model the larger first)")
      .option_text("WHICH");
  command.add_flag("--no-rewrites", flags.no_rewrites,
                   "Leave the model as it is: what Google's compiler would do with it (also: --choose first)");
  command.add_flag("--all-rewrites", flags.all_rewrites,
                   "Make rewrites also where the model is predicted to be slower with them");
  command.add_option("--rewrite", flags.rewrite, "Also make this rewrite (docs/passes.md); may be repeated")
      .option_text("NAME")
      .allow_extra_args(false);
  command.add_option("--no-rewrite", flags.no_rewrite, "Do not make this rewrite; may be repeated")
      .option_text("NAME")
      .allow_extra_args(false);
}

std::string unknown_link(const std::string& name) {
  for (const chip::LinkProfile& link : chip::link_profiles()) {
    const bool is_part = name.size() > 1 && link.name.find(name) != std::string_view::npos;  // "rpi5" of "usb3-rpi5"
    if (is_part)
      return fmt::format("there is no link '{}'; did you mean {}? There are {}", name, link.name, link_names());
  }
  return fmt::format("there is no link '{}'; there are {}", name, link_names());
}

Result<compiler::PlanOptions> plan_options(const PlanFlags& flags) {
  compiler::PlanOptions options;
  options.runtime = flags.runtime;
  REEF_REQUIRE(flags.runtime >= ops::kOldestRuntime && flags.runtime <= ops::kNewestRuntime,
               "there is no Edge TPU runtime {}; versions are {} to {}", flags.runtime, ops::kOldestRuntime,
               ops::kNewestRuntime);
  options.costs.link = chip::link_profiles().data();
  options.host_is_assumed = flags.link.empty();
  if (!flags.link.empty()) options.costs.link = chip::find_link(flags.link);
  REEF_REQUIRE(options.costs.link != nullptr, "{}", unknown_link(flags.link));
  REEF_RETURN_IF_ERROR(passes::check_names(passes::Stage::kChip, flags.rewrite, "rewrite"));
  REEF_RETURN_IF_ERROR(passes::check_names(passes::Stage::kChip, flags.no_rewrite, "rewrite"));
  options.rewrites.none = flags.no_rewrites;
  options.all_rewrites = flags.all_rewrites;
  options.rewrites.enable = flags.rewrite;
  options.rewrites.disable = flags.no_rewrite;
  const std::string choose = !flags.choose.empty() ? flags.choose : flags.no_rewrites ? "first" : "best";
  REEF_REQUIRE(choose == "first" || choose == "best", "--choose {}: it is 'first' or 'best'", choose);
  REEF_REQUIRE(flags.cache.empty() || flags.cache == "in-order" || flags.cache == "least-time",
               "--cache {}: it is 'in-order' or 'least-time'", flags.cache);
  using partition::CachePolicy;
  options.costs.cache_policy = flags.cache == "in-order" ? CachePolicy::kInOrder : CachePolicy::kLeastTime;
  using Choice = partition::PartitionOptions::Choice;
  options.partition.choice = choose == "first" ? Choice::kFirst : Choice::kBest;
  options.partition.several_parts = flags.several_parts;
  options.partition.intermediate_tensors = split_commas(flags.intermediate_tensors);
  return options;
}

schedule::CacheOrder cache_order(const PlanFlags& flags) {
  if (flags.cache.empty()) return schedule::CacheOrder::kOfLevel;
  return flags.cache == "in-order" ? schedule::CacheOrder::kFirstUse : schedule::CacheOrder::kMostSaved;
}

}  // namespace reef::app
