// SPDX-License-Identifier: Apache-2.0
#include "compiler/explain.h"

#include <algorithm>

#include <fmt/format.h>

#include "execute/device/device.h"
#include "execute/device/timeline.h"
#include "ir/describe.h"
#include "isa/program.h"
#include "tiled/text.h"

namespace reef::compiler {
namespace {

// By instruction of the program as the device numbers it (all pieces with their starts, halts and ends): the number it
// has if the program were in one piece.
std::vector<std::int64_t> numbers_in_one_piece(const device::Program& program) {
  std::vector<std::int64_t> numbers(program.instructions.size());
  std::int64_t next = 0;
  const std::size_t pieces = program.chunk_starts.size() - 1;
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const std::size_t begin = program.chunk_starts[piece], end = program.chunk_starts[piece + 1];
    std::size_t tail = end;  // where the halt that says "more to come" begins
    if (piece + 1 < pieces) {
      while (tail > begin && program.instructions[tail - 1].opcode() != isa::Opcode::kHalt) --tail;
      tail = tail > begin ? tail - 1 : end;
    }
    for (std::size_t i = begin; i < end; ++i) {
      const bool is_own = i < tail && !(piece > 0 && i == begin);
      numbers[i] = is_own ? next++ : next - 1;
    }
  }
  return numbers;
}

// The step of each instruction of the device's program; -1: prologue, steps.size(): epilogue.
std::vector<std::int64_t> steps_of(const device::Program& program, const std::vector<std::int32_t>& step_begins) {
  std::vector<std::int64_t> steps;
  for (const std::int64_t number : numbers_in_one_piece(program)) {
    const auto after = std::upper_bound(step_begins.begin(), step_begins.end(), number);
    steps.push_back(after - step_begins.begin() - 1);
  }
  return steps;
}

Status simulate(const PartCode& code, const device::TimingOptions& timing, PartExplanation& result) {
  REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(code.package));
  std::vector<std::vector<std::uint8_t>> tensors;
  for (const darwinn::Layer& layer : loaded->inputs()) {
    tensors.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)));
  }
  const std::vector<std::span<const std::uint8_t>> inputs(tensors.begin(), tensors.end());
  device::Device device({.threads = 1});
  REEF_RETURN_IF_ERROR(device.run(loaded, inputs).status());  // brings the parameters
  device::TimelineOptions options;
  options.timing = timing;
  options.keep_slices = true;
  device::Timeline timeline(options);
  device.set_observer(&timeline);
  device.set_queue_depths(device::kShallowQueues);
  REEF_RETURN_IF_ERROR(device.run(loaded, inputs).status());
  const auto records = timeline.take_records();
  REEF_REQUIRE(records.size() == 1, "{} programs ran instead of one", records.size());
  const device::ProgramRecord& record = records.front();
  result.cycles = record.time.cycles;
  result.ms = record.time.ms();
  const std::vector<std::int64_t> steps = steps_of(*record.program, code.step_begins);
  std::vector<double> ends(result.steps.size() + 2, 0);  // of prologue, steps, epilogue
  for (const device::Slice& slice : record.slices) {
    double& end = ends[at(steps[slice.index] + 1)];
    end = std::max(end, slice.end);
  }
  double last = ends[0];
  for (std::size_t i = 0; i < result.steps.size(); ++i) {
    result.steps[i].cycles = std::max(0.0, ends[i + 1] - last);
    last = std::max(last, ends[i + 1]);
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] < 0 || steps[i] >= static_cast<std::int64_t>(result.steps.size())) continue;
    StepExplanation& step = result.steps[at(steps[i])];
    ++step.instructions;
    step.instruction_bytes += record.program->instructions[i].rows() * isa::kRowBits / 8;
  }
  return ok_status();
}

std::vector<MemoryObject> memory_map(const ir::Model& model, const tiled::TiledProgram& program) {
  std::vector<MemoryObject> objects;
  for (std::size_t i = 0; i < program.narrow.size(); ++i) {
    const tiled::NarrowObject& object = program.narrow[i];
    if (object.address == tiled::kNowhere || object.bytes == 0 || object.life.first == tiled::kNowhere) continue;
    std::string name;
    for (const tiled::TiledTensor& tensor : program.tensors) {
      if (tensor.object != static_cast<std::int32_t>(i) || tensor.source < 0) continue;
      name += (name.empty() ? "" : ", ") + ir::describe_name(model.subgraphs[0].tensors[at(tensor.source)].name);
    }
    objects.push_back({name.empty() ? "scratch" : name, object.address, object.address + object.bytes,
                       object.life.first, object.life.last});
  }
  std::stable_sort(objects.begin(), objects.end(),
                   [](const MemoryObject& a, const MemoryObject& b) { return a.begin < b.begin; });
  return objects;
}

}  // namespace

Result<PartExplanation> explain(const ir::Model& model, const PartCode& code, const device::TimingOptions& timing) {
  const tiled::TiledProgram& program = code.program;
  REEF_REQUIRE(code.step_begins.size() == program.steps.size() + 1,
               "it is not known which instructions belong to what");
  PartExplanation result;
  for (const tiled::Step& step : program.steps) {
    result.steps.push_back({tiled::step_title(model, step), tiled::work_details(step.work), step.op});
  }
  result.narrow = memory_map(model, program);
  result.narrow_bytes = program.narrow_bytes;
  result.scratch_lines = chip::kWideLines - program.lowest_scratch_line;
  for (const tiled::ParameterChunk& chunk : program.parameters) {
    ++(chunk.is_cached() ? result.cached_chunks : result.streamed_chunks);
    (chunk.is_cached() ? result.cached_bytes : result.streamed_bytes) += static_cast<std::int64_t>(chunk.bytes.size());
  }
  for (const darwinn::Executable& executable : code.package.executables) {
    if (executable.type == darwinn::ExecutableType::kParameterCaching) continue;
    result.chunks = static_cast<int>(executable.instruction_chunks.size());
    for (const darwinn::InstructionChunk& chunk : executable.instruction_chunks) {
      result.instruction_bytes += static_cast<std::int64_t>(chunk.bitstream.size());
    }
  }
  REEF_RETURN_IF_ERROR(simulate(code, timing, result));
  return result;
}

std::string to_text(const PartExplanation& part) {
  std::string text = fmt::format("{:>5} {:>10} {:>13} {:>9}  {}\n", "step", "cycles", "instructions", "bytes", "what");
  for (std::size_t i = 0; i < part.steps.size(); ++i) {
    const StepExplanation& step = part.steps[i];
    text += fmt::format("{:>5} {:>10.0f} {:>13} {:>9}  {}\n", i, step.cycles, step.instructions, step.instruction_bytes,
                        step.title);
    if (!step.details.empty()) text += fmt::format("{:>42}{}\n", "", step.details);
  }
  text += fmt::format(
      "an inference takes {:.0f} cycles from call to return, {:.3f} ms (simulated); a step's cycles are those by which "
      "it makes the program longer\n",
      part.cycles, part.ms);
  text += fmt::format("instructions: {} bytes in {} {}, sent with every inference\n", part.instruction_bytes,
                      part.chunks, part.chunks == 1 ? "piece" : "pieces");
  text +=
      fmt::format("parameters: {} bytes of {} chunks stay on the chip, {} bytes of {} are sent with every inference\n",
                  part.cached_bytes, part.cached_chunks, part.streamed_bytes, part.streamed_chunks);
  text += fmt::format("wide memory: {} of {} lines of each tile are scratch\n", part.scratch_lines,
                      std::int32_t{chip::kWideLines});
  text +=
      fmt::format("narrow memory: {} of {} bytes of each tile\n", part.narrow_bytes, std::int32_t{chip::kNarrowBytes});
  for (const MemoryObject& object : part.narrow) {
    text += fmt::format("  {:>6} to {:>6}  steps {:>3} to {:>3}  {}\n", object.begin, object.end, object.first_step,
                        object.last_step, object.name);
  }
  return text;
}

}  // namespace reef::compiler
