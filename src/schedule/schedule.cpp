// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.h"

#include <algorithm>
#include <set>

#include "schedule/first_fit.h"
#include "schedule/parameter_places.h"
#include "schedule/spills.h"

namespace reef::schedule {
namespace {

using tiled::NarrowObject;
using tiled::TiledProgram;
using tiled::WideObject;

// The lowest address at which an object is free of all that exist with it and are placed. It must clear what lies above
// it by the object's margin.
std::int64_t lowest_gap(const TiledProgram& program, const NarrowObject& object) {
  std::vector<const NarrowObject*> others;
  for (const NarrowObject& other : program.narrow) {
    if (other.address != tiled::kNowhere && other.bytes > 0 && other.exists_with(object)) {
      others.push_back(&other);
    }
  }
  std::sort(others.begin(), others.end(),
            [](const NarrowObject* a, const NarrowObject* b) { return a->address < b->address; });
  std::int64_t at = 0;
  for (const NarrowObject* other : others) {
    if (other->address >= at + object.bytes + object.gap_margin) break;
    at = std::max(at, other->address + other->bytes);
  }
  return at;
}

void set_tensor_addresses(TiledProgram& program) {
  for (tiled::TiledTensor& tensor : program.tensors) {
    tensor.address = program.address_of(tensor.object) + tensor.offset;
  }
}

// Sets all addresses; the first byte that is free behind everything.
std::int64_t place_in_order(TiledProgram& program, FitOrder order) {
  std::vector<Extent> extents;
  std::vector<NarrowObject*> placed;
  for (NarrowObject& object : program.narrow) {
    object.address = tiled::kNowhere;
    if (object.fills_gaps) continue;
    extents.push_back({object.bytes, object.life.first, object.life.last, object.away});
    placed.push_back(&object);
  }
  const std::vector<std::int64_t> offsets = first_fit(extents, order);
  std::int64_t end = 0;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    placed[i]->address = static_cast<std::int32_t>(std::min<std::int64_t>(offsets[i], chip::kNarrowBytes));
    end = std::max(end, offsets[i] + placed[i]->bytes);
  }
  for (NarrowObject& object : program.narrow) {
    if (!object.fills_gaps) continue;
    const std::int64_t at = lowest_gap(program, object);
    object.address = static_cast<std::int32_t>(std::min<std::int64_t>(at, chip::kNarrowBytes));
    end = std::max(end, at + object.bytes);
  }
  return end;
}

// Google's compiler places the largest first. Where that does not fit, or need not be the same, the best order of all
// is taken.
std::int64_t place_objects(TiledProgram& program, std::int64_t limit) {
  const std::int64_t by_size = place_in_order(program, FitOrder::kSize);
  if (program.level == tiled::Level::kAsGoogle && by_size <= limit) return by_size;
  FitOrder best = FitOrder::kSize;
  std::int64_t least = by_size;
  for (const FitOrder order : kFitOrders) {
    const std::int64_t end = place_in_order(program, order);
    if (end >= least) continue;
    least = end;
    best = order;
  }
  return place_in_order(program, best);
}

// Limits of what may exist together, in per cent of the memory: lower ones leave room for pieces between things.
constexpr int kLimits[] = {100, 97, 94, 90, 85, 80, 70};

// Lines of wide memory that things put aside leave for everything else.
constexpr std::int64_t kLinesKept = 512;

std::int64_t lines_aside(const TiledProgram& program, std::size_t first) {
  std::vector<std::int64_t> change(program.steps.size() + 1, 0);
  for (std::size_t i = first; i < program.wide.size(); ++i) {
    const WideObject& object = program.wide[i];
    change[reef::at(object.life.first)] += object.lines;
    change[static_cast<std::size_t>(object.life.last) + 1] -= object.lines;
  }
  std::int64_t now = 0, most = 0;
  for (const std::int64_t lines : change) most = std::max(most, now += lines);
  return most;
}

// The same, with things put aside where they do not fit all together.
std::int64_t place_or_put_aside(TiledProgram& program, std::int64_t limit) {
  const std::int64_t end = place_objects(program, limit);
  if (end <= limit) return end;
  for (const int percent : kLimits) {
    TiledProgram changed = program;
    if (!put_aside(changed, limit * percent / 100)) break;
    if (lines_aside(changed, program.wide.size()) > chip::kWideLines - kLinesKept) continue;
    const std::int64_t less = place_objects(changed, limit);
    if (less > limit) continue;
    program = std::move(changed);
    return less;
  }
  return end;
}

// The operator that a step belongs to. Transfers belong to none: the next operator is the one that needs an input, the
// last one made a result.
std::int32_t operator_at(const TiledProgram& program, std::size_t step) {
  for (std::size_t i = step; i < program.steps.size(); ++i) {
    if (program.steps[i].op >= 0) return program.steps[i].op;
  }
  for (std::size_t i = step; i-- > 0;) {
    if (program.steps[i].op >= 0) return program.steps[i].op;
  }
  return -1;
}

std::int32_t operator_at_most(const TiledProgram& program, const std::vector<std::int64_t>& by_step) {
  const auto most = std::max_element(by_step.begin(), by_step.end());
  return most == by_step.end() ? -1 : operator_at(program, static_cast<std::size_t>(most - by_step.begin()));
}

std::int32_t op_with_most_scratch(const TiledProgram& program) {
  std::vector<std::int64_t> lines(program.steps.size(), 0);
  for (const WideObject& object : program.wide) {
    if (object.life.first < 0) continue;
    for (std::int32_t i = object.life.first; i <= object.life.last; ++i) {
      lines[reef::at(i)] += object.lines;
    }
  }
  return operator_at_most(program, lines);
}

Status place_narrow(TiledProgram& program, std::int64_t limit, Shortage& shortage) {
  const std::int64_t end = place_or_put_aside(program, limit);
  if (end > limit) {
    shortage.op = fullest_op(program, limit);
    return unsupported("activations need {} bytes of each tile, which has {}", end, limit);
  }
  program.narrow_bytes = static_cast<std::int32_t>(end);
  set_tensor_addresses(program);
  return ok_status();
}

// Scratch is at the top of wide memory, so that parameters can be kept at the bottom. What exists for several steps
// (the pixels of a pool, the identity line) counts for each, as seen in Google's programs.
//
// Google's compiler places what takes most lines for most steps first. Where that does not fit, the other orders are
// tried, and the one that takes least is taken.
Status place_wide(TiledProgram& program, Shortage& shortage) {
  std::vector<Extent> extents;
  for (const WideObject& object : program.wide) {
    extents.push_back({object.lines, object.life.first, object.life.last, {}});
  }
  const auto lines_of = [&](const std::vector<std::int64_t>& offsets) {
    std::int64_t end = 0;
    for (std::size_t i = 0; i < offsets.size(); ++i) end = std::max(end, offsets[i] + extents[i].size);
    return end;
  };
  std::vector<std::int64_t> offsets = first_fit(extents, FitOrder::kArea);
  for (const FitOrder order : kFitOrders) {
    if (lines_of(offsets) <= chip::kWideLines) break;
    std::vector<std::int64_t> other = first_fit(extents, order);
    if (lines_of(other) < lines_of(offsets)) offsets = std::move(other);
  }
  if (lines_of(offsets) > chip::kWideLines) {
    shortage.op = op_with_most_scratch(program);
    return unsupported("scratch of {} lines does not fit into a tile's wide memory of {}", lines_of(offsets),
                       chip::kWideLines);
  }
  program.lowest_scratch_line = chip::kWideLines;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    program.wide[i].line = static_cast<std::int32_t>(chip::kWideLines - offsets[i] - extents[i].size);
    program.lowest_scratch_line = std::min(program.lowest_scratch_line, program.wide[i].line);
  }
  return ok_status();
}

// Chunks that are not kept and can only be used from lines of a tile get lines to be brought to. True if there are new
// ones: scratch grows, and there may be less room for others.
bool add_landings(TiledProgram& program) {
  bool grown = false;
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    tiled::ParameterChunk& chunk = program.parameters[i];
    if (!chunk.is_streamed() || chunk.can_stream || chunk.is_fetched()) continue;
    chunk.landing = static_cast<std::int32_t>(program.wide.size());
    WideObject& object = program.wide.emplace_back();
    object.lines = chunk.parts() > 0 ? chunk.part_lines : chunk.lines;
    for (std::size_t k = 0; k < program.steps.size(); ++k) {
      tiled::Step& step = program.steps[k];
      const auto& used = step.parameters_used;
      if (std::find(used.begin(), used.end(), static_cast<std::int32_t>(i)) == used.end()) continue;
      object.life.include(static_cast<std::int32_t>(k));
      step.wide_used.push_back(chunk.landing);
    }
    grown = true;
  }
  return grown;
}

void set_landing_places(TiledProgram& program) {
  for (tiled::ParameterChunk& chunk : program.parameters) {
    if (!chunk.is_fetched()) continue;
    const std::int32_t line = program.line_of(chunk.landing);
    if (chunk.parts() > 0) {
      chunk.at = parts_at(chunk, line);
    } else {
      chunk.at = {{0, line, chunk.lines}};
    }
  }
}

Status use_narrow_addresses(TiledProgram& program, const std::map<std::int32_t, std::int32_t>& addresses) {
  if (addresses.empty()) return ok_status();
  for (const auto& [index, address] : addresses) {
    REEF_REQUIRE(index >= 0 && static_cast<std::size_t>(index) < program.narrow.size(), "there is no narrow object {}",
                 index);
    NarrowObject& object = program.narrow[reef::at(index)];
    REEF_REQUIRE(address >= 0 && address + object.bytes <= chip::kNarrowBytes,
                 "narrow object {} of {} bytes cannot be at {}", index, object.bytes, address);
    object.address = address;
  }
  std::int64_t end = 0;
  for (const NarrowObject& object : program.narrow) end = std::max(end, object.address + object.bytes);
  program.narrow_bytes = static_cast<std::int32_t>(end);
  set_tensor_addresses(program);
  return ok_status();
}

Status use_wide_lines(TiledProgram& program, const std::map<std::int32_t, std::int32_t>& lines) {
  for (const auto& [index, line] : lines) {
    REEF_REQUIRE(index >= 0 && static_cast<std::size_t>(index) < program.wide.size(), "there is no wide object {}",
                 index);
    WideObject& object = program.wide[reef::at(index)];
    REEF_REQUIRE(line >= 0 && line + object.lines <= chip::kWideLines, "wide object {} of {} lines cannot be at {}",
                 index, object.lines, line);
    object.line = line;
  }
  program.lowest_scratch_line = chip::kWideLines;
  for (const WideObject& object : program.wide) {
    program.lowest_scratch_line = std::min(program.lowest_scratch_line, object.line);
  }
  return ok_status();
}

}  // namespace

std::int32_t fullest_op(const TiledProgram& program, std::int64_t bytes) {
  std::vector<std::int64_t> used(program.steps.size(), 0), existing(program.steps.size(), 0);
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const tiled::Step& step = program.steps[i];
    std::set<std::int32_t> objects(step.narrow_used.begin(), step.narrow_used.end());
    for (const auto* tensors : {&step.reads, &step.writes}) {
      for (const std::int32_t t : *tensors) objects.insert(program.tensor(t).object);
    }
    for (const std::int32_t object : objects) used[i] += program.narrow[reef::at(object)].bytes;
  }
  for (const NarrowObject& object : program.narrow) {
    if (object.life.first < 0) continue;
    for (std::int32_t i = object.life.first; i <= object.life.last; ++i) {
      existing[reef::at(i)] += object.bytes;
    }
  }
  const bool is_one_step = !used.empty() && *std::max_element(used.begin(), used.end()) > bytes;
  return operator_at_most(program, is_one_step ? used : existing);
}

std::int64_t activation_bytes(TiledProgram& program) { return place_objects(program, chip::kNarrowBytes); }

bool activations_fit(TiledProgram& program, std::int64_t bytes, bool may_put_aside) {
  return (may_put_aside ? place_or_put_aside(program, bytes) : place_objects(program, bytes)) <= bytes;
}

Status schedule(TiledProgram& program, const ScheduleOptions& options, Shortage* shortage) {
  Shortage unwanted;
  Shortage& at = shortage != nullptr ? *shortage : unwanted;
  REEF_RETURN_IF_ERROR(place_narrow(program, options.narrow_bytes, at));
  REEF_RETURN_IF_ERROR(use_narrow_addresses(program, options.narrow_addresses));
  REEF_RETURN_IF_ERROR(place_wide(program, at));
  if (!options.parameters) {
    place_parameters(program, options.cache);
    while (add_landings(program)) {
      REEF_RETURN_IF_ERROR(place_wide(program, at));
      place_parameters(program, options.cache);
    }
  }
  REEF_RETURN_IF_ERROR(use_wide_lines(program, options.wide_lines));
  if (options.parameters) return use_parameter_places(program, *options.parameters);
  set_landing_places(program);
  return ok_status();
}

}  // namespace reef::schedule
