// SPDX-License-Identifier: Apache-2.0
// Custom operators that are another spelling of TFLite's own become those, so that every stage (runs, quantization, the
// chip) treats them alike.
//
//   Convolution2DTransposeBias   of MediaPipe's segmentation networks, from before TRANSPOSE_CONV had a bias
//
// Operators keep their places and results; sums of floats may be rounded in another order.
#pragma once

#include "ir/model.h"

namespace reef::ops {

// `model` must be verified with shapes that are settled (settled_shapes.h), and is verified afterwards. True: something
// was changed, and shapes have to be settled anew. Operators that are not as they should be stay as they are.
bool use_standard_forms(ir::Model& model);

}  // namespace reef::ops
