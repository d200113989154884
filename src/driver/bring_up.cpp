// SPDX-License-Identifier: Apache-2.0
#include "driver/bring_up.h"

#include <array>

namespace reef::driver {
namespace {

constexpr std::uint64_t kAllTiles = 0x7f;
constexpr std::uint64_t kTileSleepCycles = 0x1e02;  // to sleep after 2 cycles, awake after 30
constexpr std::uint64_t kGatedByHardware = 1, kAlwaysOn = 2;
constexpr std::uint64_t kSleep = 3, kWake = 2;     // field::kForceSleep
constexpr std::uint64_t kIsOn = 0, kIsAsleep = 2;  // field::kPowerState
constexpr std::uint64_t kEventsOfInterrupts = 0xf0, kEventsOfAll = 0xff;

// field::kClocks by Clock. Over USB also the AXI bus and the bridge's processor are slowed down.
constexpr std::array<std::uint64_t, 4> kClockBits = {0xf, 0x6, 0x5, 0x0};

constexpr std::array kScalarRunControls = {reg::kScalarCoreRun, reg::kAvDataPopRun, reg::kParameterPopRun,
                                           reg::kInfeedRun, reg::kOutfeedRun};
constexpr std::array kTileRunControls = {
    reg::kOpRun,    reg::kNarrowToWideRun, reg::kWideToNarrowRun,  reg::kMesh0Run,         reg::kMesh1Run,
    reg::kMesh2Run, reg::kMesh3Run,        reg::kRingConsumer0Run, reg::kRingConsumer1Run, reg::kRingProducerRun};
constexpr std::array kUsbTopLevelControls = {reg::kUsbTopLevel0Control, reg::kUsbTopLevel1Control,
                                             reg::kUsbTopLevel2Control, reg::kUsbTopLevel3Control};

// From here on the tile registers mean all tiles.
Status choose_all_tiles(RegisterPort& port, Milliseconds settle) {
  REEF_RETURN_IF_ERROR(port.write(reg::kTileConfig, kAllTiles));
  return port.wait_for(whole(reg::kTileConfig), kAllTiles, settle);
}

// A core that was put to sleep before stays as it is: its credits are clear.
Status sleep_core(RegisterPort& port, Milliseconds settle) {
  REEF_ASSIGN_OR_RETURN(const std::uint64_t power, port.read(reg::kScuCtrl3));
  if (field::kForceSleep.get(power) == kSleep) return ok_status();
  REEF_RETURN_IF_ERROR(port.write(reg::kScuCtrl3, field::kForceSleep.set(power, kSleep)));
  REEF_RETURN_IF_ERROR(port.wait_for(field::kPowerState, kIsAsleep, settle));
  REEF_RETURN_IF_ERROR(port.write(reg::kBulkCredit, 0xf));
  return port.write(reg::kBulkCredit, 0);
}

Status enable_interrupts(RegisterPort& port) {
  REEF_RETURN_IF_ERROR(port.write(reg::kUsbFatalControl, 1));
  for (const std::uint32_t control : kUsbTopLevelControls) REEF_RETURN_IF_ERROR(port.write(control, 1));
  REEF_RETURN_IF_ERROR(port.change(field::kWarningEnable, 1));
  REEF_ASSIGN_OR_RETURN(const std::uint64_t test, port.read(reg::kRamTest));
  REEF_RETURN_IF_ERROR(port.write(reg::kRamTest, field::kRamTestMask.set(field::kRamTestStatus.set(test, 0), 0)));
  REEF_RETURN_IF_ERROR(port.change(field::kFailures, 0));
  REEF_RETURN_IF_ERROR(port.write(reg::kSlaveAbortEnable, 1));
  REEF_RETURN_IF_ERROR(port.write(reg::kMasterAbortEnable, 1));
  REEF_RETURN_IF_ERROR(port.write(reg::kSlaveErrorMask, 3));
  REEF_RETURN_IF_ERROR(port.write(reg::kMasterErrorMask, 3));
  return port.change(field::kShutdownEnable, 1);
}

Status disable_interrupts(RegisterPort& port) {
  for (const std::uint32_t control : kUsbTopLevelControls) REEF_RETURN_IF_ERROR(port.write(control, 0));
  REEF_RETURN_IF_ERROR(port.change(field::kWarningEnable, 0));
  REEF_RETURN_IF_ERROR(port.change(field::kRamTestMask, 7));
  REEF_RETURN_IF_ERROR(port.change(field::kFailureMask, 3));
  for (const std::uint32_t control :
       {reg::kSlaveAbortEnable, reg::kMasterAbortEnable, reg::kSlaveErrorMask, reg::kMasterErrorMask}) {
    REEF_RETURN_IF_ERROR(port.write(control, 0));
  }
  REEF_RETURN_IF_ERROR(port.change(field::kShutdownEnable, 0));
  return port.write(reg::kUsbFatalControl, 0);
}

}  // namespace

Status set_run_controls(RegisterPort& port, RunState state, Milliseconds settle) {
  for (const std::uint32_t control : kScalarRunControls) {
    REEF_RETURN_IF_ERROR(port.write(control, static_cast<std::uint64_t>(state)));
  }
  REEF_RETURN_IF_ERROR(choose_all_tiles(port, settle));
  for (const std::uint32_t control : kTileRunControls) {
    REEF_RETURN_IF_ERROR(port.write(control, static_cast<std::uint64_t>(state)));
  }
  return ok_status();
}

Status wake_up_usb(RegisterPort& port, const BringUp& options) {
  // The core gets a clock and is put to sleep if it is not: whatever it did before is over then.
  REEF_RETURN_IF_ERROR(port.change(field::kInactivePhyModes, 0));
  REEF_ASSIGN_OR_RETURN(const std::uint64_t gate, port.read(reg::kScuCtrl2));
  if (field::kCoreClockGate.get(gate) == kGatedByHardware) {
    REEF_RETURN_IF_ERROR(port.write(reg::kScuCtrl2, field::kCoreClockGate.set(gate, kAlwaysOn)));
  }
  REEF_RETURN_IF_ERROR(sleep_core(port, options.settle));
  REEF_ASSIGN_OR_RETURN(const std::uint64_t power, port.read(reg::kScuCtrl3));
  const std::uint64_t clocked = field::kClocks.set(power, kClockBits[at(options.clock)]);
  REEF_RETURN_IF_ERROR(port.write(reg::kScuCtrl3, field::kForceSleep.set(clocked, kWake)));
  REEF_RETURN_IF_ERROR(port.wait_for(field::kPowerState, kIsOn, options.settle));
  REEF_RETURN_IF_ERROR(port.wait_for(whole(reg::kScalarCoreRun), 0, options.settle));

  REEF_RETURN_IF_ERROR(port.write(reg::kIdle, 1));
  REEF_RETURN_IF_ERROR(choose_all_tiles(port, options.settle));
  REEF_RETURN_IF_ERROR(port.write(reg::kDeepSleep, kTileSleepCycles));
  REEF_RETURN_IF_ERROR(port.change(field::kCoreClockGate, kGatedByHardware));
  REEF_RETURN_IF_ERROR(port.read(reg::kFuseRevision).status());  // Google's runtime reads it, and nothing depends on it

  REEF_RETURN_IF_ERROR(port.write(reg::kEventTags, options.report_all_transfers ? kEventsOfAll : kEventsOfInterrupts));
  REEF_RETURN_IF_ERROR(port.write(reg::kMultipleEndpoints, 0));
  REEF_RETURN_IF_ERROR(port.write(reg::kOutfeedChunk, options.output_chunk / 8));
  REEF_RETURN_IF_ERROR(set_run_controls(port, RunState::kRun, options.settle));
  return enable_interrupts(port);
}

Status put_to_sleep_usb(RegisterPort& port, Milliseconds settle) {
  REEF_RETURN_IF_ERROR(disable_interrupts(port));
  REEF_RETURN_IF_ERROR(set_run_controls(port, RunState::kHalt, settle));
  return sleep_core(port, settle);
}

Status fatal_error_usb(RegisterPort& port) {
  REEF_ASSIGN_OR_RETURN(const std::uint64_t errors, port.read(reg::kErrorStatus));
  REEF_ASSIGN_OR_RETURN(const std::uint64_t first, port.read(reg::kFirstErrorStatus));
  REEF_RETURN_IF_ERROR(port.write(reg::kUsbFatalStatus, 0));
  const std::string text = error_text(errors);
  return make_error(StatusCode::kIoError, "the chip reports a fatal error: {} (hib_error_status {:#x}, first {:#x})",
                    text.empty() ? "it does not say which" : text, errors, first);
}

}  // namespace reef::driver
