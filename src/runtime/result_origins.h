// SPDX-License-Identifier: Apache-2.0
// Which instruction computed each byte that a program returned: the last tensor instruction that it is a result of.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "chip/machine.h"
#include "execute/device/tag_follower.h"
#include "execute/device/tensor_walk.h"
#include "formats/darwinn/package.h"

namespace reef::runtime {

class ResultOrigins : public device::TagFollower {
 public:
  // By byte of output `output` as TFLite holds it: an instruction's number, -1 where none computed it. After a run of
  // the package whose layer this is, with `inputs` input layers.
  std::vector<std::int64_t> origins(const darwinn::Layer& layer, std::size_t inputs, std::size_t output) const;
  // "row 228 (multiply_add)".
  std::string describe(std::int64_t instruction) const;

  void begins(const device::Program& program, const device::Chip& chip) override;
  void started(const device::Tile* tile, int unit, const device::Running& run) override;
  void computed(const device::TensorMove& move) override;

 private:
  device::Tag tag_of_host_byte(const device::Program&, std::size_t, std::uint64_t) const override {
    return device::kNoTag;
  }
  std::array<device::TensorWalk, chip::kTiles> works_;
};

}  // namespace reef::runtime
