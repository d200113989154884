// SPDX-License-Identifier: Apache-2.0
// Opcodes 01, 02, 03 and 05: the instructions of the tensor unit.
//
// 01, 02 and 03 share one layout. 05 (resample) gives bits 1981..2092 another meaning; its own fields are in
// namespace resample. Arithmetic of 01: accumulate (int32) + constant + bias line -> float32, times scale -> clamp ->
// activation table -> round half to even -> + output zero point -> saturate to 8 or 16 bits.
#pragma once

#include "isa/layout.h"

namespace reef::isa::tensor_op {

using layout::field;
using layout::flag;
using layout::plus_one;
using layout::with_usual;
using layout::with_values;

enum NestIndex : std::uint8_t { kLoopsNest, kInNest, kOutNest, kParamNest, kPsumNest };

constexpr NestFields make_loops() {
  layout::Cursor at{62, "loops"};
  NestFields nest;
  nest.name = "loops";
  nest.dims = 8;
  nest.has_addresses = false;
  nest.has_buffer = false;
  for (int k = 0; k < 8; ++k) {
    nest.limit[k] =
        at.next(layout::kLimitNames[k], 14, Kind::kUnsigned, "steps - 1",
                "last index of this dimension of the step loop; dimension 0 is innermost", Evidence::kExecuted);
  }
  nest.clip_limit =
      at.next("clip_limit", 14, Kind::kUnsigned, "steps - 1",
              "clip: last index of dimension 0 while the clip dimension is at its last index", Evidence::kExecuted);
  nest.clip_dim =
      at.next("clip_dim", 3, Kind::kUnsigned, "dimension", "clip: which dimension; 0 is no clip", Evidence::kExecuted);
  return nest;
}

// Every nest makes as many steps as `loops`; `out` makes as many as there are words of results.
inline constexpr NestFields kLoops = make_loops();
inline constexpr NestFields kIn = layout::nest({"in", AddressUnit::kNarrowByte, 191, 8, 18, 19, 18, 3});
inline constexpr NestFields kOut = layout::nest({"out", AddressUnit::kNarrowByte, 574, 8, 18, 19, 18, 3});
inline constexpr NestFields kParam = layout::nest({"param", AddressUnit::kWideQuarter, 957, 8, 14, 15, 14, 3});
inline constexpr NestFields kPsum =
    layout::nest({"psum", AddressUnit::kWideQuarter, 1260, 8, 14, 15, 14, 3, false, 18});
inline constexpr std::array kNests = {kLoops, kIn, kOut, kParam, kPsum};

// One result is made per group of steps. Which steps form a group, in this order of precedence: the innermost dims of
// psum named by psum_group; those named by psum_group_2 (0: every step by itself); the loop dimensions in reduce_dims.
inline constexpr Field kPsumGroupLevel =
    field("psum_group_level", 1514, 5, Kind::kUnsigned, "level",
          "so many inner dimensions of psum are summed into one result, if psum_group is set", Evidence::kExecuted);
inline constexpr Field kPsumGroup =
    flag("psum_group", 1519,
         "psum_group_level decides what is summed (the bits also read as a double buffer of psum one line apart)",
         Evidence::kExecuted);
inline constexpr Field kPsumGroup2Level =
    field("psum_group_2_level", 1520, 5, Kind::kUnsigned, "level",
          "so many inner dimensions of psum are summed into one result, if psum_group_2 is set", Evidence::kExecuted);
inline constexpr Field kPsumGroup2 = flag(
    "psum_group_2", 1525, "psum_group_2_level decides what is summed, if psum_group is not set", Evidence::kExecuted);

inline constexpr ProducerFields kSignalAvdata =
    layout::producer({"signal_avdata", 1563, 4, false, static_cast<std::uint8_t>(TileCounter::kAvdata), kOutNest});
inline constexpr ProducerFields kSignalParameters = layout::producer(
    {"signal_parameters", 1568, 4, false, static_cast<std::uint8_t>(TileCounter::kParameters), kParamNest});
inline constexpr ProducerFields kSignalPartialSums =
    layout::producer({"signal_partial_sums", 1573, 4, false, static_cast<std::uint8_t>(TileCounter::kPartialSums),
                      kPsumNest, Evidence::kInferred});
inline constexpr std::array kProducers = {kSignalAvdata, kSignalParameters, kSignalPartialSums};

inline constexpr auto kWatchers = layout::watchers<6>({1578, 5, 3, false, false, {kLoopsNest, kLoopsNest}});

inline constexpr Field kStaticParams =
    flag("static_params", 1843,
         "the parameters are weights, not data written by narrow_to_wide; has no effect on any program that was "
         "emulated",
         Evidence::kObserved);
inline constexpr Field kAccumulateInside =
    flag("accumulate_inside", 1845, "1: the cells keep the partial sums; 0: partial sums live in wide memory at psum",
         Evidence::kExecuted);
inline constexpr Field kIn16 = flag("in_16_bit", 1846, "inputs are 16-bit elements", Evidence::kExecuted);
inline constexpr Field kParam16 = flag("param_16_bit", 1847, "parameters are 16-bit elements", Evidence::kExecuted);
inline constexpr Field kLanesOff =
    field("lanes_off", 1850, 3, Kind::kUnsigned, "lanes",
          "byte lanes 1, 2 and 3 that do not take part (bits 0, 1, 2). Products per cell and step: 8-bit operands 4 "
          "(0) or 1 (7); one 16-bit operand 2 (0) or 1 (6); two 16-bit operands 1",
          Evidence::kExecuted);
inline constexpr Field kParamZeroLine =
    flag("param_zero_per_cell", 1853, "the parameter zero points come from a line of int32, one per cell",
         Evidence::kExecuted);
inline constexpr Field kParamZero =
    field("param_zero", 1854, 16, Kind::kUnsigned, "", "parameter zero point", Evidence::kExecuted);
inline constexpr Field kInZero =
    field("in_zero", 1870, 16, Kind::kUnsigned, "", "input zero point", Evidence::kExecuted);
inline constexpr Field kParamZeroLast = field("param_zero_last", 1886, 12, Kind::kUnsigned, "line",
                                              "zero point line of the last buffer", Evidence::kExecuted);
inline constexpr Field kParamZeroStep = field("param_zero_step", 1898, 12, Kind::kUnsigned, "line",
                                              "distance of the zero point lines of the buffers", Evidence::kObserved);
inline constexpr Field kParamZeroFirst = field("param_zero_first", 1910, 12, Kind::kUnsigned, "line",
                                               "zero point line of the first buffer", Evidence::kExecuted);
inline constexpr Field kScalingLevel =
    field("scaling_level", 1923, 3, Kind::kUnsigned, "level",
          "after each pass of so many loop dimensions the other half of the scaling memory and the other zero point "
          "line are used",
          Evidence::kExecuted);
inline constexpr Field kReduceDims =
    with_values(field("reduce_dims", 1926, 8, Kind::kMask, "dimensions",
                      "loop dimensions that are summed into one result, unless psum_group or psum_group_2 is set",
                      Evidence::kExecuted),
                layout::kDimNames);
inline constexpr Field kLastCells = plus_one(field("last_cells", 1934, 6, Kind::kUnsigned, "cells",
                                                   "cells in use in the last block of channels", Evidence::kObserved));
inline constexpr Field kCells = plus_one(
    field("cells", 1940, 6, Kind::kUnsigned, "cells", "cells in use, each makes one channel", Evidence::kExecuted));
inline constexpr Field kActivation =
    flag("activation", 1946, "the activation table is applied to the scaled, clamped value", Evidence::kExecuted);
inline constexpr Field kReciprocalRoot =
    flag("reciprocal_root", 1947, "activation of x = m * 4^k with m in [1, 4): the table's value at m, times 2^-k",
         Evidence::kExecuted);
inline constexpr Field kOut16 = flag("out_16_bit", 1948, "results are 16-bit elements", Evidence::kExecuted);
inline constexpr Field kScale =
    field("scale", 1949, 32, Kind::kFloat32, "", "factor of all cells, unless scale_per_cell", Evidence::kExecuted);
inline constexpr Field kMax =
    field("max", 1981, 32, Kind::kFloat32, "",
          "upper clamp of the scaled value before the zero point is added, or of the activation's argument",
          Evidence::kExecuted);
inline constexpr Field kMin = field("min", 2013, 32, Kind::kFloat32, "", "lower clamp, likewise", Evidence::kExecuted);
inline constexpr Field kConstant =
    field("constant", 2045, 32, Kind::kSigned, "", "added to every accumulated value", Evidence::kExecuted);
inline constexpr Field kOutZero =
    field("out_zero", 2077, 16, Kind::kUnsigned, "", "output zero point", Evidence::kExecuted);
inline constexpr Field kBias =
    flag("bias", 2093, "adds the line of int32 biases in scaling memory, one per cell", Evidence::kExecuted);
inline constexpr Field kScalePerCell =
    flag("scale_per_cell", 2094, "the factors come from the line of float32 in scaling memory, one per cell",
         Evidence::kExecuted);
inline constexpr Field kOddSymmetry =
    field("odd_symmetry", 2095, 2, Kind::kUnsigned, "",
          "3: the activation is odd, sign(x) * table(magnitude of x); other values than 0 and 3 do not occur",
          Evidence::kExecuted);

// Opcode 05 only.
namespace resample {
constexpr Field axis_field(std::string_view group, std::string_view name, int bit, int width, Kind kind,
                           std::string_view unit, std::string_view meaning, Evidence evidence) {
  return layout::Cursor{bit, group}.next(name, width, kind, unit, meaning, evidence);
}
constexpr Field axis_dim(std::string_view group, int bit) {
  return axis_field(group, "dim", bit, 2, Kind::kUnsigned, "dimension", "loop dimension of the output along this axis",
                    Evidence::kExecuted);
}
constexpr Field axis_nearest(std::string_view group, int bit) {
  return axis_field(group, "nearest", bit + 3, 1, Kind::kFlag, "", "1: nearest neighbour, 0: bilinear",
                    Evidence::kExecuted);
}
// Sixteen bits hold step and phase. Seen: 0x0200 to 0x0203 (factor 2), 0x0100 (4) and 0x0080 (8).
constexpr Field axis_phase(std::string_view group, int bit) {
  return axis_field(
      group, "phase", bit + 8, 3, Kind::kUnsigned, "1 / (2 * factor) pixels",
      "source coordinate of output 0. The unit is executed for factor 2; with other factors only 0 occurs",
      Evidence::kExecuted);
}
constexpr Field axis_step(std::string_view group, int bit) {
  return axis_field(group, "step", bit + 11, 13, Kind::kUnsigned, "1/128 pixel",
                    "how much further the source coordinate of the next output is: 64, 32 and 16 enlarge by 2, 4 and 8 "
                    "(together with the phase a number of 16 bits in 1/1024 pixel)",
                    Evidence::kExecuted);
}
inline constexpr std::int32_t kStepsPerPixel = 128;
inline constexpr Field kXDim = axis_dim("x", 1981);
inline constexpr Field kXNearest = axis_nearest("x", 1981);
inline constexpr Field kXPhase = axis_phase("x", 1981);
inline constexpr Field kXStep = axis_step("x", 1981);
inline constexpr Field kYDim = axis_dim("y", 2013);
inline constexpr Field kYNearest = axis_nearest("y", 2013);
inline constexpr Field kYPhase = axis_phase("y", 2013);
inline constexpr Field kYStep = axis_step("y", 2013);
inline constexpr Field kPixelStride =
    field("pixel_stride", 2045, 32, Kind::kSigned, "B", "distance of source pixels along x", Evidence::kExecuted);
inline constexpr Field kRowStride =
    field("row_stride", 2077, 16, Kind::kUnsigned, "B", "distance of source rows", Evidence::kExecuted);
inline constexpr Field kSelect = flag("select", 2093, "1 with nearest, 0 with bilinear", Evidence::kObserved);
}  // namespace resample

}  // namespace reef::isa::tensor_op
