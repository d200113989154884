// SPDX-License-Identifier: Apache-2.0
// The modes that leave activations in float: weights in int8 (TFLite's dynamic range quantization) or in float16.
#pragma once

#include "base/status.h"
#include "data/sample_source.h"
#include "ir/model.h"
#include "quantize/options.h"
#include "quantize/quantize.h"

namespace reef::quantize {

// `source` may be null; else the result is measured on its samples.
Result<QuantizeResult> weights_only(const ir::Model& model, const data::SampleSource* source,
                                    const QuantizeOptions& options);

}  // namespace reef::quantize
