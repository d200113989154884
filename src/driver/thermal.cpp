// SPDX-License-Identifier: Apache-2.0
#include "driver/thermal.h"

#include <array>

namespace reef::driver {
namespace {

constexpr std::uint64_t kAllOnes = 0x3ff;                // of the field: what a lost link reads
constexpr std::uint64_t kHundredDegrees = 265;           // raw
constexpr std::array<double, 3> kLimits = {85, 90, 95};  // degrees Celsius, by divider 1..3

double celsius_of(std::uint64_t raw) { return ((662.0 - static_cast<double>(raw)) * 250 + 550) / 1000; }

}  // namespace

Status start_thermal_sensor(RegisterPort& port) {
  REEF_RETURN_IF_ERROR(port.change(field::kWarningThreshold, kHundredDegrees));
  REEF_RETURN_IF_ERROR(port.change(field::kShutdownThreshold, kHundredDegrees));
  REEF_RETURN_IF_ERROR(port.change(field::kShutdownEnable, 1));
  REEF_RETURN_IF_ERROR(port.change(field::kSensorClock, 1));
  REEF_RETURN_IF_ERROR(port.change(field::kSensorOn, 7));
  port.sleep(Milliseconds(1));  // at least 100 microseconds
  return port.change(field::kSensorStart, 1);
}

Result<std::optional<double>> read_temperature(RegisterPort& port) {
  REEF_ASSIGN_OR_RETURN(const std::uint64_t value, port.read(reg::kThermalValue));
  const std::uint64_t raw = field::kTemperature.get(value);
  if (raw == kAllOnes) return make_error(StatusCode::kIoError, "the card is lost: its registers read all ones");
  if (raw == 0) return std::optional<double>();
  return std::optional<double>(celsius_of(raw));
}

int divider_for(double celsius) {
  int divider = 0;
  for (const double limit : kLimits) divider += celsius >= limit ? 1 : 0;
  return divider;
}

}  // namespace reef::driver
