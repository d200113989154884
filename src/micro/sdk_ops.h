// SPDX-License-Identifier: Apache-2.0
// Custom operators that neither release of TFLite Micro has and that Coral's SDK for the Dev Board Micro brings: its
// driver of the Edge TPU and the decoder at the end of Coral's PoseNet and BodyPix models
// (libs/tpu/edgetpu_op.h and libs/tensorflow/posenet_decoder_op.h of google-coral/coralmicro).
#pragma once

#include <string_view>
#include <vector>

#include "ir/model.h"
#include "micro/op_view.h"
#include "micro/rules.h"

namespace reef::micro {

struct SdkOp {
  std::string_view name;      // as in ir::Operator::type
  std::string_view resolver;  // the call that registers it
  std::string_view header;    // that declares what is called
};

// Null: not an operator of the SDK's own.
const SdkOp* find_sdk_op(const ir::Operator& op);

// Findings about an operator that the SDK's kernel does not take. The Edge TPU's own is in edge_tpu_rules.h.
std::vector<Finding> check_sdk_op(const OpView& view);

}  // namespace reef::micro
