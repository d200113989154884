// SPDX-License-Identifier: Apache-2.0
// Kernels of TFLite Micro that run a model and give other last bits than the current TFLite, LiteRT and `reef run`.
//
// The model is right and so are its results, to a step or so: no reason to refuse it, but one to say so. Each line was
// found by comparing the package `tflite-micro` with LiteRT (tools/oracle/check_micro.py).
#pragma once

#include <optional>
#include <string_view>

#include "micro/op_view.h"
#include "micro/operators.h"

namespace reef::micro {

struct Rounding {
  std::string_view as;   // the release of TFLite whose bits it gives ("2.9", for `reef run --tflite`), or "own"
  std::string_view why;  // a sentence
};

// Nothing: the bits of the current release. With kCoral among the releases it is about the one in Coral's SDK.
std::optional<Rounding> rounding_of(const OpView& view, Releases releases);

}  // namespace reef::micro
