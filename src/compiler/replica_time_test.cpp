// SPDX-License-Identifier: Apache-2.0
#include "compiler/replica_time.h"

#include <gtest/gtest.h>

namespace reef::compiler {
namespace {

const chip::LinkProfile& usb() { return *chip::find_link("usb3"); }
const chip::LinkProfile& pcie() { return *chip::find_link("pcie"); }

// 1 ms on the chip, next to nothing of all else.
constexpr StageTime kComputing{.host_us = 1, .chip_us = 1000, .in_bytes = 100, .out_bytes = 10};

double per_second(const StageTime& stage, int replicas, const chip::LinkProfile& link) {
  return simulate_replicas({stage}, replicas, link, usual_host(link)).per_second;
}

TEST(ReplicaTime, ChipsThatComputeAddUp) {
  for (const int replicas : {1, 2, 4, 8})
    EXPECT_NEAR(per_second(kComputing, replicas, usb()), 1000.0 * replicas, 10.0 * replicas);
}

// Bytes in alone: one stick has its link's speed, many have the controller's.
TEST(ReplicaTime, ControllerIsShared) {
  const StageTime streaming{.host_us = 1, .chip_us = 1, .in_bytes = 4.5e6, .out_bytes = 10};
  const double alone = usb().in_bytes_per_second / 4.5e6;
  EXPECT_NEAR(per_second(streaming, 1, usb()), alone, 0.02 * alone);
  EXPECT_NEAR(per_second(streaming, 4, usb()), 100, 2) << "450 MB/s in pieces of 4.5 MB";
  EXPECT_NEAR(per_second(streaming, 8, usb()), 100, 2);
  const double card = pcie().in_bytes_per_second / 4.5e6;
  EXPECT_NEAR(per_second(streaming, 8, pcie()), 8 * card, 0.1 * card) << "cards have lanes of their own";
}

TEST(ReplicaTime, CoresAreShared) {
  const StageTime busy{.host_us = 1000, .chip_us = 100, .in_bytes = 10, .out_bytes = 10};
  for (const int replicas : {4, 8}) {
    const Throughput result = simulate_replicas({busy}, replicas, usb(), usual_host(usb()));
    EXPECT_NEAR(result.per_second, 4000, 40) << "four cores, a millisecond each";
    EXPECT_GT(result.host_share, 0.98);
  }
}

// A line of two equal halves does as much as two copies, a line of unequal ones as much as its slower half.
TEST(ReplicaTime, SlowestSegmentDecides) {
  const StageTime half{.host_us = 1, .chip_us = 500, .in_bytes = 100, .out_bytes = 10};
  const StageTime longer{.host_us = 1, .chip_us = 700, .in_bytes = 100, .out_bytes = 10};
  EXPECT_NEAR(simulate_replicas({half, half}, 1, usb(), usual_host(usb())).per_second, 2000, 30);
  const Throughput uneven = simulate_replicas({half, longer}, 2, usb(), usual_host(usb()));
  EXPECT_NEAR(uneven.per_second, 2 * 1e6 / 700, 50);
  EXPECT_EQ(uneven.devices, 4);
  EXPECT_LE(uneven.p50_ms, uneven.p99_ms);
}

TEST(ReplicaTime, LatencyOfOneAloneIsItsParts) {
  const StageTime stage{.host_us = 300, .chip_us = 2000, .in_bytes = 423000, .out_bytes = 57000};
  // A second sample is prepared meanwhile and waits for the chip: its latency is two turns of the chip, less nothing.
  const Throughput one = simulate_replicas({stage}, 1, usb(), usual_host(usb()));
  const double turn = stage.alone_us(usb()) - stage.host_us;
  EXPECT_NEAR(one.per_second, 1e6 / turn, 1e6 / turn * 0.01);
  EXPECT_NEAR(one.p50_ms, 2 * turn / 1e3, 0.1);
}

}  // namespace
}  // namespace reef::compiler
