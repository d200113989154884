// SPDX-License-Identifier: Apache-2.0
#include "retarget/follow.h"

#include "execute/device/device.h"
#include "retarget/trace_recorder.h"

namespace reef::retarget {

Result<DecodedExecutable> decode_executable(const darwinn::Executable& executable) {
  DecodedExecutable decoded;
  decoded.executable = &executable;
  for (std::size_t c = 0; c < executable.instruction_chunks.size(); ++c) {
    auto program = isa::decode(executable.instruction_chunks[c].bitstream.span());
    if (!program.ok()) return program.status().in(fmt::format("instruction chunk {}", c));
    decoded.chunk_starts.push_back(decoded.program.size());
    decoded.program.insert(decoded.program.end(), program->begin(), program->end());
  }
  REEF_REQUIRE(decoded.program.size() <= kMaxInstructions, "the program has {} instructions", decoded.program.size());
  return decoded;
}

Result<Trace> follow(const darwinn::Package& package, std::int64_t max_steps, const Budget& budget) {
  REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(package));
  for (const darwinn::Executable* executable : {&loaded->execution(), loaded->caching()}) {
    REEF_REQUIRE(executable == nullptr || executable->parameters.size() <= kMaxTagNumber,
                 "{} bytes of parameters are more than any chip holds", executable->parameters.size());
  }
  std::vector<std::vector<std::uint8_t>> zeros;
  for (const darwinn::Layer& layer : loaded->inputs()) {
    zeros.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)));
  }
  device::Device device({.threads = 1, .max_cycles = max_steps, .budget = budget});
  TraceRecorder recorder;
  device.set_observer(&recorder);
  const auto outputs = device.run(loaded, {zeros.begin(), zeros.end()});
  if (device.chip().steps() > max_steps) {
    return make_error(StatusCode::kResourceExhausted, "the program takes more steps than any compiled program known");
  }
  REEF_RETURN_IF_ERROR(outputs.status());
  return recorder.take_trace(loaded->execution());
}

}  // namespace reef::retarget
