// SPDX-License-Identifier: Apache-2.0
// Any bytes as a program: it ends, one way or another.
#include <cstddef>
#include <cstdint>

#include "execute/device/device.h"

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
  return 0;
}
