// SPDX-License-Identifier: Apache-2.0
#include "partition/model_rules.h"

#include <cstddef>
#include <span>

#include "partition/check.h"

namespace reef::partition {
namespace {

using ops::ChipRule;
using ops::GoogleStatus;
using ops::RuleSource;

// Indexed by ModelRule. What breaks one depends on more than the op alone, so the checker decides, and `broken` is
// null.
constexpr ChipRule kRules[] = {
    {
        .id = "type",
        .says = "All tensors are quantized to 8 bits (int8 or uint8), with biases of 32 and LSTM states of 16 bits.",
        .suggestion = "Convert the model with full integer quantization and a representative dataset "
                      "(TFLITE_BUILTINS_INT8).",
        .broken = nullptr,
        .status = GoogleStatus::kUnsupportedType,
        .source = RuleSource::kCoralDocs,
        .evidence = "Model requirements. DEQUANTIZE and all ops on float, int32 and int64 tensors are reported with "
                    "this status (users' logs).",
    },
    {
        .id = "known-op",
        .says = "The op is known.",
        .suggestion = "Leave it to a runtime that knows it, on the CPU, or convert the model with an older TensorFlow.",
        .broken = nullptr,
        .status = GoogleStatus::kNotSupported,
        .source = RuleSource::kReported,
        .evidence = "Google's compiler refuses a model with an op code it does not know as a whole: edgetpu#818.",
    },
    {
        .id = "operands",
        .says = "The op has as many inputs and outputs as its kind takes.",
        .suggestion = "Convert the model anew: this file is damaged or was edited.",
        .broken = nullptr,
        .source = RuleSource::kAssumed,
        .evidence = "TFLite does not run such a model either.",
    },
    {
        .id = "custom-op",
        .says = "The op is one of TFLite's own.",
        .suggestion = "Keep custom ops at the end of the model, where they strand nothing.",
        .broken = nullptr,
        .status = GoogleStatus::kNotSupported,
        .source = RuleSource::kMeasured,
        .evidence = "No custom op is seen mapped, TFLite_Detection_PostProcess and PosenetDecoderOp among them.",
    },
    {
        .id = "control-flow",
        .says = "The model is one graph: no branches, no loops, no calls.",
        .suggestion = "Unroll loops, and make one model per branch.",
        .broken = nullptr,
        .status = GoogleStatus::kNotSupported,
        .source = RuleSource::kCoralDocs,
        .evidence = "The chip runs deep feed-forward networks; Table 1 has no such op.",
    },
    {
        .id = "supported-op",
        .says = "The op is one that the Edge TPU runs.",
        .suggestion = "Use one of the ops that it runs.",
        .broken = nullptr,
        .status = GoogleStatus::kNotSupported,
        .source = RuleSource::kCoralDocs,
        .evidence = "Table 1",
    },
    {
        .id = "runtime",
        .says = "The runtime that is compiled for has the op.",
        .suggestion = "Compile for a newer runtime (-m), and update the Edge TPU runtime where the model runs.",
        .broken = nullptr,
        .status = GoogleStatus::kNotSupported,
        .source = RuleSource::kCoralDocs,
        .evidence = "Table 1; the status is that of TRANSPOSE with compilers up to 15.0 (edgetpu#242, #342).",
    },
    {
        .id = "op-version",
        .says = "The op's version is not newer than Google's compiler.",
        .suggestion = "Convert the model with TensorFlow 2.5 or older, or without the feature that needs the version.",
        .broken = nullptr,
        .status = GoogleStatus::kVersionNotSupported,
        .source = RuleSource::kReported,
        .evidence = "edgetpu#45, #114, #147, #845",
    },
    {
        .id = "static-shape",
        .says = "The sizes of all tensors are known before the model runs.",
        .suggestion = "Convert the model with fixed input sizes and a batch of 1.",
        .broken = nullptr,
        .source = RuleSource::kCoralDocs,
        .evidence = "Model requirements. Google's compiler refuses such a model as a whole: edgetpu#829, #831, #654.",
        .rewrite = "fixed-shapes",
    },
    {
        .id = "constant-parameters",
        .says = "Weights, biases, axes and sizes are constants.",
        .suggestion = "Fold what they are computed from into the model, or export it with weights frozen.",
        .broken = nullptr,
        .status = GoogleStatus::kNotConstant,
        .source = RuleSource::kCoralDocs,
        .evidence = "Model requirements; edgetpu#25, and #684 for weights behind a TRANSPOSE.",
        .rewrite = "fold-constants",
    },
    {
        .id = "rank",
        .says = "Only the three innermost dimensions of a tensor are above 1.",
        .suggestion = "Merge dimensions with RESHAPE so that at most three are left.",
        .broken = nullptr,
        .status = GoogleStatus::kUnsupportedRank,
        .source = RuleSource::kCoralDocs,
        .evidence = "Model requirements; RESHAPE and TRANSPOSE to five dimensions do not map (SRGAN, edgetpu#274).",
        .rewrite = "pixel-shuffle",
    },
    {
        .id = "batch",
        .says = "The batch is 1.",
        .suggestion = "Convert the model with a batch of 1 and run it once per image.",
        .broken = nullptr,
        .status = GoogleStatus::kUnsupportedRank,
        .source = RuleSource::kReported,
        .evidence = "edgetpu#30, #700; in 166 compiled models no op with a larger batch is mapped.",
        .rewrite = "unroll-batch",
    },
    {
        .id = "quantization",
        .says = "Every 8-bit tensor has one scale, or weights one per channel, and zero points in their type's range.",
        .suggestion = "Convert the model anew with full integer quantization.",
        .broken = nullptr,
        .source = RuleSource::kCoralDocs,
        .evidence = "Model requirements",
    },
};
static_assert(std::size(kRules) == static_cast<std::size_t>(ModelRule::kQuantization) + 1);

}  // namespace

const ChipRule& model_rule(ModelRule rule) { return kRules[at(rule)]; }

std::span<const ChipRule> model_rules() { return kRules; }

}  // namespace reef::partition
