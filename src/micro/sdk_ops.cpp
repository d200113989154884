// SPDX-License-Identifier: Apache-2.0
#include "micro/sdk_ops.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "ir/describe.h"
#include "ir/op.h"
#include "ops/flex_options.h"

namespace reef::micro {
namespace {

using ir::DataType;
using ir::Tensor;

constexpr SdkOp kSdkOps[] = {
    {name_of(Op::PosenetDecoderOp), "AddCustom(coralmicro::kPosenetDecoderOp, coralmicro::RegisterPosenetDecoderOp())",
     "libs/tensorflow/posenet_decoder_op.h"},
    {"edgetpu-custom-op", "AddCustom(coralmicro::kCustomOp, coralmicro::RegisterCustomOp())", "libs/tpu/edgetpu_op.h"},
};

// ---- PosenetDecoderOp ----

constexpr std::int32_t kKeypoints = 17, kEdges = 16;
constexpr std::int32_t kChannels[] = {kKeypoints, 2 * kKeypoints, 4 * kEdges, 2 * kKeypoints};

// Its Prepare takes float32, too, but its Eval converts uint8 alone and leaves the decoder what was in memory.
void check_fields(const OpView& view, std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < view.op().inputs.size(); ++i) {
    const Tensor* field = view.input(i);
    if (field == nullptr || i >= std::size(kChannels)) continue;
    if (field->type != DataType::kUInt8) {
      findings.push_back(
          {"posenet-types",
           fmt::format("Coral's decoder on the board reads uint8, and input {} is {}.", i, ir::type_name(field->type)),
           "Take the model whose decoder reads the quantized tensors."});
    }
    if (field->shape.rank() != 4 || field->shape[0] != 1 || field->shape[3] != kChannels[i]) {
      findings.push_back({"posenet-shapes",
                          fmt::format("Coral's decoder needs [1, rows, columns, {}] as input {}, which is {}.",
                                      kChannels[i], i, field->shape.to_string()),
                          std::string()});
    }
  }
}

std::int64_t most_people(const OpView& view) {
  const auto options = ops::FlexOptions::parse(view.op().custom_options);
  if (!options.ok()) return 0;
  const auto value = options->get_int("max_detections");
  return value.ok() ? std::max<std::int64_t>(*value, 0) : 0;
}

// It writes as many values as there are people, whatever the file declares.
void check_room(const OpView& view, std::vector<Finding>& findings) {
  const std::int64_t people = most_people(view);
  const Tensor* longest = view.input(3);
  const std::int64_t cells = longest == nullptr || longest->shape.rank() != 4
                                 ? 0
                                 : static_cast<std::int64_t>(longest->shape[1]) * longest->shape[2];
  const std::int64_t written[] = {people * kKeypoints * 2, people * kKeypoints, people, 1, people * cells};
  for (std::size_t i = 0; i < std::min(view.op().outputs.size(), std::size(written)); ++i) {
    const Tensor* result = view.output(i);
    if (result == nullptr || elements_of(*result) >= written[i]) continue;
    findings.push_back({"declared-shapes",
                        fmt::format("TFLite Micro allocates what a file declares: '{}' has room for {} numbers "
                                    "(shape {}), and Coral's decoder writes up to {} for {} people.",
                                    ir::describe_name(result->name), elements_of(*result), result->shape.to_string(),
                                    written[i], people),
                        "Write the model with its true shapes: `reef check --target micro --write-rewritten FILE`."});
  }
}

}  // namespace

const SdkOp* find_sdk_op(const ir::Operator& op) {
  if (!op.is_custom()) return nullptr;
  const auto* at =
      std::find_if(std::begin(kSdkOps), std::end(kSdkOps), [&](const SdkOp& c) { return c.name == op.type; });
  return at == std::end(kSdkOps) ? nullptr : at;
}

std::vector<Finding> check_sdk_op(const OpView& view) {
  std::vector<Finding> findings;
  if (view.op().type != Op::PosenetDecoderOp) return findings;
  const std::size_t inputs = view.op().inputs.size(), outputs = view.op().outputs.size();
  if (!(inputs == 3 && outputs == 4) && !(inputs == 4 && outputs == 5)) {
    findings.push_back({"posenet-shapes",
                        fmt::format("Coral's decoder has 3 inputs and 4 results, or 4 and 5; this one has {} and {}.",
                                    inputs, outputs),
                        std::string()});
    return findings;
  }
  check_fields(view, findings);
  check_room(view, findings);
  return findings;
}

}  // namespace reef::micro
