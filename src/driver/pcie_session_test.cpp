// SPDX-License-Identifier: Apache-2.0
#include "driver/pcie_session.h"

#include <gtest/gtest.h>

#include "driver/virtual_card.h"
#include "driver_packages.h"

namespace reef::driver {
namespace {

using testing::echo_input;
using testing::echo_output;
using testing::echo_package;

std::shared_ptr<const PcieModel> must_load(darwinn::Package package) {
  auto model = PcieModel::load(std::move(package));
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : nullptr;
}

void expect_echo(PcieSession& session, const std::shared_ptr<const PcieModel>& model, unsigned seed,
                 unsigned parameter_seed = 1) {
  const std::vector<std::uint8_t> input = echo_input(seed);
  const auto outputs = session.run(model, {input});
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_EQ((*outputs)[0], echo_output(input, parameter_seed));
}

TEST(PcieSession, Runs) {
  VirtualCard card;
  {
    const auto session = PcieSession::open(card, {});
    ASSERT_TRUE(session.ok()) << session.status().message();
    const auto model = must_load(echo_package()), chunks = must_load(echo_package(8, 512, 2, 2));
    for (unsigned seed = 0; seed < 3; ++seed) expect_echo(**session, model, seed);
    EXPECT_EQ((*session)->parameter_loads(), 1);
    expect_echo(**session, chunks, 5, 2);
    EXPECT_EQ((*session)->parameter_loads(), 2);
    EXPECT_EQ(card.mapped_pages(), 2u) << "only the queue stays mapped";
    EXPECT_TRUE((*session)->notes().empty());
    ASSERT_TRUE((*session)->close().ok());
    EXPECT_EQ(card.mapped_pages(), 0u);
    expect_echo(**session, model, 7);
    EXPECT_EQ((*session)->opened(), 2);
  }
  EXPECT_EQ(card.diagnosis(), "");
}

// The queue has 256 entries, the count of interrupts 16 bits, addresses 4 GiB.
TEST(PcieSession, QueueAndAddressesWrap) {
  VirtualCard card;
  const auto session = PcieSession::open(card, {});
  ASSERT_TRUE(session.ok());
  const auto model = must_load(echo_package());
  for (unsigned i = 0; i < 300; ++i) expect_echo(**session, model, i);
  EXPECT_TRUE((*session)->notes().empty());
}

// It needs no list of transfers.
TEST(PcieSession, RunsProgramsWithoutHints) {
  darwinn::Package package = echo_package(7, 4, 1, 2);
  for (darwinn::Executable& executable : package.executables) executable.dma_hints.reset();
  VirtualCard card;
  const auto session = PcieSession::open(card, {});
  ASSERT_TRUE(session.ok());
  expect_echo(**session, must_load(std::move(package)), 1);
}

TEST(PcieSession, ACardInUseIsAnError) {
  VirtualCard card;
  const auto first = PcieSession::open(card, {});
  ASSERT_TRUE(first.ok());
  const auto second = PcieSession::open(card, {});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("in use"), std::string::npos);
}

class PcieFaults : public ::testing::TestWithParam<int> {};

TEST_P(PcieFaults, AreSurvivedAtEveryCall) {
  const auto fault = static_cast<CardFault>(GetParam());
  const auto model = must_load(echo_package());
  std::int64_t begin = 0, end = 0;
  {
    VirtualCard card;
    const auto session = PcieSession::open(card, {});
    begin = card.calls();
    expect_echo(**session, model, 1);
    expect_echo(**session, model, 2);
    ASSERT_TRUE((*session)->close().ok());
    end = card.calls();
  }
  int recoveries = 0;
  // What happens while a card is opened for the first time is the caller's to see.
  for (std::int64_t at = begin; at < end; ++at) {
    VirtualCard card;
    const auto session = PcieSession::open(card, {});
    ASSERT_TRUE(session.ok());
    card.inject(fault, at);
    for (const unsigned seed : {1u, 2u}) {
      const std::vector<std::uint8_t> input = echo_input(seed);
      const auto outputs = (*session)->run(model, {input});
      ASSERT_TRUE(outputs.ok()) << name_of(fault) << " at call " << at << ": " << outputs.status().message();
      ASSERT_EQ((*outputs)[0], echo_output(input, 1)) << name_of(fault) << " at call " << at;
    }
    (void)(*session)->close();
    expect_echo(**session, model, 3);
    if (!(*session)->notes().empty()) ++recoveries;
    EXPECT_LT(card.now(), Milliseconds(60000));
  }
  fmt::print("{}: {} calls, {} sessions recovered\n", name_of(fault), end - begin, recoveries);
  EXPECT_GT(recoveries, 0);
}

TEST_P(PcieFaults, WhileOpeningAreErrorsOrHarmless) {
  const auto fault = static_cast<CardFault>(GetParam());
  std::int64_t calls = 0;
  {
    VirtualCard card;
    const auto session = PcieSession::open(card, {});
    calls = card.calls();
  }
  const auto model = must_load(echo_package());
  for (std::int64_t at = 0; at < calls; ++at) {
    VirtualCard card;
    card.inject(fault, at);
    auto session = PcieSession::open(card, {});
    if (!session.ok()) session = PcieSession::open(card, {});
    ASSERT_TRUE(session.ok()) << name_of(fault) << " at call " << at << ": " << session.status().message();
    expect_echo(**session, model, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PcieFaults, ::testing::Range(0, kCardFaults), [](const auto& info) {
  std::string name(name_of(static_cast<CardFault>(info.param)));
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

}  // namespace
}  // namespace reef::driver
