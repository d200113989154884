// SPDX-License-Identifier: Apache-2.0
#include "target_option.h"

#include <algorithm>

#include "usage.h"

namespace reef::app {

void use_link_of(const TargetFlag& target, PlanFlags& plan) {
  if (target.micro() == micro::Target::kMicro && plan.link.empty()) plan.link = "usb2";
}

Result<micro::AssessOptions> board_of(const TargetFlag& target) {
  micro::AssessOptions board;
  board.target = target.micro().value_or(micro::Target::kTflm);
  REEF_REQUIRE(target.name == "tflm" || (!target.ram && !target.flash),
               "--ram and --flash describe a board with TFLite Micro alone: add --target tflm{}",
               target.name == "micro" ? " (the sizes of Coral's Dev Board Micro are known)" : "");
  if (target.ram) board.ram_bytes = static_cast<std::int64_t>(*target.ram);
  if (target.flash) board.flash_bytes = static_cast<std::int64_t>(*target.flash);
  return board;
}

void add_board_options(Command& command, TargetFlag& flag) {
  const auto add = [&](const char* name, std::optional<std::uint64_t>& bytes, const char* text) {
    command.add_option(name, bytes, text).transform(size_in_bytes()).option_text("SIZE");
  };
  add("--ram", flag.ram, "With --target tflm: what the board has for the tensor arena, such as 256K or 1M");
  add("--flash", flag.flash, "With --target tflm: what the board has for the model");
}

void add_target_option(Command& command, TargetFlag& flag, const std::vector<std::string>& names) {
  std::string text =
      "What the model is for: edgetpu (a computer with an Edge TPU), micro (Coral's Dev Board Micro: Edge TPU "
      "and TFLite Micro)";
  const bool has_boards = std::find(names.begin(), names.end(), "tflm") != names.end();
  if (has_boards) text += ", tflm (a board with TFLite Micro alone)";
  const Validator known = one_of(names);
  command.add_option("--target", flag.name, text + "; docs/micro.md")
      .transform(
          {[known, has_boards](std::string& word) {
             if (word == "tflm" && !has_boards) {
               return std::string(
                   "A board with TFLite Micro alone has no Edge TPU to compile for: `reef check --target tflm` judges "
                   "the model, and `reef export micro --target tflm` makes a program of it");
             }
             return known(word);
           },
           known.description})
      .option_text("TARGET [edgetpu]");
}

}  // namespace reef::app
