// SPDX-License-Identifier: Apache-2.0
// Any bytes as a program, and damage to a package that works: following and retargeting must end, with or without a
// result, and without a crash.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "retarget/follow.h"
#include "retarget/retarget.h"
#include "retarget/sample_package.h"

namespace {

using namespace reef;

constexpr std::int64_t kSteps = 20000;

void follow_bytes(const std::vector<std::uint8_t>& bytes) {
  darwinn::Package package;
  darwinn::Executable& executable =
      package.executables.emplace_back(darwinn::new_executable(darwinn::ExecutableType::kStandAlone));
  executable.instruction_chunks.resize(1);
  executable.instruction_chunks[0].bitstream = Bytes(bytes);
  executable.parameters = Bytes(std::vector<std::uint8_t>(1024));
  static_cast<void>(retarget::follow(package, kSteps).ok());
}

void retarget_damaged(const std::uint8_t* edits, std::size_t size) {
  static const auto file = retarget::testing::sample_compiled({});
  static const ir::Model model = retarget::testing::sample_model({});
  static const auto read = tflite::read_model(Bytes(*file));
  static const auto options = darwinn::read_custom_options(read->subgraphs[0].operators[0].custom_options);
  darwinn::CustomOptions damaged = *options;
  for (darwinn::Executable& executable : damaged.package.executables) {
    const auto old = executable.instruction_chunks[0].bitstream.span();
    std::vector<std::uint8_t> bytes(old.begin(), old.end());
    for (; size >= 3; edits += 3, size -= 3) {
      bytes[(edits[0] | std::size_t{edits[1]} << 8) % bytes.size()] ^= edits[2];
      if ((edits[0] & 7) == 7) break;  // the rest is for the other program
    }
    executable.instruction_chunks[0].bitstream = Bytes(std::move(bytes));
  }
  auto custom = darwinn::write_custom_options(damaged);
  if (!custom.ok()) return;
  ir::Model changed = *read;
  changed.subgraphs[0].operators[0].custom_options = Bytes(std::move(custom).value());
  const auto written = tflite::write_model(changed);
  retarget::Options limits;
  limits.max_steps = kSteps;
  if (written.ok()) static_cast<void>(retarget::retarget(Bytes(*written), model, limits).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  if (data[0] % 2 == 0) {
    follow_bytes(std::vector<std::uint8_t>(data + 1, data + 1 + (size - 1) / 16 * 16));
  } else {
    retarget_damaged(data + 1, size - 1);
  }
  return 0;
}
