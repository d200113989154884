// SPDX-License-Identifier: Apache-2.0
#include "retarget/unit_code.h"

#include <algorithm>
#include <array>

#include "isa/fence.h"
#include "isa/host_queues.h"
#include "isa/mesh.h"
#include "isa/movers.h"
#include "isa/ring.h"
#include "isa/scalar.h"
#include "isa/tensor_op.h"

namespace reef::retarget {

namespace {

using isa::Instruction;
using isa::Opcode;

template <typename Watchers>
std::vector<Wait> waits_of(const Instruction& instruction, const Watchers& watchers, bool on_destination) {
  std::vector<Wait> waits;
  for (const isa::WatcherFields& fields : watchers) {
    const isa::Watcher watcher = instruction.read_watcher(fields);
    if (!watcher.enabled || (fields.has_side && watcher.on_destination != on_destination)) continue;
    waits.push_back({static_cast<std::uint8_t>(watcher.counter), static_cast<std::uint8_t>(watcher.level),
                     watcher.threshold, watcher.increment});
  }
  return waits;
}

// Ring instructions have one nest; the side bit does not choose anything.
template <typename Watchers>
std::vector<Wait> all_waits_of(const Instruction& instruction, const Watchers& watchers) {
  std::vector<Wait> waits = waits_of(instruction, watchers, false);
  if (!watchers.empty() && watchers[0].has_side) {
    for (const Wait& wait : waits_of(instruction, watchers, true)) waits.push_back(wait);
  }
  return waits;
}

Signal signal_of(const Instruction& instruction, const isa::ProducerFields& fields) {
  const isa::Producer producer = instruction.read_producer(fields);
  return {producer.enabled, static_cast<std::uint8_t>(instruction.producer_counter(fields)),
          static_cast<std::uint8_t>(producer.level)};
}

Result<NestShape> shape_of(const Instruction& instruction, const isa::NestFields& fields) {
  auto shape = nest_shape(instruction.read_nest(fields), fields.dims);
  if (!shape.ok()) return shape.status().in(fields.name);
  return shape;
}

int products_per_step(bool in_16, bool param_16, int lanes_off) {
  if (lanes_off != 0) return 1;
  return in_16 && param_16 ? 1 : in_16 || param_16 ? 2 : 4;
}

bool is_plain_copy(const Instruction& i) {
  namespace t = isa::tensor_op;
  constexpr std::uint32_t kOne = 0x3f800000, kPlusInfinity = 0x7f800000, kMinusInfinity = 0xff800000;
  return i.opcode() == Opcode::kMultiplyAdd && !i.test(t::kIn16) && !i.test(t::kParam16) && !i.test(t::kOut16) &&
         i.bits(t::kScale) == kOne && i.bits(t::kMax) == kPlusInfinity && i.bits(t::kMin) == kMinusInfinity &&
         i.bits(t::kParamZero) == 0 && i.bits(t::kInZero) == 0 && i.bits(t::kOutZero) == 0 &&
         i.bits(t::kConstant) == 0 && !i.test(t::kBias) && !i.test(t::kScalePerCell) && !i.test(t::kParamZeroLine) &&
         !i.test(t::kActivation);
}

ResampleCode resample_code(const Instruction& i) {
  namespace r = isa::tensor_op::resample;
  ResampleCode code;
  code.x_phase = static_cast<int>(i.bits(r::kXPhase));
  code.y_phase = static_cast<int>(i.bits(r::kYPhase));
  code.x_factor = std::max(static_cast<int>(i.bits(r::kXFactor)), 1);
  code.y_factor = std::max(static_cast<int>(i.bits(r::kYFactor)), 1);
  code.is_nearest = i.test(r::kXNearest);
  code.pixel_stride = i.get(r::kPixelStride);
  code.row_stride = i.bits(r::kRowStride);
  return code;
}

Result<UnitCode> tensor_code(const Instruction& i) {
  namespace t = isa::tensor_op;
  TensorCode code;
  REEF_ASSIGN_OR_RETURN(code.loops, shape_of(i, t::kLoops));
  REEF_ASSIGN_OR_RETURN(code.in, shape_of(i, t::kIn));
  REEF_ASSIGN_OR_RETURN(code.out, shape_of(i, t::kOut));
  REEF_ASSIGN_OR_RETURN(code.param, shape_of(i, t::kParam));
  REEF_ASSIGN_OR_RETURN(code.psum, shape_of(i, t::kPsum));
  code.waits = waits_of(i, t::kWatchers, false);
  code.avdata = signal_of(i, t::kSignalAvdata);
  code.parameters = signal_of(i, t::kSignalParameters);
  code.in_16 = i.test(t::kIn16);
  code.param_16 = i.test(t::kParam16);
  // 16-bit parameters with partial sums outside the cells and 8-bit inputs: the sums themselves are the result.
  code.psum_to_line = code.param_16 && !code.in_16 && !i.test(t::kAccumulateInside) && !i.test(t::kStaticParams);
  code.lanes_off = static_cast<int>(i.bits(t::kLanesOff));
  code.cells = static_cast<int>(i.get(t::kCells));
  code.out_words = (code.cells * (i.test(t::kOut16) ? 2 : 1) + 3) / 4;
  code.products = products_per_step(code.in_16, code.param_16, code.lanes_off);
  code.scaling_level = static_cast<int>(i.bits(t::kScalingLevel));
  code.reduce_dims = i.bits(t::kReduceDims);
  if (i.test(t::kPsumGroup)) {
    code.group_level = static_cast<int>(i.bits(t::kPsumGroupLevel));
  } else if (i.test(t::kPsumGroup2)) {
    code.group_level = static_cast<int>(i.bits(t::kPsumGroup2Level));
  }
  const bool resamples = i.opcode() == Opcode::kResample;
  if (resamples) code.resample = resample_code(i);
  code.has_bias = !resamples && i.test(t::kBias);
  code.has_multipliers = !resamples && i.test(t::kScalePerCell);
  code.has_zero_line = !resamples && i.test(t::kParamZeroLine);
  code.has_activation = !resamples && i.test(t::kActivation);
  code.zero_line = i.bits(t::kParamZeroFirst);
  code.zero_line_step = static_cast<std::int64_t>(i.bits(t::kParamZeroLast)) - code.zero_line;
  code.is_plain = is_plain_copy(i);
  const bool needs_input = i.opcode() == Opcode::kMultiplyAdd || resamples;
  if (needs_input && code.in.steps != code.loops.steps) {
    return invalid_input("the input nest makes {} steps, the loops {}", code.in.steps, code.loops.steps);
  }
  if (!resamples && code.param.steps != code.loops.steps) {
    return invalid_input("the parameter nest makes {} steps, the loops {}", code.param.steps, code.loops.steps);
  }
  if (code.psum.steps != code.loops.steps) {
    return invalid_input("the partial sum nest makes {} steps, the loops {}", code.psum.steps, code.loops.steps);
  }
  return UnitCode(std::move(code));
}

Result<UnitCode> ring_send_code(const Instruction& i) {
  namespace r = isa::ring;
  RingSendCode code;
  REEF_ASSIGN_OR_RETURN(code.in, shape_of(i, r::kSendIn));
  code.waits = all_waits_of(i, r::kSendWatchers);
  code.ring_write = signal_of(i, r::kSignalRingWrite);
  code.ring_producer = signal_of(i, r::kSignalRingProducer);
  code.channel = static_cast<int>(i.bits(r::kChannel));
  code.to_tiles = static_cast<std::uint16_t>(i.bits(r::kToTiles));
  code.to_scalar = i.test(r::kToScalar);
  return UnitCode(std::move(code));
}

Result<UnitCode> ring_receive_code(const Instruction& i) {
  namespace r = isa::ring;
  RingReceiveCode code;
  REEF_ASSIGN_OR_RETURN(code.out, shape_of(i, r::kReceiveOut));
  code.waits = all_waits_of(i, r::kReceiveWatchers);
  code.channel = i.opcode() == Opcode::kRingReceiveB ? 1 : 0;
  code.read = signal_of(i, code.channel == 1 ? r::kSignalRingReadB : r::kSignalRingReadA);
  code.has_header = i.test(r::kHeader);
  code.header_level = static_cast<int>(i.get(r::kHeaderLevel));
  code.header_first = i.bits(r::kHeaderFirst);
  code.header_lines = i.get(r::kHeaderLines);
  code.header_step = i.bits(r::kHeaderStep);
  const std::int64_t span = static_cast<std::int64_t>(i.bits(r::kHeaderLast)) - code.header_first;
  if (code.header_step > 0 && span >= 0) code.header_buffers = span / code.header_step + 1;
  return UnitCode(std::move(code));
}

Result<UnitCode> to_wide_code(const Instruction& i) {
  namespace m = isa::movers;
  ToWideCode code;
  REEF_ASSIGN_OR_RETURN(code.in, shape_of(i, m::kToWideIn));
  REEF_ASSIGN_OR_RETURN(code.out, shape_of(i, m::kToWideOut));
  code.in_waits = waits_of(i, m::kToWideWatchers, false);
  code.out_waits = waits_of(i, m::kToWideWatchers, true);
  code.signal = signal_of(i, m::kSignalNarrowToWide);
  code.transpose = i.test(m::kTranspose);
  code.halves = i.test(m::kTransposeHalves);
  code.line_level = static_cast<int>(i.bits(m::kToWideLineLevel));
  return UnitCode(std::move(code));
}

Result<UnitCode> to_narrow_code(const Instruction& i) {
  namespace m = isa::movers;
  ToNarrowCode code;
  REEF_ASSIGN_OR_RETURN(code.in, shape_of(i, m::kToNarrowIn));
  REEF_ASSIGN_OR_RETURN(code.out, shape_of(i, m::kToNarrowOut));
  code.in_waits = waits_of(i, m::kToNarrowWatchers, false);
  code.out_waits = waits_of(i, m::kToNarrowWatchers, true);
  code.signal = signal_of(i, m::kSignalWideToNarrow);
  code.to_scaling = i.test(m::kToScaling);
  code.line_level = static_cast<int>(i.bits(m::kToNarrowLineLevel));
  code.has_skip = i.test(m::kSkip);
  code.skip_level = static_cast<int>(i.get(m::kSkipLevel));
  code.skip_words = i.get(m::kSkipWords);
  return UnitCode(std::move(code));
}

// A nest whose base, strides, counts and mask are all zero is not there.
bool is_present(const isa::Nest& nest) {
  if (nest.base != 0) return true;
  for (const isa::Nest::Dim& dim : nest.dims) {
    if (dim.stride != 0 || dim.count != 1 || dim.used) return true;
  }
  return false;
}

Result<UnitCode> mesh_code(const Instruction& i) {
  namespace m = isa::mesh;
  MeshCode code;
  code.fills = i.test(m::kFill);
  code.fill_value = i.bits(m::kFillValue);
  code.sends = is_present(i.read_nest(m::kIn));
  code.receives = code.fills || is_present(i.read_nest(m::kOut));
  REEF_ASSIGN_OR_RETURN(code.in, shape_of(i, m::kIn));
  REEF_ASSIGN_OR_RETURN(code.out, shape_of(i, m::kOut));
  code.in_waits = waits_of(i, m::kWatchers, false);
  code.out_waits = waits_of(i, m::kWatchers, true);
  const auto producers = m::producers(i.opcode());
  code.sent = signal_of(i, producers[0]);
  code.received = signal_of(i, producers[1]);
  constexpr std::array<int, 4> kFrom = {-4, 1, 4, -1};  // south, west, north, east: words come from the other side
  code.from = kFrom[static_cast<std::size_t>(i.opcode()) - static_cast<std::size_t>(Opcode::kMeshSouth)];
  return UnitCode(std::move(code));
}

UnitCode tile_fence_code(const Instruction& i) {
  namespace f = isa::tile_fence;
  return TileFenceCode{i.bits(f::kDrain), i.bits(f::kReset), static_cast<std::int16_t>(i.get(f::kResetTo)),
                       i.test(f::kNotify)};
}

UnitCode scalar_fence_code(const Instruction& i) {
  namespace f = isa::scalar_fence;
  ScalarFenceCode code;
  code.reset = i.bits(f::kReset);
  code.drain = i.bits(f::kDrain);
  code.reset_to = static_cast<std::int16_t>(i.get(f::kResetTo));
  code.await_notify = i.test(f::kAwaitNotify);
  code.notify_tiles = static_cast<std::uint16_t>(i.bits(f::kNotifyTiles));
  for (int k = 0; k < isa::kScalarCounterCount; ++k) {
    if (!i.test(f::compare(k))) continue;
    code.waits.push_back({static_cast<std::uint8_t>(k), 0, static_cast<std::int32_t>(i.get(f::threshold(k))), 0});
  }
  return code;
}

Result<UnitCode> infeed_code(const Instruction& i) {
  namespace q = isa::host_queues;
  InfeedCode code;
  code.activations = i.test(q::kInfeedBuffer);
  REEF_ASSIGN_OR_RETURN(code.out, shape_of(i, q::kInfeedOut));
  code.waits = waits_of(i, q::kInfeedWatchers, false);
  code.signal = signal_of(i, q::kSignalInfeed);
  return UnitCode(std::move(code));
}

Result<UnitCode> pop_code(const Instruction& i) {
  namespace q = isa::host_queues;
  PopCode code;
  code.source = static_cast<int>(i.bits(q::kPopSource));
  REEF_REQUIRE(code.source <= 2, "pop from unknown buffer {}", code.source);
  REEF_ASSIGN_OR_RETURN(code.in, shape_of(i, q::kPopIn));
  code.waits = waits_of(i, q::kPopWatchers, false);
  code.signal = signal_of(i, q::kSignalPop);
  code.ring_producer = signal_of(i, q::kSignalPopRingProducer);
  code.to_tiles = static_cast<std::uint16_t>(i.bits(q::kPopTiles));
  code.line_bytes = static_cast<int>(i.get(q::kPopLineWords)) * 4;
  return UnitCode(std::move(code));
}

Result<UnitCode> outfeed_code(const Instruction& i) {
  namespace q = isa::host_queues;
  OutfeedCode code;
  REEF_ASSIGN_OR_RETURN(code.out, shape_of(i, q::kOutfeedOut));
  code.waits = waits_of(i, q::kOutfeedWatchers, false);
  code.signal = signal_of(i, q::kSignalOutfeed);
  // An outfeed whose watcher names the loop-back counter, in use or not, fills the loop-back buffer.
  const isa::Watcher watcher = i.read_watcher(q::kOutfeedWatchers[0]);
  code.loopback = (watcher.counter & static_cast<std::uint32_t>(isa::ScalarCounter::kLoopbackPop)) != 0;
  code.unit_bytes = i.test(q::kOutfeedTarget) ? 8 : 4;
  return UnitCode(std::move(code));
}

Result<UnitCode> code_of(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kMultiplyAdd:
    case Opcode::kMaximum:
    case Opcode::kSum:
    case Opcode::kResample:
      return tensor_code(i);
    case Opcode::kLoadActivation:
      return UnitCode(TableCode{});
    case Opcode::kRingSend:
      return ring_send_code(i);
    case Opcode::kRingReceiveA:
    case Opcode::kRingReceiveB:
      return ring_receive_code(i);
    case Opcode::kNarrowToWide:
      return to_wide_code(i);
    case Opcode::kWideToNarrow:
      return to_narrow_code(i);
    case Opcode::kMeshSouth:
    case Opcode::kMeshWest:
    case Opcode::kMeshNorth:
    case Opcode::kMeshEast:
      return mesh_code(i);
    case Opcode::kTileFence:
      return tile_fence_code(i);
    case Opcode::kScalarFence:
      return scalar_fence_code(i);
    case Opcode::kInfeed:
      return infeed_code(i);
    case Opcode::kPop:
      return pop_code(i);
    case Opcode::kOutfeed:
      return outfeed_code(i);
    default:
      return UnitCode(std::monostate{});  // scalar code only computes addresses and queues host transfers
  }
}

}  // namespace

Result<PreparedInstruction> prepare_instruction(const isa::Instruction& instruction) {
  PreparedInstruction prepared;
  prepared.opcode = instruction.opcode();
  auto code = code_of(instruction);
  if (!code.ok()) return code.status();
  prepared.code = std::move(code).value();
  if (isa::is_tile_instruction(instruction.opcode())) {
    prepared.tiles = static_cast<std::uint16_t>(instruction.bits(isa::tile::kTiles));
    // The mask comes from a scalar register (loops over time steps). Which tile it is does not matter for where bytes
    // come from, as all time steps of a tensor are one tensor: tile 0 stands for it.
    if (prepared.tiles == 0) prepared.tiles = 1;
  }
  return prepared;
}

}  // namespace reef::retarget
