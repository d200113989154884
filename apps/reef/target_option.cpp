// SPDX-License-Identifier: Apache-2.0
#include "target_option.h"

#include "usage.h"

namespace reef::app {

void use_link_of(const TargetFlag& target, PlanFlags& plan) {
  if (target.micro() == micro::Target::kMicro && plan.link.empty()) plan.link = "usb2";
}

void add_target_option(Command& command, TargetFlag& flag, const std::vector<std::string>& names) {
  std::string text =
      "What the model is for: edgetpu (a computer with an Edge TPU), micro (Coral's Dev Board Micro: Edge TPU "
      "and TFLite Micro)";
  if (names.size() > 2) text += ", tflm (a board with TFLite Micro alone)";
  command.add_option("--target", flag.name, text + "; docs/micro.md")
      .transform(one_of(names))
      .option_text("TARGET [edgetpu]");
}

}  // namespace reef::app
