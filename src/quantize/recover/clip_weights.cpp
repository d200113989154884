// SPDX-License-Identifier: Apache-2.0
// Weights' scales by smallest square error instead of the largest weight: a few large weights of a channel saturate so
// that all others are finer.
#include "quantize/session.h"

namespace reef::quantize {

Status clip_weights(Session& session) {
  State state = session.best();
  state.plan.clip_weights = true;
  return session.consider(std::move(state), "weight scales by smallest square error");
}

}  // namespace reef::quantize
