// SPDX-License-Identifier: Apache-2.0
// Names what a picture shows. Usage: classify MODEL LABELS PICTURE
#include "common.h"

int main(int count, char** arguments) {
  if (count != 4) fail("usage: classify MODEL LABELS PICTURE");
  const reef::Model model = must(reef::Model::load(arguments[1]));
  reef::Interpreter interpreter = must(reef::Interpreter::create(model));
  const std::vector<std::string> labels = read_labels(arguments[2]);
  fill_input(interpreter, arguments[3]);
  must(interpreter.invoke());

  const reef::Tensor scores = interpreter.output(0);
  std::vector<std::size_t> order(scores.bytes());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return scores.real(a) > scores.real(b); });
  for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 3); ++i) {
    std::printf("%-10s %.3f\n", label(labels, order[i]).c_str(), scores.real(order[i]));
  }
  return 0;
}
