// SPDX-License-Identifier: Apache-2.0
// The tables themselves: one FieldList per layout, checked at compile time to cover every bit once.
#include "isa/format.h"

#include <array>

#include "base/at.h"
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

constexpr std::string_view kMaybeBaseFromRegister = "by its position possibly what base_from_register is to opcode 13";

// ---- Tensor unit ----

constexpr auto tensor_common() {
  using namespace tensor_op;
  return FieldList::of(tile::kPrefix, kNests, kPsumGroupLevel, kPsumGroup, kPsumGroup2Level, kPsumGroup2,
                       raw("raw_1526", 1526, 6), kProducers, kWatchers, raw("raw_1824", 1824, 19), kStaticParams,
                       raw("raw_1844", 1844, 1, "always 1", 1), kAccumulateInside, kIn16, kParam16,
                       raw("raw_1848", 1848, 2), kLanesOff, kParamZeroLine, kParamZero, kInZero, kParamZeroLast,
                       kParamZeroStep, kParamZeroFirst, raw("raw_1922", 1922, 1), kScalingLevel, kReduceDims,
                       kLastCells, kCells, kActivation, kReciprocalRoot, kOut16, kScale, kScalePerCell, kOddSymmetry,
                       raw("raw_2097", 2097, 32), raw("raw_2129", 2129, 32), raw("raw_2161", 2161, 15));
}
constexpr auto kTensorFields = FieldList::of(tensor_common().fields(), tensor_op::kMax, tensor_op::kMin,
                                             tensor_op::kConstant, tensor_op::kOutZero, tensor_op::kBias);
static_assert(kTensorFields.tiles(17 * kRowBits));

constexpr auto resample_fields() {
  using namespace tensor_op::resample;
  return FieldList::of(tensor_common().fields(), kXDim, raw("raw_1983", 1983, 1), kXNearest, raw("raw_1985", 1985, 4),
                       kXPhase, kXStep, raw("raw_2005", 2005, 8), kYDim, raw("raw_2015", 2015, 1), kYNearest,
                       raw("raw_2017", 2017, 4), kYPhase, kYStep, raw("raw_2037", 2037, 8), kPixelStride, kRowStride,
                       kSelect);
}
constexpr auto kResampleFields = resample_fields();
static_assert(kResampleFields.tiles(17 * kRowBits));

constexpr auto activation_fields() {
  FieldList list;
  list.add(tile::kPrefix);
  for (int segment = 0; segment < activation::kSegments; ++segment) {
    for (int power = 0; power < activation::kCoefficients; ++power) {
      list.add(activation::coefficient(segment, power));
    }
  }
  for (int k = 0; k < activation::kBreakpoints; ++k) list.add(activation::breakpoint(k));
  list.add(raw("raw_1566", 1566, 2, "always 3", 3));
  list.add(raw("raw_1568", 1568, 32));
  list.add(raw("raw_1600", 1600, 32));
  list.add(raw("raw_1632", 1632, 32));
  return FieldList::of(list.fields());
}
constexpr auto kActivationFields = activation_fields();
static_assert(kActivationFields.tiles(13 * kRowBits));

// ---- Data movement ----

constexpr auto kRingSendFields =
    FieldList::of(tile::kPrefix, ring::kSendIn, raw("raw_267", 267, 32), raw("raw_299", 299, 32),
                  raw("raw_331", 331, 3), raw("raw_334", 334, 1, kMaybeBaseFromRegister), ring::kSendProducers,
                  ring::kSendWatchers, ring::kChannel, ring::kToTiles, ring::kToScalar, raw("raw_484", 484, 28));
static_assert(kRingSendFields.tiles(4 * kRowBits));

constexpr auto kRingReceiveFields = FieldList::of(
    tile::kPrefix, ring::kReceiveOut, ring::kHeader, ring::kHeaderLevel, ring::kHeaderFirst, ring::kHeaderLines,
    ring::kHeaderLast, ring::kHeaderStep, raw("raw_334", 334, 1, kMaybeBaseFromRegister), ring::kSignalRingReadA,
    ring::kReceiveWatchers, raw("raw_462", 462, 32), raw("raw_494", 494, 18));
static_assert(kRingReceiveFields.tiles(4 * kRowBits));

constexpr auto kNarrowToWideFields =
    FieldList::of(tile::kPrefix, movers::kToWideNests, movers::kBaseFromRegister, movers::kSignalNarrowToWide,
                  movers::kToWideWatchers, movers::kTranspose, movers::kTransposeHalves, movers::kToWideLineLevel,
                  raw("raw_804", 804, 32), raw("raw_836", 836, 32), raw("raw_868", 868, 28));
static_assert(kNarrowToWideFields.tiles(7 * kRowBits));

constexpr auto kWideToNarrowFields = FieldList::of(
    tile::kPrefix, movers::kToNarrowNests, movers::kSkip, movers::kSkipLevel, movers::kSkipFirst, movers::kSkipWords,
    movers::kSkipLast, raw("raw_594", 594, 16, "by its position possibly a step, as ring_receive's header_step"),
    raw("raw_610", 610, 1, kMaybeBaseFromRegister), movers::kSignalWideToNarrow, movers::kToNarrowWatchers,
    movers::kToScaling, raw("raw_868", 868, 2, "by its position possibly transpose, as in opcode 13"),
    movers::kToNarrowLineLevel, raw("raw_873", 873, 23));
static_assert(kWideToNarrowFields.tiles(7 * kRowBits));

constexpr auto mesh_fields(Opcode opcode) {
  return FieldList::of(tile::kPrefix, mesh::kNests, raw("raw_472", 472, 1, kMaybeBaseFromRegister),
                       mesh::producers(opcode), mesh::kWatchers, mesh::kFill, mesh::kFillValue, raw("raw_760", 760, 8));
}
constexpr auto kMeshFields = mesh_fields(Opcode::kMeshSouth);
static_assert(kMeshFields.tiles(6 * kRowBits));

constexpr auto kInfeedFields =
    FieldList::of(common::kPrefix, host_queues::kInfeedBuffer, host_queues::kInfeedOut, host_queues::kSignalInfeed,
                  host_queues::kInfeedWatchers, raw("raw_216", 216, 32), raw("raw_248", 248, 8));
static_assert(kInfeedFields.tiles(2 * kRowBits));

constexpr auto kPopFields = FieldList::of(
    common::kPrefix, host_queues::kPopSource, host_queues::kPopIn, raw("raw_225", 225, 32), raw("raw_257", 257, 32),
    raw("raw_289", 289, 19), host_queues::kPopProducers, host_queues::kPopWatchers,
    raw("raw_392", 392, 4, "always 1", 1), raw("raw_396", 396, 13), host_queues::kPopTiles, raw("raw_425", 425, 9),
    host_queues::kPopLineWords, raw("raw_440", 440, 32), raw("raw_472", 472, 32), raw("raw_504", 504, 8));
static_assert(kPopFields.tiles(4 * kRowBits));

constexpr auto kOutfeedFields = FieldList::of(
    common::kPrefix, host_queues::kOutfeedOut, host_queues::kSignalOutfeed, host_queues::kOutfeedWatchers,
    raw("raw_215", 215, 7), host_queues::kOutfeedLineWords, host_queues::kOutfeedTarget, raw("raw_229", 229, 27));
static_assert(kOutfeedFields.tiles(2 * kRowBits));

// ---- Fences ----

constexpr auto tile_fence_fields() {
  using namespace tile_fence;
  return FieldList::of(common::kPrefix, tile_fence::kTiles, tile_fence::kSequence, kReset, kResetTo, kDrain,
                       kAwaitProducerA, kAwaitProducerB, kAwaitCount, kNotify, raw("raw_108", 108, 1), kLast,
                       raw("raw_111", 111, 17));
}
constexpr auto kTileFenceFields = tile_fence_fields();
static_assert(kTileFenceFields.tiles(kRowBits));

constexpr auto scalar_fence_fields() {
  using namespace scalar_fence;
  FieldList list =
      FieldList::of(common::kPrefix, scalar_fence::kTiles, raw("raw_28", 28, 4), kReset, kResetTo, kAwaitNotify,
                    raw("raw_58", 58, 15), kNotifyTiles, raw("raw_89", 89, 4), kDrain, raw("raw_251", 251, 5));
  for (int k = 0; k < kScalarCounterCount; ++k) {
    list.add(threshold(k));
    list.add(compare(k));
  }
  return FieldList::of(list.fields());
}
constexpr auto kScalarFenceFields = scalar_fence_fields();
static_assert(kScalarFenceFields.tiles(2 * kRowBits));

// ---- Scalar core ----

constexpr auto bundle_fields() {
  using namespace bundle;
  return FieldList::of(common::kPrefix, kLoad, kLoadDest, kLoadAddress, kStore, kStoreAddress, raw("raw_48", 48, 1),
                       kStoreSource, kAlu, kAluImmediate, kAluDest, kAluSource, kAluOperand, kMath, kMathDest,
                       kMathSource, raw("raw_115", 115, 13));
}
constexpr auto kBundleFields = bundle_fields();
static_assert(kBundleFields.tiles(kRowBits));

constexpr auto kHaltFields = FieldList::of(common::kPrefix, control::kHaltCode, raw("raw_28", 28, 32),
                                           raw("raw_60", 60, 32), raw("raw_92", 92, 32), raw("raw_124", 124, 4));
static_assert(kHaltFields.tiles(kRowBits));

constexpr auto kBranchFields =
    FieldList::of(common::kPrefix, control::kBranchPredicated, control::kBranchPredicate, control::kBranchSense,
                  control::kBranchOffset, raw("raw_32", 32, 1), control::kBranchRaw33, raw("raw_34", 34, 32),
                  raw("raw_66", 66, 32), raw("raw_98", 98, 30));
static_assert(kBranchFields.tiles(kRowBits));

constexpr auto kRepeatFields = FieldList::of(common::kPrefix, control::kRepeatCount, control::kRepeatRows,
                                             raw("raw_38", 38, 32), raw("raw_70", 70, 32), raw("raw_102", 102, 26));
static_assert(kRepeatFields.tiles(kRowBits));

constexpr auto frame_fields(const Field& length) {
  return FieldList::of(common::kPrefix, raw("raw_12", 12, 7), length, raw("raw_40", 40, 32), raw("raw_72", 72, 32),
                       raw("raw_104", 104, 24));
}
constexpr auto kStartFields = frame_fields(control::kStartLength);
constexpr auto kEndFields = frame_fields(control::kEndLength);
static_assert(kStartFields.tiles(kRowBits) && kEndFields.tiles(kRowBits));

// ---- Opcode -> format ----

constexpr std::array kMeshSouthProducers = mesh::producers(Opcode::kMeshSouth);
constexpr std::array kMeshWestProducers = mesh::producers(Opcode::kMeshWest);
constexpr std::array kMeshNorthProducers = mesh::producers(Opcode::kMeshNorth);
constexpr std::array kMeshEastProducers = mesh::producers(Opcode::kMeshEast);

template <typename T>
constexpr std::span<const T> one(const T& item) {
  return {&item, 1};
}

constexpr Format kFormats[] = {
    {Opcode::kMultiplyAdd, kTensorFields.fields(), tensor_op::kNests, tensor_op::kWatchers, tensor_op::kProducers},
    {Opcode::kMaximum, kTensorFields.fields(), tensor_op::kNests, tensor_op::kWatchers, tensor_op::kProducers},
    {Opcode::kSum, kTensorFields.fields(), tensor_op::kNests, tensor_op::kWatchers, tensor_op::kProducers},
    {Opcode::kResample, kResampleFields.fields(), tensor_op::kNests, tensor_op::kWatchers, tensor_op::kProducers},
    {Opcode::kRingSend, kRingSendFields.fields(), one(ring::kSendIn), ring::kSendWatchers, ring::kSendProducers},
    {Opcode::kRingReceiveA, kRingReceiveFields.fields(), one(ring::kReceiveOut), ring::kReceiveWatchers,
     one(ring::kSignalRingReadA)},
    {Opcode::kRingReceiveB, kRingReceiveFields.fields(), one(ring::kReceiveOut), ring::kReceiveWatchers,
     one(ring::kSignalRingReadB)},
    {Opcode::kNarrowToWide, kNarrowToWideFields.fields(), movers::kToWideNests, movers::kToWideWatchers,
     one(movers::kSignalNarrowToWide)},
    {Opcode::kWideToNarrow, kWideToNarrowFields.fields(), movers::kToNarrowNests, movers::kToNarrowWatchers,
     one(movers::kSignalWideToNarrow)},
    {Opcode::kMeshSouth, kMeshFields.fields(), mesh::kNests, mesh::kWatchers, kMeshSouthProducers},
    {Opcode::kMeshWest, kMeshFields.fields(), mesh::kNests, mesh::kWatchers, kMeshWestProducers},
    {Opcode::kMeshNorth, kMeshFields.fields(), mesh::kNests, mesh::kWatchers, kMeshNorthProducers},
    {Opcode::kMeshEast, kMeshFields.fields(), mesh::kNests, mesh::kWatchers, kMeshEastProducers},
    {Opcode::kLoadActivation, kActivationFields.fields(), {}, {}, {}},
    {Opcode::kTileFence, kTileFenceFields.fields(), {}, {}, {}},
    {Opcode::kScalar, kBundleFields.fields(), {}, {}, {}},
    {Opcode::kHalt, kHaltFields.fields(), {}, {}, {}},
    {Opcode::kBranch, kBranchFields.fields(), {}, {}, {}},
    {Opcode::kRepeat, kRepeatFields.fields(), {}, {}, {}},
    {Opcode::kScalarFence, kScalarFenceFields.fields(), {}, {}, {}},
    {Opcode::kInfeed, kInfeedFields.fields(), one(host_queues::kInfeedOut), host_queues::kInfeedWatchers,
     one(host_queues::kSignalInfeed)},
    {Opcode::kPop, kPopFields.fields(), one(host_queues::kPopIn), host_queues::kPopWatchers,
     host_queues::kPopProducers},
    {Opcode::kOutfeed, kOutfeedFields.fields(), one(host_queues::kOutfeedOut), host_queues::kOutfeedWatchers,
     one(host_queues::kSignalOutfeed)},
    {Opcode::kStart, kStartFields.fields(), {}, {}, {}},
    {Opcode::kEnd, kEndFields.fields(), {}, {}, {}},
};

constexpr auto make_index() {
  std::array<std::uint8_t, 64> index{};
  for (std::size_t i = 0; i < std::size(kFormats); ++i) {
    index[at(kFormats[i].opcode)] = static_cast<std::uint8_t>(i);
  }
  return index;
}
constexpr auto kIndex = make_index();

}  // namespace

const Format& format(Opcode opcode) { return kFormats[kIndex[static_cast<std::size_t>(opcode) & 63]]; }

const Field* find_field(Opcode opcode, std::string_view full_name) {
  const std::size_t dot = full_name.find('.');
  const std::string_view group = dot == std::string_view::npos ? std::string_view() : full_name.substr(0, dot);
  const std::string_view name = dot == std::string_view::npos ? full_name : full_name.substr(dot + 1);
  for (const Field& field : fields(opcode)) {
    if (field.name == name && field.group == group) return &field;
  }
  return nullptr;
}

const Field* sequence_field(Opcode opcode) {
  if (opcode == Opcode::kTileFence) return &tile_fence::kSequence;
  return is_tile_instruction(opcode) ? &tile::kSequence : nullptr;
}

AddressUnitName address_unit_name(AddressUnit unit) {
  switch (unit) {
    case AddressUnit::kNarrowByte:
      return {"narrow", "byte"};
    case AddressUnit::kNarrowWord:
      return {"narrow", "word"};
    case AddressUnit::kWideLine:
      return {"wide", "line"};
    case AddressUnit::kWideQuarter:
      return {"wide", "quarter"};
    case AddressUnit::kBufferUnit:
      return {"buffer", "unit"};
    case AddressUnit::kNone:
      break;
  }
  return {"", ""};
}

}  // namespace reef::isa
