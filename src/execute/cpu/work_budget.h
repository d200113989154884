// SPDX-License-Identifier: Apache-2.0
// Work that an interpreter has done, counted against a limit. Unlike a time limit it ends a run at the same op on every
// machine.
#pragma once

#include "base/status.h"
#include "ops/cpu_work.h"

namespace reef::cpu {

class WorkBudget {
 public:
  // In units of ops::cpu_work; 0: no limit, and nothing is counted.
  explicit WorkBudget(double limit) : limit_(limit) {}

  bool is_limited() const { return limit_ > 0; }
  // Before an op runs, where there is a limit.
  Status take(const ops::OpContext& ctx) {
    done_ += ops::cpu_work(ctx);
    if (done_ <= limit_) return ok_status();
    return make_error(StatusCode::kResourceExhausted,
                      "{:.3g} operations would have been computed here, with a limit of {:.3g}", done_, limit_);
  }
  double done() const { return done_; }

 private:
  double limit_;
  double done_ = 0;
};

}  // namespace reef::cpu
