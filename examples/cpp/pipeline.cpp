// SPDX-License-Identifier: Apache-2.0
// Segments of one model (reef compile --num_segments N), each on a device of its own, all at work at once.
// Usage: pipeline PICTURE SEGMENT...
#include <thread>

#include "common.h"

int main(int count, char** arguments) {
  if (count < 3) fail("usage: pipeline PICTURE SEGMENT...");
  std::vector<reef::Interpreter> segments;
  for (int i = 2; i < count; ++i) {
    reef::Options options;
    options.device += ':';
    options.device += std::to_string(i - 2);
    segments.push_back(must(reef::Interpreter::create(must(reef::Model::load(arguments[i])), options)));
  }
  fill_input(segments[0], arguments[1]);
  const reef::Tensor input = segments[0].input(0);
  reef::Pipeline pipeline = must(reef::Pipeline::create(std::move(segments)));

  constexpr int kSets = 8;
  std::thread feeder([&] {  // a camera would be here
    for (int i = 0; i < kSets; ++i) must(pipeline.push({input.c()}));
    must(pipeline.close());
  });
  int results = 0;
  std::size_t best = 0;
  for (auto next = must(pipeline.pop()); next; next = must(pipeline.pop())) {
    const auto scores = (*next)[0].data<std::uint8_t>();
    best = static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    ++results;
  }
  feeder.join();
  std::printf("%d results, best class %zu\n", results, best);
  return 0;
}
