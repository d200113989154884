// SPDX-License-Identifier: Apache-2.0
// Why a program stands still, and what it left behind.
#include "execute/device/diagnosis.h"

#include <fmt/ranges.h>

#include "execute/device/chip.h"
#include "execute/device/waits.h"

namespace reef::device {
namespace {

// Waits of an operation together with the nest whose passes they count.
struct GatedNest {
  const isa::NestShape* nest;
  const std::vector<isa::Wait>* waits;
  std::int64_t position;
};

std::vector<GatedNest> gates_of(const Running& run) {
  const isa::OperationCode& code = run.operation->code;
  if (const auto* op = std::get_if<isa::TensorOperation>(&code))
    return {{&op->loops, &op->waits, run.first.position()}};
  if (const auto* op = std::get_if<isa::RingSend>(&code)) return {{&op->in, &op->waits, run.first.position()}};
  if (const auto* op = std::get_if<isa::RingReceive>(&code)) return {{&op->out, &op->waits, run.first.position()}};
  if (const auto* op = std::get_if<isa::NarrowToWide>(&code)) {
    return {{&op->in, &op->in_waits, run.first.position()}, {&op->out, &op->out_waits, run.second.position()}};
  }
  if (const auto* op = std::get_if<isa::WideToNarrow>(&code)) {
    return {{&op->in, &op->in_waits, run.first.position()}, {&op->out, &op->out_waits, run.second.position()}};
  }
  if (const auto* op = std::get_if<isa::Mesh>(&code)) {
    return {{&op->in, &op->in_waits, run.first.position()}, {&op->out, &op->out_waits, run.second.position()}};
  }
  if (const auto* op = std::get_if<isa::Infeed>(&code)) return {{&op->out, &op->waits, run.first.position()}};
  if (const auto* op = std::get_if<isa::Pop>(&code)) return {{&op->in, &op->waits, run.first.position()}};
  if (const auto* op = std::get_if<isa::Outfeed>(&code)) return {{&op->out, &op->waits, run.first.position()}};
  return {};
}

// Who signals a counter of the scalar core.
std::string_view scalar_signaller(std::size_t counter) {
  static constexpr std::array<std::string_view, chip::kScalarCounters> kSignallers = {"infeed of activations",
                                                                                      "infeed of parameters",
                                                                                      "pop of activations",
                                                                                      "pop of parameters",
                                                                                      "pop of the loop-back",
                                                                                      "any tile's ring_send or a pop",
                                                                                      "any tile's ring_send",
                                                                                      "outfeed",
                                                                                      "nothing"};
  return counter < kSignallers.size() ? kSignallers[counter] : "nothing";
}

// Who signals a counter of a tile.
std::string_view tile_signaller(std::size_t counter) {
  static constexpr std::array<std::string_view, chip::kTileCounters> kSignallers = {"a tensor instruction",
                                                                                    "a tensor instruction",
                                                                                    "a tensor instruction",
                                                                                    "mesh_south",
                                                                                    "mesh_west",
                                                                                    "mesh_north",
                                                                                    "mesh_east",
                                                                                    "mesh_north",
                                                                                    "mesh_east",
                                                                                    "mesh_south",
                                                                                    "mesh_west",
                                                                                    "wide_to_narrow",
                                                                                    "wide_to_narrow",
                                                                                    "narrow_to_wide",
                                                                                    "ring_receive_a",
                                                                                    "ring_receive_b",
                                                                                    "ring_send",
                                                                                    "any tile's ring_send or a pop",
                                                                                    "any tile's ring_send"};
  return counter < kSignallers.size() ? kSignallers[counter] : "nothing";
}

// Describes a counter that has not reached `needed`.
std::string lack_of(bool is_scalar, std::uint8_t counter, std::uint16_t value, std::uint32_t needed) {
  return fmt::format("{} is {}, {} is needed (signalled by {})",
                     is_scalar ? isa::kScalarCounterNames[counter] : isa::kTileCounterNames[counter],
                     static_cast<std::int16_t>(value), static_cast<std::int16_t>(static_cast<std::uint16_t>(needed)),
                     is_scalar ? scalar_signaller(counter) : tile_signaller(counter));
}

// Calls use(wait, needed) for each wait that holds an instruction; of a counter that does not exist, too.
template <typename Use>
void each_unmet_wait(const Running& run, std::span<const std::uint16_t> counters, const Use& use) {
  for (const GatedNest& gate : gates_of(run)) {
    for (const isa::Wait& wait : *gate.waits) {
      const WaitPasses passes = passes_of(*gate.nest, wait);
      const std::int64_t pass = next_pass(passes, gate.position);
      if (pass == passes.count) continue;
      const std::uint32_t needed = needed_before(wait, pass);
      if (wait.counter >= counters.size() || !isa::has_reached(counters[wait.counter], needed)) use(wait, needed);
    }
  }
}

}  // namespace

std::vector<std::string> unmet_waits(const Running& run, std::span<const std::uint16_t> counters) {
  std::vector<std::string> texts;
  each_unmet_wait(run, counters, [&](const isa::Wait& wait, std::uint32_t needed) {
    texts.push_back(wait.counter >= counters.size() ? fmt::format("counter {} does not exist", wait.counter)
                                                    : lack_of(counters.size() == chip::kScalarCounters, wait.counter,
                                                              counters[wait.counter], needed));
  });
  return texts;
}

std::vector<std::string> Chip::unmet_fence(const isa::ScalarFence& fence) const {
  std::vector<std::string> texts;
  std::vector<int> silent;
  for (const auto& tile : tiles_) {
    const bool is_awaited = fence.await_notify && (fence.notify_tiles >> tile->number & 1) != 0;
    if (is_awaited && tile->notifications == 0) silent.push_back(tile->number);
  }
  if (!silent.empty()) texts.push_back(fmt::format("no tile_fence of tiles {} has notified", fmt::join(silent, ",")));
  for (const isa::Wait& wait : fence.waits) {
    const std::uint16_t counter = scalar_counters_[wait.counter];
    if (isa::has_reached(counter, static_cast<std::uint32_t>(wait.threshold))) continue;
    texts.push_back(lack_of(true, wait.counter, counter, static_cast<std::uint32_t>(wait.threshold)));
  }
  for (std::size_t unit = 0; unit < host_units_.size(); ++unit) {
    const bool is_awaited = (fence.drain & kDrainBits[unit]) != 0;
    if (is_awaited && !host_units_[unit].idle())
      texts.push_back(fmt::format("{} is not idle", host_unit_name(static_cast<int>(unit))));
  }
  return texts;
}

// Counters have 16 bits: whoever falls 32,768 signals behind takes a counter for one that has not arrived.
std::vector<std::string> Chip::overflows(const Tile& tile, const Running& run) {
  std::vector<std::string> texts;
  each_unmet_wait(run, tile.counters, [&](const isa::Wait& wait, std::uint32_t needed) {
    if (wait.counter >= tile.counters.size()) return;
    const std::int64_t signals = tile.signals[wait.counter];
    const auto awaited = static_cast<std::uint16_t>(needed - tile.set_to[wait.counter]);
    if (signals < 32768 || signals < awaited) return;
    texts.push_back(
        fmt::format("{} has overflowed: {} signals since it was set, {} are awaited, and 16 bits are compared",
                    isa::kTileCounterNames[wait.counter], signals, awaited));
  });
  return texts;
}

std::string Chip::standstill() const {
  std::vector<std::string> stuck;
  if (core_.next < program_->instructions.size()) {
    std::string text = "the scalar core waits at " + place(static_cast<std::uint32_t>(core_.next));
    if (const auto* fence = std::get_if<isa::ScalarFence>(&program_->operations[core_.next].code)) {
      text += fmt::format(": {}", fmt::join(unmet_fence(*fence), ", "));
    }
    stuck.push_back(std::move(text));
  }
  for (std::size_t i = 0; i < host_units_.size(); ++i) {
    if (host_units_[i].running) {
      const auto waits = unmet_waits(*host_units_[i].running, scalar_counters_);
      stuck.push_back(fmt::format(
          "{} waits at {}: {}", host_unit_name(static_cast<int>(i)), place(host_units_[i].running->index),
          waits.empty() ? "no data arrives, or the ring is full" : fmt::format("{}", fmt::join(waits, ", "))));
    }
  }
  for (const auto& tile : tiles_) {
    for (const Unit& unit : tile->units) {
      if (!unit.running) continue;
      std::vector<std::string> waits = unmet_waits(*unit.running, tile->counters);
      for (std::string& text : overflows(*tile, *unit.running)) waits.push_back(std::move(text));
      stuck.push_back(fmt::format("tile {} {}: {}", tile->number, place(unit.running->index),
                                  waits.empty() ? "no data arrives" : fmt::format("{}", fmt::join(waits, ", "))));
    }
    if (!tile->dispatch.empty()) {
      stuck.push_back(fmt::format("tile {} holds at {}", tile->number, place(tile->dispatch.front().index)));
    }
  }
  if (stuck.empty()) return "";
  constexpr std::size_t kMost = 12;
  const std::size_t total = stuck.size();
  if (total > kMost) stuck.resize(kMost);
  return fmt::format("the program stands still: {}{}", fmt::join(stuck, "; "),
                     total > kMost ? fmt::format("; and {} more", total - kMost) : "");
}

std::string Chip::left_over() const {
  for (const auto& tile : tiles_) {
    for (std::size_t channel = 0; channel < tile->ring.size(); ++channel) {
      if (!tile->ring[channel].empty()) {
        return fmt::format("{} lines are left on ring channel {} for tile {}", tile->ring[channel].size(),
                           channel == 0 ? "A" : "B", tile->number);
      }
    }
    for (const auto& link : tile->links) {
      if (!link.empty()) return fmt::format("{} words are left on a mesh link to tile {}", link.size(), tile->number);
    }
  }
  if (!to_scalar_.empty()) return fmt::format("{} lines are left on the ring for the scalar core", to_scalar_.size());
  static constexpr std::array<std::string_view, 2> kFilledByHost = {"parameters", "activations"};
  for (std::size_t i = 0; i < kFilledByHost.size(); ++i) {
    const auto& states = buffers_[i].states;
    const auto left = std::count(states.begin(), states.end(), HostBuffer::kFull);
    if (left != 0) return fmt::format("{} units are left in the buffer of {}", left, kFilledByHost[i]);
  }
  for (const auto& tile : tiles_) {
    if (tile->notifications != 0) return fmt::format("nobody waited for a notification of tile {}", tile->number);
  }
  return host_->left_over();
}

}  // namespace reef::device
