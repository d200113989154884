// SPDX-License-Identifier: Apache-2.0
#include "isa/operation.h"

#include "isa/activation.h"
#include "isa/fence.h"
#include "isa/host_queues.h"
#include "isa/mesh.h"
#include "isa/movers.h"
#include "isa/ring.h"
#include "isa/scalar.h"
#include "isa/tensor_op.h"

namespace reef::isa {

namespace {

template <typename Watchers>
std::vector<Wait> waits_of(const Instruction& instruction, const Watchers& watchers, bool on_destination) {
  std::vector<Wait> waits;
  for (const WatcherFields& fields : watchers) {
    const Watcher watcher = instruction.read_watcher(fields);
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

Signal signal_of(const Instruction& instruction, const ProducerFields& fields) {
  const Producer producer = instruction.read_producer(fields);
  return {producer.enabled, static_cast<std::uint8_t>(instruction.producer_counter(fields)),
          static_cast<std::uint8_t>(producer.level)};
}

Result<NestShape> shape_of(const Instruction& instruction, const NestFields& fields) {
  auto shape = nest_shape(instruction.read_nest(fields), fields.dims, clipped_dim(instruction, fields));
  if (!shape.ok()) return shape.status().in(fields.name);
  return shape;
}

int products_per_step(bool in_16, bool param_16, int lanes_off) {
  if (lanes_off != 0) return 1;
  return in_16 && param_16 ? 1 : in_16 || param_16 ? 2 : 4;
}

// All nests of a tensor operation make their steps together.
Status check_steps(const TensorOperation& code, Opcode opcode) {
  const auto require = [&](const NestShape& nest, const char* name) {
    if (nest.steps == code.loops.steps) return ok_status();
    return invalid_input("nest `{}` makes {} steps, the loops {}", name, nest.steps, code.loops.steps);
  };
  const bool reads_input = opcode == Opcode::kMultiplyAdd || opcode == Opcode::kResample;
  if (reads_input) REEF_RETURN_IF_ERROR(require(code.in, "in"));
  if (opcode != Opcode::kResample) REEF_RETURN_IF_ERROR(require(code.param, "param"));
  return require(code.psum, "psum");
}

Status read_nests(const Instruction& i, TensorOperation& code) {
  namespace t = tensor_op;
  REEF_ASSIGN_OR_RETURN(code.loops, shape_of(i, t::kLoops));
  REEF_ASSIGN_OR_RETURN(code.in, shape_of(i, t::kIn));
  REEF_ASSIGN_OR_RETURN(code.out, shape_of(i, t::kOut));
  REEF_ASSIGN_OR_RETURN(code.param, shape_of(i, t::kParam));
  REEF_ASSIGN_OR_RETURN(code.psum, shape_of(i, t::kPsum));
  return check_steps(code, i.opcode());
}

void read_operands(const Instruction& i, TensorOperation& code) {
  namespace t = tensor_op;
  code.in_16 = i.test(t::kIn16);
  code.param_16 = i.test(t::kParam16);
  code.out_16 = i.test(t::kOut16);
  code.accumulate_inside = i.test(t::kAccumulateInside);
  code.static_params = i.test(t::kStaticParams);
  code.products = products_per_step(code.in_16, code.param_16, static_cast<int>(i.bits(t::kLanesOff)));
  code.cells = static_cast<int>(i.get(t::kCells));
  code.out_words = (code.cells * (code.out_16 ? 2 : 1) + 3) / 4;
  code.scaling_level = static_cast<int>(i.bits(t::kScalingLevel));
  code.reduce_dims = i.bits(t::kReduceDims);
  if (i.test(t::kPsumGroup)) {
    code.group_level = static_cast<int>(i.bits(t::kPsumGroupLevel));
  } else if (i.test(t::kPsumGroup2)) {
    code.group_level = static_cast<int>(i.bits(t::kPsumGroup2Level));
  }
  code.in_zero = static_cast<std::int32_t>(i.bits(t::kInZero));
  code.param_zero = static_cast<std::int32_t>(i.bits(t::kParamZero));
  code.zero_line = i.bits(t::kParamZeroFirst);
  code.zero_line_step = static_cast<std::int64_t>(i.bits(t::kParamZeroLast)) - code.zero_line;
  code.reciprocal_root = i.test(t::kReciprocalRoot);
  code.odd_symmetry = i.bits(t::kOddSymmetry) != 0;
  code.scale = i.get_float(t::kScale);
}

void read_result(const Instruction& i, TensorOperation& code) {
  namespace t = tensor_op;
  code.out_zero = static_cast<std::int32_t>(i.bits(t::kOutZero));
  code.constant = static_cast<std::int32_t>(i.get(t::kConstant));
  code.has_zero_line = i.test(t::kParamZeroLine);
  code.activation = i.test(t::kActivation);
  code.has_bias = i.test(t::kBias);
  code.has_scales = i.test(t::kScalePerCell);
  code.min = i.get_float(t::kMin);
  code.max = i.get_float(t::kMax);
}

// Steps that are no fraction 1 / factor have not been seen; neither have phases with another factor than 2.
Result<ResampleAxis> read_axis(const Instruction& i, const Field& dim, const Field& nearest, const Field& phase,
                               const Field& step) {
  namespace r = tensor_op::resample;
  ResampleAxis axis{.dim = static_cast<int>(i.bits(dim)),
                    .nearest = i.test(nearest),
                    .phase = static_cast<std::int32_t>(i.bits(phase))};
  const auto distance = static_cast<std::int32_t>(i.bits(step));
  if (distance == 0 || r::kStepsPerPixel % distance != 0) {
    return unsupported("it resamples in steps of {}/{} pixel; known are fractions 1/factor", distance,
                       r::kStepsPerPixel);
  }
  axis.factor = r::kStepsPerPixel / distance;
  if (axis.phase != 0 && axis.factor != 2) {
    return unsupported("it resamples by {} with phase {}, whose unit is known for factor 2 only", axis.factor,
                       axis.phase);
  }
  return axis;
}

Status read_resampling(const Instruction& i, TensorOperation& code) {
  namespace r = tensor_op::resample;
  REEF_ASSIGN_OR_RETURN(code.x, read_axis(i, r::kXDim, r::kXNearest, r::kXPhase, r::kXStep));
  REEF_ASSIGN_OR_RETURN(code.y, read_axis(i, r::kYDim, r::kYNearest, r::kYPhase, r::kYStep));
  code.pixel_stride = static_cast<std::int32_t>(i.get(r::kPixelStride));
  code.row_stride = static_cast<std::int32_t>(i.bits(r::kRowStride));
  return ok_status();
}

Result<OperationCode> tensor_code(const Instruction& i) {
  namespace t = tensor_op;
  TensorOperation code;
  REEF_RETURN_IF_ERROR(read_nests(i, code));
  code.waits = waits_of(i, t::kWatchers, false);
  code.avdata = signal_of(i, t::kSignalAvdata);
  code.parameters = signal_of(i, t::kSignalParameters);
  read_operands(i, code);
  if (i.opcode() == Opcode::kResample) {
    REEF_RETURN_IF_ERROR(read_resampling(i, code));
  } else {
    read_result(i, code);
  }
  return OperationCode(std::move(code));
}

OperationCode activation_code(const Instruction& i) {
  LoadActivation code;
  for (int segment = 0; segment < activation::kSegments; ++segment) {
    for (int power = 0; power < activation::kCoefficients; ++power) {
      code.segments[at(segment)][at(power)] = i.get_float(activation::coefficient(segment, power));
    }
  }
  for (int k = 0; k + 1 < activation::kSegments; ++k) {
    code.breaks[at(k)] = i.get_float(activation::breakpoint(k));
  }
  return code;
}

Result<OperationCode> ring_send_code(const Instruction& i) {
  namespace r = ring;
  RingSend code;
  REEF_ASSIGN_OR_RETURN(code.in, shape_of(i, r::kSendIn));
  code.waits = all_waits_of(i, r::kSendWatchers);
  code.ring_write = signal_of(i, r::kSignalRingWrite);
  code.ring_producer = signal_of(i, r::kSignalRingProducer);
  code.channel = static_cast<int>(i.bits(r::kChannel));
  code.to_tiles = static_cast<std::uint16_t>(i.bits(r::kToTiles));
  code.to_scalar = i.test(r::kToScalar);
  return OperationCode(std::move(code));
}

Result<OperationCode> ring_receive_code(const Instruction& i) {
  namespace r = ring;
  RingReceive code;
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
  return OperationCode(std::move(code));
}

Result<OperationCode> to_wide_code(const Instruction& i) {
  namespace m = movers;
  NarrowToWide code;
  REEF_ASSIGN_OR_RETURN(code.in, shape_of(i, m::kToWideIn));
  REEF_ASSIGN_OR_RETURN(code.out, shape_of(i, m::kToWideOut));
  code.in_waits = waits_of(i, m::kToWideWatchers, false);
  code.out_waits = waits_of(i, m::kToWideWatchers, true);
  code.signal = signal_of(i, m::kSignalNarrowToWide);
  code.transpose = i.test(m::kTranspose);
  code.halves = i.test(m::kTransposeHalves);
  code.line_level = static_cast<int>(i.bits(m::kToWideLineLevel));
  if (i.test(m::kBaseFromRegister)) code.base_register = static_cast<int>(i.bits(tile::kBaseRegister));
  return OperationCode(std::move(code));
}

Result<OperationCode> to_narrow_code(const Instruction& i) {
  namespace m = movers;
  WideToNarrow code;
  REEF_ASSIGN_OR_RETURN(code.in, shape_of(i, m::kToNarrowIn));
  REEF_ASSIGN_OR_RETURN(code.out, shape_of(i, m::kToNarrowOut));
  code.in_waits = waits_of(i, m::kToNarrowWatchers, false);
  code.out_waits = waits_of(i, m::kToNarrowWatchers, true);
  code.signal = signal_of(i, m::kSignalWideToNarrow);
  code.to_scaling = i.test(m::kToScaling);
  code.line_level = static_cast<int>(i.bits(m::kToNarrowLineLevel));
  code.skip_level = static_cast<int>(i.get(m::kSkipLevel));
  code.skip_words = i.test(m::kSkip) ? i.get(m::kSkipWords) : 0;
  return OperationCode(std::move(code));
}

// A nest whose base, strides, counts and mask are all zero is not there.
bool is_present(const Nest& nest) {
  if (nest.base != 0) return true;
  for (const Nest::Dim& dim : nest.dims) {
    if (dim.stride != 0 || dim.count != 1 || dim.used) return true;
  }
  return false;
}

Result<OperationCode> mesh_code(const Instruction& i) {
  namespace m = mesh;
  Mesh code;
  code.fills = i.test(m::kFill);
  code.sends = is_present(i.read_nest(m::kIn));
  code.receives = code.fills || is_present(i.read_nest(m::kOut));
  REEF_ASSIGN_OR_RETURN(code.in, shape_of(i, m::kIn));
  REEF_ASSIGN_OR_RETURN(code.out, shape_of(i, m::kOut));
  code.in_waits = waits_of(i, m::kWatchers, false);
  code.out_waits = waits_of(i, m::kWatchers, true);
  const auto producers = m::producers(i.opcode());
  code.sent = signal_of(i, producers[0]);
  code.received = signal_of(i, producers[1]);
  code.fill_value = i.bits(m::kFillValue);
  return OperationCode(std::move(code));
}

OperationCode tile_fence_code(const Instruction& i) {
  namespace f = tile_fence;
  TileFence code;
  code.drain = i.bits(f::kDrain);
  code.reset = i.bits(f::kReset);
  code.reset_to = static_cast<std::int32_t>(i.get(f::kResetTo));
  code.notify = i.test(f::kNotify);
  code.await_producer_a = i.test(f::kAwaitProducerA);
  code.await_producer_b = i.test(f::kAwaitProducerB);
  code.await_count = static_cast<std::int32_t>(i.get(f::kAwaitCount));
  return code;
}

OperationCode scalar_fence_code(const Instruction& i) {
  namespace f = scalar_fence;
  ScalarFence code;
  code.reset = i.bits(f::kReset);
  code.drain = i.bits(f::kDrain);
  code.reset_to = static_cast<std::int32_t>(i.get(f::kResetTo));
  code.await_notify = i.test(f::kAwaitNotify);
  code.notify_tiles = static_cast<std::uint16_t>(i.bits(f::kNotifyTiles));
  for (int k = 0; k < kScalarCounterCount; ++k) {
    if (!i.test(f::compare(k))) continue;
    code.waits.push_back({static_cast<std::uint8_t>(k), 0, static_cast<std::int32_t>(i.get(f::threshold(k))), 0});
  }
  return code;
}

Result<OperationCode> infeed_code(const Instruction& i) {
  namespace q = host_queues;
  Infeed code;
  code.activations = i.bits(q::kInfeedBuffer) != 0;
  REEF_ASSIGN_OR_RETURN(code.out, shape_of(i, q::kInfeedOut));
  code.waits = waits_of(i, q::kInfeedWatchers, false);
  code.signal = signal_of(i, q::kSignalInfeed);
  return OperationCode(std::move(code));
}

Result<OperationCode> pop_code(const Instruction& i) {
  namespace q = host_queues;
  Pop code;
  code.source = static_cast<int>(i.bits(q::kPopSource));
  if (code.source > 2) return unsupported("a pop from the unknown buffer {}", code.source);
  REEF_ASSIGN_OR_RETURN(code.in, shape_of(i, q::kPopIn));
  code.waits = waits_of(i, q::kPopWatchers, false);
  code.signal = signal_of(i, q::kSignalPop);
  code.ring_producer = signal_of(i, q::kSignalPopRingProducer);
  code.to_tiles = static_cast<std::uint16_t>(i.bits(q::kPopTiles));
  code.line_bytes = static_cast<int>(i.get(q::kPopLineWords)) * 4;
  return OperationCode(std::move(code));
}

Result<OperationCode> outfeed_code(const Instruction& i) {
  namespace q = host_queues;
  Outfeed code;
  REEF_ASSIGN_OR_RETURN(code.out, shape_of(i, q::kOutfeedOut));
  code.waits = waits_of(i, q::kOutfeedWatchers, false);
  code.signal = signal_of(i, q::kSignalOutfeed);
  // An outfeed whose watcher names the loop-back counter, in use or not, fills the loop-back buffer.
  const Watcher watcher = i.read_watcher(q::kOutfeedWatchers[0]);
  code.loop_back = (watcher.counter & static_cast<std::uint32_t>(ScalarCounter::kLoopbackPop)) != 0;
  code.unit_bytes = i.bits(q::kOutfeedTarget) != 0 ? 8 : 4;
  return OperationCode(std::move(code));
}

Result<OperationCode> code_of(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kMultiplyAdd:
    case Opcode::kMaximum:
    case Opcode::kSum:
    case Opcode::kResample:
      return tensor_code(i);
    case Opcode::kLoadActivation:
      return activation_code(i);
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
      return OperationCode(std::monostate{});
  }
}

}  // namespace

Result<Operation> operation_of(const Instruction& instruction) {
  Operation operation;
  operation.opcode = instruction.opcode();
  REEF_ASSIGN_OR_RETURN(operation.code, code_of(instruction));
  if (instruction.opcode() == Opcode::kTileFence) {
    operation.tiles = static_cast<std::uint16_t>(instruction.bits(tile_fence::kTiles));
  } else if (is_tile_instruction(instruction.opcode())) {
    operation.tiles = static_cast<std::uint16_t>(instruction.bits(tile::kTiles));
    if (instruction.test(tile::kTilesFromRegister)) {
      operation.tiles = 0;
      operation.tiles_register = static_cast<int>(instruction.bits(tile::kTilesRegister));
    }
  }
  return operation;
}

}  // namespace reef::isa
