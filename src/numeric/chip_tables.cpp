// SPDX-License-Identifier: Apache-2.0
// Each number is the shortest decimal that gives the float32 found.
#include "numeric/chip_tables.h"

namespace reef::numeric {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr float kLogisticUnits = 256;
constexpr ChipTable kLogistic = {{{
                                     {32.082626f, 13.857367f, 2.2672386f, 0.16598408f, 0.0045760125f},
                                     {132.63097f, 85.70315f, 21.859444f, 2.58f, 0.117780134f},
                                     {135.45853f, 82.20974f, 16.430658f, 0.5211197f, -0.12966941f},
                                     {128.00162f, 63.97225f, -0.32965082f, -6.311217f, -1.1621366f},
                                     {128.0028f, 63.92499f, 0.47345105f, -6.475306f, 1.2242033f},
                                     {110.89018f, 98.711784f, -26.890657f, 3.4358993f, -0.17184f},
                                     {195.84106f, 29.966818f, -5.7082276f, 0.49032992f, -0.015962048f},
                                     {244.7982f, 4.166754f, -0.58794147f, 0.037229694f, -0.00089129084f},
                                 }},
                                 {-5.639855f, -2.965404f, -1.34088f, 0.08613962f, 1.805656f, 4.8011794f, 8.472422f}};

constexpr float kTanhUnits = 128;
constexpr ChipTable kTanh = {{{
                                 {-7.993606e-15f, 127.98251f, 0.45315793f, -46.508804f, 13.372948f},
                                 {-0.105093084f, 128.57716f, 0.21468268f, -50.250145f, 19.120028f},
                                 {-5.8957443f, 157.298f, -53.851326f, -4.4306173f, 4.3637886f},
                                 {-19.273876f, 202.97697f, -112.80416f, 29.646051f, -3.0772667f},
                                 {11.240588f, 143.74411f, -69.48288f, 15.49611f, -1.3356291f},
                                 {62.19021f, 67.9343f, -27.009838f, 4.8773427f, -0.3361199f},
                                 {106.0832f, 18.02872f, -5.638549f, 0.79260814f, -0.042163983f},
                                 {125.10622f, 1.7940406f, -0.41926396f, 0.043725662f, -0.0017155106f},
                             }},
                             {0.3597914f, 0.78073186f, 1.1744751f, 2.0300643f, 2.6845171f, 3.5472608f, 4.83642f}};

constexpr ChipTable kExp = {{{
                                {1839.6675f, 630.2154f, 81.34308f, 4.680994f, 0.10120727f},
                                {13928.352f, 6826.62f, 1282.0364f, 108.85453f, 3.513191f},
                                {33057.742f, 20768.045f, 5117.174f, 580.746f, 25.420813f},
                                {50335.938f, 38372.758f, 11888.197f, 1745.7169f, 101.05772f},
                                {60827.97f, 53701.17f, 20356.889f, 3842.9094f, 297.454f},
                                {64842.34f, 62677.58f, 27987.324f, 6766.296f, 723.3006f},
                                {65526.38f, 65428.203f, 32277.033f, 9857.563f, 1593.3411f},
                                {65535.0f, 65534.95f, 32765.309f, 10888.121f, 2503.7742f},
                            }},
                            {-7.986872f, -5.480507f, -3.9326499f, -2.6985426f, -1.757619f, -0.9169553f, -0.1742215f}};

constexpr ChipTable kRoot = {{{
                                 {109663.41f, -135128.84f, 112302.266f, -49342.207f, 8845.37f},
                                 {99786.16f, -101767.54f, 69965.35f, -25417.17f, 3765.479f},
                                 {89722.984f, -73979.2f, 41119.766f, -12077.087f, 1446.5148f},
                                 {80423.64f, -53271.863f, 23783.623f, -5609.964f, 539.5391f},
                                 {71984.555f, -38202.617f, 13666.3f, -2583.1428f, 199.0968f},
                                 {64750.547f, -27807.225f, 8050.912f, -1231.8031f, 76.864265f},
                                 {59222.95f, -21285.252f, 5160.387f, -661.5083f, 34.603092f},
                                 {59222.95f, -21285.252f, 5160.387f, -661.5083f, 34.603092f},
                             }},
                             {1.1744492f, 1.4527012f, 1.7968035f, 2.2504222f, 2.7994583f, 3.4374754f, kInfinity}};

// The division by `units`, a power of two, is exact.
ChipTable scaled(ChipTable table, float units, float output_scale) {
  const float inverse = 1.0f / output_scale;
  for (auto& segment : table.segments) {
    for (float& coefficient : segment) coefficient = coefficient / units * inverse;
  }
  return table;
}

}  // namespace

float ChipFunction::at(float x) const {
  if (is_reciprocal_root) return chip_reciprocal_root(table, x);
  const float clamped = std::min(std::max(x, min), max);
  if (!is_odd) return table.at(clamped);
  return clamped == 0 ? 0.0f : std::copysign(1.0f, clamped) * table.at(std::fabs(clamped));
}

ChipFunction chip_logistic(float output_scale) {
  return {scaled(kLogistic, kLogisticUnits, output_scale), -10.396732f, 10.396732f, false};
}

ChipFunction chip_tanh(float output_scale) {
  return {scaled(kTanh, kTanhUnits, output_scale), -6.874807f, 6.874807f, true};
}

ChipFunction chip_square(float output_scale) {
  ChipFunction function{{}, -kInfinity, kInfinity};
  function.table.breaks.fill(kInfinity);
  for (auto& segment : function.table.segments) segment = {0, 0, 1.0f / output_scale, 0, 0};
  return function;
}

ChipFunction chip_exp() { return {kExp, -13.038098f, 0.0f, false}; }

ChipTable chip_root_table() { return kRoot; }

ChipFunction chip_inverse_root(float one) {
  ChipFunction function{kRoot, -kInfinity, kInfinity, false, true};
  for (auto& segment : function.table.segments) {
    for (float& coefficient : segment) coefficient = coefficient / kChipRootOne * one;
  }
  return function;
}

}  // namespace reef::numeric
