// SPDX-License-Identifier: Apache-2.0
#include "ops/chip_support.h"

namespace reef::ops {

std::string_view to_string(RuleSource source) {
  switch (source) {
    case RuleSource::kCoralDocs:
      return "Coral's documentation";
    case RuleSource::kMeasured:
      return "measured on compiled models";
    case RuleSource::kReported:
      return "reported by users";
    case RuleSource::kAssumed:
      return "assumed";
  }
  return "";
}

std::string_view to_string(GoogleStatus status) {
  switch (status) {
    case GoogleStatus::kMapped:
      return "Mapped to Edge TPU";
    case GoogleStatus::kUnspecifiedLimitation:
      return "Operation is otherwise supported, but not mapped due to some unspecified limitation";
    case GoogleStatus::kUnsupportedType:
      return "Operation is working on an unsupported data type";
    case GoogleStatus::kSeveralSubgraphs:
      return "More than one subgraph is not supported";
    case GoogleStatus::kUnsupportedRank:
      return "Tensor has unsupported rank (up to 3 innermost dimensions mapped)";
    case GoogleStatus::kVersionNotSupported:
      return "Operation version not supported";
    case GoogleStatus::kNotSupported:
      return "Operation not supported";
    case GoogleStatus::kNotConstant:
      return "Filter, bias, or other param is not constant at compile-time";
    case GoogleStatus::kImprecise:
      return "Image-interpolation layer won't run precisely enough on Edge TPU";
  }
  return "";
}

}  // namespace reef::ops
