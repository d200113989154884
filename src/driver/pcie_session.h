// SPDX-License-Identifier: Apache-2.0
// An Edge TPU on PCIe. Only instructions are queued: the chip fetches everything else itself, by the addresses in them,
// so the package's list of transfers is not needed.
//
// As on USB, a failure is not the end: the device is closed, opened again, and the inference repeated once. Any number
// of threads. Their requests overlap: each is put into the chip's queue at once, so that the chip finds the next when
// it has ended one, and outputs are taken out and inputs put in while it works. One of the threads that wait listens
// to the device, without keeping others from launching theirs, and tells whoever's request is over.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "driver/bring_up.h"
#include "driver/pcie.h"
#include "driver/pcie_link.h"
#include "driver/session.h"
#include "formats/darwinn/package.h"
#include "host/parameter_cache.h"
#include "host/programs.h"

namespace reef::driver {

struct PcieSessionOptions {
  Clock clock = Clock::kMax;
  Milliseconds settle{1000};     // for a register to follow
  Milliseconds progress{10000};  // for a program to end
};

// A package for PCIe: addresses are written when it runs.
class PcieModel final : public LoadedModel {
 public:
  static Result<std::shared_ptr<const PcieModel>> load(darwinn::Package package);
  const host::Programs& programs() const { return programs_; }

 private:
  PcieModel() = default;
  darwinn::Package package_;
  host::Programs programs_;
};

class PcieSession final : public RecordedSession {
 public:
  // The bus must outlive it.
  static Result<std::unique_ptr<PcieSession>> open(PcieBus& bus, const PcieSessionOptions& options);
  ~PcieSession() override;
  PcieSession(const PcieSession&) = delete;
  PcieSession& operator=(const PcieSession&) = delete;

  // `model` is a PcieModel.
  Result<Tensors> run(const std::shared_ptr<const LoadedModel>& model, const Inputs& inputs) override;
  Status close() override;

  std::int64_t parameter_loads() const override;

 private:
  using Lock = std::unique_lock<std::mutex>;
  // An inference whose programs were launched.
  struct Request {
    int programs = 0;  // that are not over
    Tensors outputs;   // of the last one that is
    Status failure;    // the link was given up before
    bool is_over() const { return programs == 0 || !failure.ok(); }
  };
  using RequestPtr = std::shared_ptr<Request>;

  PcieSession(PcieBus& bus, const PcieSessionOptions& options) : bus_(bus), options_(options) {}

  // All with mutex_, which those that take a Lock give up while they wait.
  Status connect();
  void note(std::string text);
  // Launches what is missing of a request.
  Status issue(const std::shared_ptr<const PcieModel>& model, const Tensors& inputs, const RequestPtr& request);
  Status launch(const darwinn::Executable& executable, const Tensors& inputs, const RequestPtr& request);
  // Listens to the device until something is over, or a while.
  void listen(Lock& lock);
  Status take_in(std::uint32_t interrupts);
  void wait_until(Lock& lock, const std::function<bool()>& is_reached);
  // Gives up a link that has failed, and with it every request under way.
  void abandon(Lock& lock, const Status& reason);
  Status run_once(const std::shared_ptr<const PcieModel>& model, const Tensors& inputs, Tensors& outputs);

  PcieBus& bus_;
  const PcieSessionOptions options_;
  std::condition_variable changed_;
  std::unique_ptr<PcieLink> link_;    // null: closed, or given up
  bool is_listening_ = false;         // a thread is in PcieLink::wait(); the link must stay
  Status broken_;                     // why the link has to go; it does as soon as nobody listens
  Milliseconds without_progress_{0};  // since a program was over, or the first was launched
  std::deque<RequestPtr> under_way_;  // one for each program of the link's, in its order
  host::ParameterCache cache_;
};

}  // namespace reef::driver
