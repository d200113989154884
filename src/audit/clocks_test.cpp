// SPDX-License-Identifier: Apache-2.0
#include "audit/clocks.h"
#include "base/at.h"

#include <random>

#include <gtest/gtest.h>

namespace reef::audit {
namespace {

std::vector<Agent> all_agents() {
  std::vector<Agent> agents;
  agents.reserve(kAgents);
  for (int i = 0; i < kAgents; ++i) agents.emplace_back(i, agents.data());
  return agents;
}

TEST(Clocks, WhoLearnsOfAMomentLearnsWhatWasKnownThenAndNoMore) {
  std::vector<Agent> agents = all_agents();
  Agent &a = agents[0], &b = agents[1], &c = agents[2], &d = agents[3];
  a.tick(5);
  b.learn(a);
  b.tick();
  const Stamp early = b.stamp();
  d.tick(7);
  b.learn(d);
  c.learn(early);
  EXPECT_TRUE(c.knows(0, 5));
  EXPECT_FALSE(c.knows(0, 6));
  EXPECT_TRUE(c.knows(1, 1));
  EXPECT_FALSE(c.knows(3, 1)) << "b learned of it after that moment";
  b.tick();
  c.learn(b);
  EXPECT_TRUE(c.knows(3, 7));
  EXPECT_FALSE(c.knows(3, 8));
}

// Against clocks that are copied whole with every stamp.
TEST(Clocks, JournalsSayTheSameAsCopies) {
  struct Told {
    Stamp stamp;
    Clocks knew;
  };
  std::vector<Agent> agents = all_agents();
  std::vector<Clocks> known(kAgents);
  std::vector<Told> told;
  std::mt19937 random(7);
  for (int step = 0; step < 60'000; ++step) {
    const auto i = random() % (step % 3 == 0 ? kAgents : 9u);
    Agent& agent = agents[i];
    if (random() % 2 == 0 || told.empty()) {
      const Clock steps = 1 + random() % 3;
      agent.tick(steps);
      known[i][i] += steps;
      told.push_back({agent.stamp(), known[i]});
      continue;
    }
    // Mostly something recent, at times something old.
    const std::size_t back = 1 + random() % std::min<std::size_t>(told.size(), random() % 8 == 0 ? told.size() : 20);
    const Told& heard = told[told.size() - back];
    agent.learn(heard.stamp);
    if (known[i][at(heard.stamp.agent)] < heard.stamp.clock) {
      for (std::size_t k = 0; k < known[i].size(); ++k) known[i][k] = std::max(known[i][k], heard.knew[k]);
    }
    const auto other = static_cast<int>(random() % kAgents);
    const Clock expected = known[i][at(other)];
    ASSERT_TRUE(agent.knows(other, expected)) << "step " << step;
    ASSERT_FALSE(agent.knows(other, expected + 1)) << "step " << step;
  }
}

TEST(Clocks, WhatIsForgottenProvesNothing) {
  std::vector<Agent> agents = all_agents();
  Agent &a = agents[0], &b = agents[1], &c = agents[2];
  a.tick();
  b.learn(a);
  b.tick();
  const Stamp early = b.stamp();
  Agent& d = agents[3];
  for (int i = 0; i < 1 << 21; ++i) {  // more than a journal keeps
    d.tick();
    b.learn(d);
  }
  c.learn(early);
  EXPECT_TRUE(c.knows(1, 1)) << "the moment itself is known";
  EXPECT_FALSE(c.knows(0, 1));
  EXPECT_FALSE(c.knows(3, 1));
  b.tick();
  c.learn(b);  // what it knows now is not forgotten
  EXPECT_TRUE(c.knows(0, 1));
  EXPECT_TRUE(c.knows(3, 1 << 21));
}

}  // namespace
}  // namespace reef::audit
