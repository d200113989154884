// SPDX-License-Identifier: Apache-2.0
// An Edge TPU on PCIe. Only instructions are queued: the chip fetches everything else itself, by the addresses in them,
// so the package's list of transfers is not needed.
//
// As on USB, a failure is not the end: the device is closed, opened again, and the inference repeated once. Any number
// of threads: one inference after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "driver/bring_up.h"
#include "driver/pcie.h"
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

class PcieSession final : public Session {
 public:
  // The bus must outlive it.
  static Result<std::unique_ptr<PcieSession>> open(PcieBus& bus, const PcieSessionOptions& options);
  ~PcieSession() override;
  PcieSession(const PcieSession&) = delete;
  PcieSession& operator=(const PcieSession&) = delete;

  // `model` is a PcieModel.
  Result<Tensors> run(const std::shared_ptr<const LoadedModel>& model, const Inputs& inputs) override;
  Status close() override;

  std::vector<std::string> take_notes() override;
  std::vector<std::string> notes() const;  // the same, and they stay
  std::int64_t parameter_loads() const override;
  int opened() const override;

 private:
  class Pages;  // memory of whole pages, mapped for the time of a program

  PcieSession(PcieBus& bus, const PcieSessionOptions& options) : bus_(bus), options_(options) {}
  Status connect();
  Status start_queue();
  Status stop();
  // Of a chip that does not do what it should.
  void stop_transfers();
  void abandon(const Status& reason);
  Status run_once(const std::shared_ptr<const PcieModel>& model, const Tensors& inputs, Tensors& outputs);
  Status run_program(const darwinn::Executable& executable, const Tensors& inputs, Tensors& outputs);
  Result<std::uint64_t> map(Pages& pages, DmaDirection direction);
  Status enqueue(std::uint64_t address, std::size_t bytes);
  Status await_completion();
  Status check_fatal_error();

  PcieBus& bus_;
  const PcieSessionOptions options_;
  mutable std::mutex mutex_;
  std::unique_ptr<PcieDevice> device_;    // null: closed, or given up
  std::span<std::uint8_t> queue_memory_;  // the queue's page, then the status block's
  std::uint64_t next_address_ = kExtendedAddress;
  std::uint32_t tail_ = 0;
  std::uint16_t completed_ = 0;  // interrupts of the scalar core that were counted
  host::ParameterCache cache_;
  std::vector<std::string> notes_;
  int opened_ = 0;
};

}  // namespace reef::driver
