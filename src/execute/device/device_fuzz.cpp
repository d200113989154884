// SPDX-License-Identifier: Apache-2.0
// Any bytes as a program: it ends, one way or another.
#include <cstddef>
#include <cstdint>

#include "execute/device/chrome_trace.h"
#include "execute/device/device.h"
#include "execute/device/timeline.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reef;
  darwinn::Executable executable = darwinn::new_executable(darwinn::ExecutableType::kStandAlone);
  executable.instruction_chunks.emplace_back().bitstream = Bytes::copy_of({data, size - size % 16});
  executable.scratch_size_bytes = 256;
  darwinn::Package package;
  package.executables.push_back(std::move(executable));
  const auto loaded = device::LoadedPackage::load(std::move(package));
  if (!loaded.ok()) return 0;
  device::Options options;
  options.max_cycles = 1 << 18;
  device::Device device(options);
  (void)device.run(*loaded, {});
  constexpr std::int64_t kWorthFollowing = 64;  // cycles; following takes much longer
  if (device.chip().steps() < kWorthFollowing) return 0;
  // Once more, followed; and in another order.
  device::Timeline timeline({.timing = {}, .find_races = true, .keep_slices = true});
  device.set_observer(&timeline);
  device.set_queue_depths(device::kShallowQueues);
  (void)device.run(*loaded, {});
  const auto records = timeline.take_records();
  for (const device::ProgramRecord& record : records) {
    for (const device::Race& race : record.races) (void)record.describe(race);
  }
  (void)device::chrome_trace(records);
  device.set_observer(nullptr);
  device.set_schedule({1, 1});
  (void)device.run(*loaded, {});
  return 0;
}
