// SPDX-License-Identifier: Apache-2.0
// A virtual Edge TPU as its driver sees it: load a package, give it tensors, take tensors.
//
// Parameters are cached as libedgetpu does it (host/parameter_cache.h). After a run that did not reach its end the chip
// is reset, when the next one begins: until then it can be looked at.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "execute/device/chip.h"
#include "formats/darwinn/package.h"
#include "host/parameter_cache.h"

namespace reef::device {

// A package made ready: programs decoded, addresses of host buffers filled in. Several devices may use one.
class LoadedPackage {
 public:
  // `doubted`: as Options::doubted of the device that will run it.
  static Result<std::shared_ptr<const LoadedPackage>> load(darwinn::Package package, Belief doubted = Belief::kNone);

  const darwinn::Executable& execution() const { return *execution_; }
  const darwinn::Executable* caching() const { return caching_; }
  const std::vector<darwinn::Layer>& inputs() const { return execution_->input_layers; }
  const std::vector<darwinn::Layer>& outputs() const { return execution_->output_layers; }

 private:
  friend class Device;
  LoadedPackage() = default;
  darwinn::Package package_;
  const darwinn::Executable* execution_ = nullptr;
  const darwinn::Executable* caching_ = nullptr;
  Program execution_program_, caching_program_;
};

// As host::tensor_bytes.
std::int64_t tensor_bytes(const darwinn::Layer& layer);

class Device {
 public:
  explicit Device(const Options& options = {}) : options_(options), chip_(options) {}

  // Tensors as TFLite holds them, in the order of the layers. Runs the parameter-caching program first where needed.
  Result<std::vector<std::vector<std::uint8_t>>> run(const std::shared_ptr<const LoadedPackage>& package,
                                                     const std::vector<std::span<const std::uint8_t>>& inputs);

  const Chip& chip() const { return chip_; }
  // How often a parameter-caching program has run to its end.
  std::int64_t parameter_loads() const { return cache_.loads(); }
  void set_queue_depths(const QueueDepths& depths) { chip_.set_queue_depths(depths); }
  void set_schedule(const Schedule& schedule) { chip_.set_schedule(schedule); }
  // Is told everything that following runs do; null: nobody is. A run that it ends early is an error here;
  // Chip::was_stopped() tells it from others.
  void set_observer(Observer* observer) {
    observer_ = observer;
    chip_.set_observer(observer);
  }

 private:
  Status make_parameters_present(const std::shared_ptr<const LoadedPackage>& package);
  Status execute(const Program& program, HostMemory& memory);
  void reset_if_due();

  Options options_;
  Chip chip_;
  Observer* observer_ = nullptr;
  host::ParameterCache cache_;
  bool is_reset_due_ = false;
};

}  // namespace reef::device
