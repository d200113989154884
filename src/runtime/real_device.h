// SPDX-License-Identifier: Apache-2.0
// A real Edge TPU behind the interface that all devices have.
//
// It is opened for the first user and sent to sleep after the last: acquire() gives a pointer that counts as a user for
// as long as it lives. A device that another process holds, that nobody may use, or that has no firmware is an error of
// acquire(). In a child of fork() it is not open, whoever uses it in the parent.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/status.h"
#include "driver/attachment.h"
#include "runtime/edge_tpu.h"
#include "runtime/per_process.h"

namespace reef::runtime {

class RealDevice final : public EdgeTpu {
 public:
  RealDevice(std::shared_ptr<driver::Attachment> attachment, int index_of_kind);

  Connection connection() const override;
  bool is_virtual() const override { return false; }
  const std::string& selector() const override { return selector_; }
  const std::string& path() const override { return attachment_->path(); }
  Result<Loaded> load(const darwinn::Package& package) const override;
  // Opens the device if it is not open.
  Result<Tensors> run(const Loaded& package, const Inputs& inputs) override;
  Use use() const override;
  std::vector<std::string> take_notes() override;

  driver::Attachment& attachment() const { return *attachment_; }
  // As the attachment finds it; a device that this process has open is in use by it.
  driver::DeviceCondition condition() const;

  // Opens the device, or joins those who use it. An error if it is in use at another clock than the one asked for.
  static Result<std::shared_ptr<EdgeTpu>> acquire(const std::shared_ptr<RealDevice>& device,
                                                  const driver::SessionSettings& settings);

 private:
  struct State {
    std::mutex mutex = {};  // not held while the device works
    std::shared_ptr<driver::Session> session = {};
    driver::SessionSettings settings = {};
    int users = 0;
    std::int64_t runs = 0;
    std::int64_t parameter_loads = 0;  // of sessions before this one
    std::vector<std::string> notes = {};
  };
  Result<std::shared_ptr<driver::Session>> session_of(State& own);
  static void drop_session(State& own);
  void release();

  const std::shared_ptr<driver::Attachment> attachment_;
  const std::string selector_;
  PerProcess<State> state_;
};

}  // namespace reef::runtime
