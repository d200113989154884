// SPDX-License-Identifier: Apache-2.0
#include "front_end_flags.h"
#include "command_help.h"

#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>

namespace reef::app {
namespace {

// "name:1,2,3", or "1,2,3" for a nameless one; names may hold colons themselves.
template <typename Number>
Result<std::pair<std::string, std::vector<Number>>> named_numbers(const std::string& text, std::string_view option) {
  const std::size_t colon = text.rfind(':');
  std::pair<std::string, std::vector<Number>> result;
  if (colon != std::string::npos) result.first = text.substr(0, colon);
  const char* at = text.data() + (colon == std::string::npos ? 0 : colon + 1);
  const char* const end = text.data() + text.size();
  while (at < end) {
    Number number{};
    const auto [next, error] = std::from_chars(at, end, number);
    REEF_REQUIRE(error == std::errc() && (next == end || *next == ','),
                 "{} {}: '{}' is no number; numbers stand behind each other with commas, as in 1,3,224,224", option,
                 text, std::string(at, end));
    result.second.push_back(number);
    at = next + 1;
  }
  REEF_REQUIRE(!result.second.empty(), "{} {}: give it as name:1,2,3", option, text);
  return result;
}

}  // namespace

void add_front_end_flags(Command& command, FrontEndFlags& flags) {
  const OptionGroup group(command, "Reading the model");
  command
      .add_option("--input-shape", flags.shapes,
                  "Sizes of an input, which a file may leave open: name:1,3,224,224, or 1,3,224,224 for the only "
                  "input; may be repeated")
      .option_text("NAME:SIZES")
      .allow_extra_args(false);
  command.add_option("--input-value", flags.values, "ONNX: fix an input to a value: name:1,2,3; may be repeated")
      .option_text("NAME:VALUES")
      .allow_extra_args(false);
  command
      .add_option("--keep-nchw", flags.keep_nchw,
                  "ONNX: an input or output (by name) that stays channels-first; others become channels-last")
      .option_text("NAME")
      .allow_extra_args(false);
  command.add_flag(
      "--pad-nms", flags.pad_nms,
      "ONNX: NonMaxSuppression gives all rows it could, unused ones -1, and a count; not a varying number");
  command.add_flag("--unroll", flags.unroll,
                   "ONNX: LSTMs step by step, in plain operators, also where one operator would do (docs/onnx.md)");
  command.add_flag("--no-simplify", flags.no_simplify, "ONNX: leave the graph as imported (docs/simplify.md)");
}

Result<compiler::FrontEndOptions> front_end_options(const FrontEndFlags& flags) {
  compiler::FrontEndOptions result;
  for (const std::string& text : flags.shapes) {
    REEF_ASSIGN_OR_RETURN(auto named, named_numbers<std::int64_t>(text, "--input-shape"));
    result.input_shapes.insert(std::move(named));
  }
  for (const std::string& text : flags.values) {
    REEF_ASSIGN_OR_RETURN(auto named, named_numbers<double>(text, "--input-value"));
    REEF_REQUIRE(!named.first.empty(), "--input-value {}: give it as name:1,2,3", text);
    result.input_values.insert(std::move(named));
  }
  result.keep_nchw = flags.keep_nchw;
  result.pad_selections = flags.pad_nms;
  result.unroll = flags.unroll;
  result.simplify = !flags.no_simplify;
  return result;
}

}  // namespace reef::app
