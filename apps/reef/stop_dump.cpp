// SPDX-License-Identifier: Apache-2.0
#include "stop_dump.h"

#include <algorithm>
#include <span>
#include <vector>

#include <fmt/ranges.h>

#include "console.h"
#include "formats/numpy/npy.h"
#include "result_files.h"

namespace reef::app {
namespace {

using device::Snapshot;
using device::StopAt;
using device::TileSnapshot;
using device::UnitSnapshot;
using Json = nlohmann::ordered_json;

constexpr std::size_t kShownRanges = 12, kShownRows = 16, kRowBytes = 16;

struct Range {
  std::size_t first = 0, last = 0;  // inclusive
};

std::vector<Range> known_ranges(std::span<const std::uint8_t> known) {
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i] == 0) continue;
    if (!ranges.empty() && ranges.back().last + 1 == i) {
      ranges.back().last = i;
    } else {
      ranges.push_back({i, i});
    }
  }
  return ranges;
}

// A memory of a tile. `line`: bytes of what addresses count.
struct Memory {
  std::string_view name, unit;
  std::size_t line = 1;
  const std::vector<std::uint8_t>* bytes;
  const std::vector<std::uint8_t>* known;
};

std::vector<Memory> memories_of(const TileSnapshot& tile) {
  return {{"narrow", "bytes", 1, &tile.narrow, &tile.narrow_known},
          {"wide", "lines", chip::kWideLineBytes, &tile.wide, &tile.wide_known},
          {"scaling", "words", 4, &tile.scaling, &tile.scaling_known}};
}

// Lines of which any byte is known.
std::vector<Range> known_lines(const Memory& memory) {
  std::vector<std::uint8_t> lines;
  for (std::size_t i = 0; i < memory.known->size(); i += memory.line) {
    const auto* begin = memory.known->data() + i;
    lines.push_back(std::any_of(begin, begin + memory.line, [](std::uint8_t k) { return k != 0; }) ? 1 : 0);
  }
  return known_ranges(lines);
}

std::string file_of(const TileSnapshot& tile, std::string_view memory, bool known) {
  return fmt::format("tile{:02}_{}{}.npy", tile.number, memory, known ? "_known" : "");
}

// ---- JSON ----

Json place_json(const StopAt& stop, std::size_t index) {
  const device::Program& program = stop.program();
  if (index >= program.instructions.size()) return nullptr;
  return {{"chunk", program.chunk_of[index]},
          {"row", program.row_of[index]},
          {"opcode", isa::info(program.instructions[index].opcode()).mnemonic}};
}

Json places_json(const StopAt& stop, const std::vector<std::uint32_t>& indices) {
  Json list = Json::array();
  for (const std::uint32_t index : indices) list.push_back(place_json(stop, index));
  return list;
}

Json unit_json(const StopAt& stop, const UnitSnapshot& unit) {
  Json json = {{"unit", unit.name}};
  if (unit.running) {
    json["running"] = place_json(stop, *unit.running);
    for (const device::NestProgress& p : unit.progress) {
      json["running"][std::string(p.nest)] = {{"position", p.position}, {"size", p.size}};
    }
    if (!unit.waits_for.empty()) json["running"]["waits_for"] = unit.waits_for;
  }
  json["queue"] = places_json(stop, unit.queue);
  return json;
}

template <typename Counters, typename Names>
Json counters_json(const Counters& counters, const Names& names) {
  Json json = Json::object();
  for (std::size_t i = 0; i < counters.size(); ++i) json[std::string(names[i])] = counters[i];
  return json;
}

Json tile_json(const StopAt& stop, const TileSnapshot& tile, const std::string& folder) {
  Json json = {{"tile", tile.number}, {"counters", counters_json(tile.counters, isa::kTileCounterNames)}};
  for (const UnitSnapshot& unit : tile.units) json["units"].push_back(unit_json(stop, unit));
  json["dispatch"] = places_json(stop, tile.dispatch);
  json["ring_lines"] = tile.ring_lines;
  json["mesh_words"] = tile.mesh_words;
  if (tile.narrow.empty()) return json;
  for (const Memory& memory : memories_of(tile)) {
    Json ranges = Json::array();
    for (const Range& range : known_lines(memory)) ranges.push_back({range.first, range.last});
    Json& entry = json["memories"].emplace_back(Json{
        {"memory", memory.name}, {"bytes", memory.bytes->size()}, {"unit", memory.unit}, {"known", std::move(ranges)}});
    if (folder.empty()) continue;
    entry["file"] = folder + "/" + file_of(tile, memory.name, false);
    entry["known_file"] = folder + "/" + file_of(tile, memory.name, true);
  }
  return json;
}

// ---- Text ----

std::string ranges_text(const std::vector<Range>& ranges) {
  std::vector<std::string> texts;
  for (const Range& range : ranges) {
    if (texts.size() == kShownRanges) break;
    texts.push_back(range.first == range.last ? fmt::format("{}", range.first)
                                              : fmt::format("{}-{}", range.first, range.last));
  }
  if (ranges.size() > texts.size()) texts.push_back(fmt::format("and {} more ranges", ranges.size() - texts.size()));
  return fmt::format("{}", fmt::join(texts, ", "));
}

// The first rows of 16 bytes that have a known byte; unknown bytes are dots, rows like the one before are a star.
void print_rows(const Memory& memory) {
  std::size_t shown = 0;
  std::string before;
  bool is_repeated = false;
  for (std::size_t row = 0; row < memory.bytes->size() && shown < kShownRows; row += kRowBytes) {
    std::string text;
    bool any = false;
    for (std::size_t i = row; i < std::min(row + kRowBytes, memory.bytes->size()); ++i) {
      any |= (*memory.known)[i] != 0;
      text += (*memory.known)[i] != 0 ? fmt::format(" {:02x}", (*memory.bytes)[i]) : " ..";
      if (i % 4 == 3) text += ' ';
    }
    if (!any || text == before) {
      if (any && !is_repeated) print_text("           *\n");
      is_repeated = any;
      continue;
    }
    is_repeated = false;
    before = text;
    ++shown;
    if (memory.line == kRowBytes || memory.line == 1) {
      print_text("      {:>6}: {}\n", row, text);
    } else {
      print_text("      {:>6}+{:<3}: {}\n", row / memory.line, row % memory.line, text);
    }
  }
}

void print_memory(const Memory& memory) {
  const auto known = static_cast<std::size_t>(
      std::count_if(memory.known->begin(), memory.known->end(), [](std::uint8_t k) { return k != 0; }));
  print_text("    {} memory: {} of {} bytes are known", memory.name, known, memory.bytes->size());
  if (known == 0) {
    print_text("\n");
    return;
  }
  print_text("; {} {}\n", memory.unit, ranges_text(known_lines(memory)));
  print_rows(memory);
}

void print_unit(const StopAt& stop, const UnitSnapshot& unit) {
  if (!unit.running && unit.queue.empty()) return;
  print_text("    {:<15}", unit.name);
  if (unit.running) {
    print_text("{}", stop.describe(*unit.running));
    for (const device::NestProgress& p : unit.progress) print_text(", {} {} of {}", p.nest, p.position, p.size);
    for (const std::string& wait : unit.waits_for) print_text("; {}", wait);
  } else {
    print_text("none");
  }
  if (!unit.queue.empty()) {
    print_text("; {} more in its queue, next {}", unit.queue.size(), stop.describe(unit.queue.front()));
  }
  print_text("\n");
}

template <typename Counters, typename Names>
void print_counters(const Counters& counters, const Names& names) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < counters.size(); ++i) {
    if (counters[i] != 0) texts.push_back(fmt::format("{} {}", names[i], static_cast<std::int16_t>(counters[i])));
  }
  print_text("    counters       {}\n", texts.empty() ? "all 0" : fmt::format("{}; others 0", fmt::join(texts, ", ")));
}

bool is_busy(const TileSnapshot& tile) {
  const auto busy = [](const UnitSnapshot& unit) { return unit.running || !unit.queue.empty(); };
  return !tile.dispatch.empty() || std::any_of(tile.units.begin(), tile.units.end(), busy);
}

void print_tile(const StopAt& stop, const TileSnapshot& tile) {
  print_text("  tile {}\n", tile.number);
  print_counters(tile.counters, isa::kTileCounterNames);
  for (const UnitSnapshot& unit : tile.units) print_unit(stop, unit);
  if (!is_busy(tile)) print_text("    all units are idle\n");
  if (!tile.dispatch.empty()) {
    print_text("    {} instructions wait to be dispatched, next {}\n", tile.dispatch.size(),
               stop.describe(tile.dispatch.front()));
  }
  if (tile.ring_lines[0] + tile.ring_lines[1] > 0) {
    print_text("    lines on the ring for it: channel a {}, b {}\n", tile.ring_lines[0], tile.ring_lines[1]);
  }
  if (const auto& w = tile.mesh_words; w[0] + w[1] + w[2] + w[3] > 0) {
    print_text("    words on the mesh for it: going south {}, west {}, north {}, east {}\n", w[0], w[1], w[2], w[3]);
  }
  if (tile.narrow.empty()) return;
  for (const Memory& memory : memories_of(tile)) print_memory(memory);
}

std::string tiles_text(std::uint32_t mask) {
  std::vector<std::uint8_t> member;
  for (int t = 0; t < chip::kTiles; ++t) member.push_back(mask >> t & 1);
  return ranges_text(known_ranges(member));
}

}  // namespace

Result<std::uint32_t> parse_tiles(const std::string& text) {
  if (text.empty()) return std::uint32_t{0};
  if (text == "all") return (std::uint32_t{1} << chip::kTiles) - 1;
  const bool is_number = text.size() <= 2 && text.find_first_not_of("0123456789") == std::string::npos;
  REEF_REQUIRE(is_number && std::stoi(text) < chip::kTiles, "--dump-tile {}: give a tile from 0 to {}, or all", text,
               chip::kTiles - 1);
  return std::uint32_t{1} << std::stoi(text);
}

Json dump_json(const StopAt& stop, const std::string& folder) {
  const Snapshot& snapshot = *stop.snapshot();
  Json json = place_json(stop, snapshot.index);
  json["occurrence"] = snapshot.occurrence;
  json["tiles"] = snapshot.tiles;
  json["steps"] = snapshot.steps;
  Json core = {{"next", place_json(stop, snapshot.next)},
               {"counters", counters_json(snapshot.counters, isa::kScalarCounterNames)}};
  for (const UnitSnapshot& unit : snapshot.host_units) core["units"].push_back(unit_json(stop, unit));
  json["scalar_core"] = std::move(core);
  for (const TileSnapshot& tile : snapshot.tiles_state) {
    json["tile_states"].push_back(tile_json(stop, tile, folder));
  }
  return json;
}

void print_dump(const StopAt& stop) {
  const Snapshot& snapshot = *stop.snapshot();
  print_text("stopped: {} is finished{}{} after {} steps of all units\n", stop.describe(snapshot.index),
             snapshot.tiles == 0 ? "" : " by tiles " + tiles_text(snapshot.tiles),
             snapshot.occurrence == 1 ? "" : fmt::format(" for the {}. time", snapshot.occurrence), snapshot.steps);
  print_text("  scalar core\n");
  const bool is_done = snapshot.next >= stop.program().instructions.size();
  print_text("    {:<15}{}\n", "at", is_done ? "the end" : stop.describe(snapshot.next));
  print_counters(snapshot.counters, isa::kScalarCounterNames);
  for (const UnitSnapshot& unit : snapshot.host_units) print_unit(stop, unit);
  std::uint32_t idle = 0;
  for (const TileSnapshot& tile : snapshot.tiles_state) {
    const bool is_shown = !tile.narrow.empty() || is_busy(tile);
    if (is_shown) print_tile(stop, tile);
    if (!is_shown) idle |= 1u << tile.number;
  }
  if (idle != 0) print_text("  tiles {}: all units are idle\n", tiles_text(idle));
}

Status write_dump(const StopAt& stop, const std::string& folder) {
  ResultFiles results;
  for (const TileSnapshot& tile : stop.snapshot()->tiles_state) {
    if (tile.narrow.empty()) continue;
    for (const Memory& memory : memories_of(tile)) {
      std::vector<std::int64_t> shape = {static_cast<std::int64_t>(memory.bytes->size())};
      if (memory.line > 1) {
        shape = {static_cast<std::int64_t>(memory.bytes->size() / memory.line), static_cast<std::int64_t>(memory.line)};
      }
      for (const bool known : {false, true}) {
        REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> file,
                              numpy::write_npy(ir::DataType::kUInt8, shape, known ? *memory.known : *memory.bytes));
        results.add(folder + "/" + file_of(tile, memory.name, known), std::move(file));
      }
    }
  }
  results.add(folder + "/dump.json",
              dump_json(stop, folder).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return results.write(folder);
}

}  // namespace reef::app
