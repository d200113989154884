// SPDX-License-Identifier: Apache-2.0
// The common interface of sessions with real Edge TPUs, whatever they are attached by.
//
// Every wait of a session has a limit, and every failure is a Status. After a failure of the link the session opens the
// device again and repeats the inference once. Any number of threads may use a session; the device works for them one
// after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace reef::driver {

// A package made ready for one kind of link. The load functions of the links make them.
class LoadedModel {
 public:
  virtual ~LoadedModel() = default;

 protected:
  LoadedModel() = default;
};

// Follows the notes on a failure where the second try went well.
inline constexpr std::string_view kRepeatedNote = "the device was opened again and the inference repeated: all is well";

class Session {
 public:
  using Tensors = std::vector<std::vector<std::uint8_t>>;
  using Inputs = std::vector<std::span<const std::uint8_t>>;

  virtual ~Session() = default;

  // Tensors as TFLite holds them, in the order of the layers. Loads parameters first where needed. `model` was loaded
  // for this kind of link.
  virtual Result<Tensors> run(const std::shared_ptr<const LoadedModel>& model, const Inputs& inputs) = 0;

  // Sends the device to sleep. A later run() opens it again.
  virtual Status close() = 0;

  // Returns what went wrong since the last call and what was done about it, oldest first.
  virtual std::vector<std::string> take_notes() = 0;
  // How often a parameter-caching program has run to its end.
  virtual std::int64_t parameter_loads() const = 0;
  // How often the device was opened.
  virtual int opened() const = 0;
};

// What sessions of all kinds remember of themselves.
class RecordedSession : public Session {
 public:
  std::vector<std::string> take_notes() override {
    const std::lock_guard lock(mutex_);
    return std::exchange(notes_, {});
  }
  // The same, and they stay.
  std::vector<std::string> notes() const {
    const std::lock_guard lock(mutex_);
    return notes_;
  }
  int opened() const override {
    const std::lock_guard lock(mutex_);
    return opened_;
  }

 protected:
  mutable std::mutex mutex_;  // never held while anything waits for the device
  std::vector<std::string> notes_;
  int opened_ = 0;
};

}  // namespace reef::driver
