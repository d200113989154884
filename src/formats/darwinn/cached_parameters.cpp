// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/cached_parameters.h"

#include <algorithm>
#include <array>
#include <deque>

#include "chip/machine.h"
#include "isa/host_queues.h"
#include "isa/nest_shape.h"
#include "isa/program.h"
#include "isa/ring.h"

namespace reef::darwinn {
namespace {

using isa::Instruction;
using isa::Opcode;

// Lines that one instruction may receive: all of wide memory, twice over for double buffers.
constexpr std::int64_t kMaxLinesPerInstruction = 2 * chip::kWideLines;

// The lines a receive writes, in the order in which they arrive: headers before each pass of their level.
Result<std::vector<std::uint32_t>> received_lines(const Instruction& receive) {
  const isa::Nest nest = receive.read_nest(isa::ring::kReceiveOut);
  const auto steps = nest.steps();
  REEF_REQUIRE(steps && *steps <= kMaxLinesPerInstruction, "a ring receive writes more lines than wide memory has");
  REEF_ASSIGN_OR_RETURN(const isa::NestShape shape, isa::nest_shape(nest, isa::ring::kReceiveOut.dims));
  const bool has_header = receive.test(isa::ring::kHeader);
  const auto header_level = static_cast<int>(receive.get(isa::ring::kHeaderLevel));
  const auto header_lines = static_cast<std::uint32_t>(receive.get(isa::ring::kHeaderLines));
  const std::uint32_t first = receive.bits(isa::ring::kHeaderFirst), last = receive.bits(isa::ring::kHeaderLast);
  const std::uint32_t step = receive.bits(isa::ring::kHeaderStep);
  const std::uint32_t buffers = step > 0 && last > first ? (last - first) / step + 1 : 1;
  REEF_REQUIRE(header_lines <= kMaxLinesPerInstruction, "a ring receive has a header of {} lines", header_lines);
  std::vector<std::uint32_t> lines;
  for (isa::NestCursor body(shape, 0); !body.done(); body.advance()) {
    if (has_header && body.begins_pass(header_level)) {
      REEF_REQUIRE(lines.size() <= kMaxLinesPerInstruction, "a ring receive's headers write more lines than there are");
      const auto buffer = first + step * static_cast<std::uint32_t>(body.pass(header_level) % buffers);
      for (std::uint32_t k = 0; k < header_lines; ++k) lines.push_back(buffer + k);
    }
    lines.push_back(static_cast<std::uint32_t>(body.address()));
  }
  return lines;
}

class Walk {
 public:
  explicit Walk(std::size_t parameter_bytes) : parameter_bytes_(parameter_bytes) {}

  Status add_receive(const Instruction& receive) {
    REEF_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> lines, received_lines(receive));
    for (int tile = 0; tile < chip::kTiles; ++tile) {
      if ((receive.bits(isa::tile::kTiles) >> tile & 1) == 0) continue;
      auto& queue = expected_[at(tile)];
      REEF_REQUIRE(queue.size() <= parameter_bytes_ + kMaxLinesPerInstruction,
                   "tile {} is to receive more lines than there are parameters", tile);
      queue.insert(queue.end(), lines.begin(), lines.end());
    }
    return ok_status();
  }

  Status add_pop(const Instruction& pop) {
    const auto units = pop.read_nest(isa::host_queues::kPopIn).steps();
    const std::uint64_t left = parameter_bytes_ - offset_;
    REEF_REQUIRE(units && static_cast<std::uint64_t>(*units) <= left / chip::kParameterFifoUnitBytes,
                 "the program takes more than the {} bytes of parameters there are", parameter_bytes_);
    const std::uint64_t bytes = static_cast<std::uint64_t>(*units) * chip::kParameterFifoUnitBytes;
    const std::uint32_t line_bytes = 4 * (pop.bits(isa::host_queues::kPopLineWords) + 1);
    for (int tile = 0; tile < chip::kTiles; ++tile) {
      if (pop.bits(isa::host_queues::kPopTiles) >> tile & 1) REEF_RETURN_IF_ERROR(place(tile, bytes, line_bytes));
    }
    offset_ += bytes;
    return ok_status();
  }

  std::vector<CachedPiece> take_pieces() { return std::move(pieces_); }

 private:
  Status place(int tile, std::uint64_t bytes, std::uint32_t line_bytes) {
    auto& queue = expected_[at(tile)];
    bool starts_piece = true;
    for (std::uint64_t done = 0; done < bytes; done += line_bytes) {
      REEF_REQUIRE(!queue.empty(), "tile {} is sent a line at parameter byte {} that it does not receive", tile,
                   offset_ + done);
      const std::uint32_t line = queue.front();
      queue.pop_front();
      const std::uint64_t here = std::min<std::uint64_t>(line_bytes, bytes - done);
      if (starts_piece || line != pieces_.back().first_line + pieces_.back().lines) {
        pieces_.push_back({offset_ + done, here, tile, line, 1, line_bytes});
        starts_piece = false;
      } else {
        pieces_.back().bytes += here;
        ++pieces_.back().lines;
      }
    }
    return ok_status();
  }

  std::size_t parameter_bytes_;
  std::uint64_t offset_ = 0;
  std::array<std::deque<std::uint32_t>, chip::kTiles> expected_;
  std::vector<CachedPiece> pieces_;
};

}  // namespace

Result<std::vector<CachedPiece>> find_cached_pieces(const Executable& caching_program) {
  Walk walk(caching_program.parameters.size());
  std::vector<isa::Program> chunks;
  for (const InstructionChunk& chunk : caching_program.instruction_chunks) {
    REEF_ASSIGN_OR_RETURN(isa::Program program, isa::decode(chunk.bitstream.span()));
    chunks.push_back(std::move(program));
  }
  // A receive waits for its lines wherever it stands in the program: all receives first, then the pops.
  for (const isa::Program& program : chunks) {
    for (const Instruction& instruction : program) {
      if (instruction.opcode() == Opcode::kRingReceiveA) REEF_RETURN_IF_ERROR(walk.add_receive(instruction));
    }
  }
  for (const isa::Program& program : chunks) {
    for (const Instruction& instruction : program) {
      const bool takes_parameters =
          instruction.opcode() == Opcode::kPop && instruction.bits(isa::host_queues::kPopSource) == 0;
      if (takes_parameters) REEF_RETURN_IF_ERROR(walk.add_pop(instruction));
    }
  }
  return walk.take_pieces();
}

const CachedPiece* piece_at(const std::vector<CachedPiece>& pieces, int tile, std::uint32_t line) {
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    if (piece->tile == tile && line >= piece->first_line && line < piece->first_line + piece->lines) return &*piece;
  }
  return nullptr;
}

}  // namespace reef::darwinn
