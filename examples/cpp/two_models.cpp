// SPDX-License-Identifier: Apache-2.0
// Two models take turns on one device. Compiled together (reef compile A B), their parameters stay on the chip side by
// side; compiled apart, each turn brings them anew. Usage: two_models MODEL_A MODEL_B PICTURE
#include "common.h"

int main(int count, char** arguments) {
  if (count != 4) fail("usage: two_models MODEL_A MODEL_B PICTURE");
  reef::Interpreter first = must(reef::Interpreter::create(must(reef::Model::load(arguments[1])), {":0"}));
  reef::Interpreter second = must(reef::Interpreter::create(must(reef::Model::load(arguments[2])), {":0"}));
  for (int turn = 0; turn < 5; ++turn) {
    for (reef::Interpreter* interpreter : {&first, &second}) {
      fill_input(*interpreter, arguments[3]);
      must(interpreter->invoke());
    }
  }
  const reef_device device = must(first.device());
  std::printf("%s: %d runs, parameters brought %d times\n", device.selector, static_cast<int>(device.runs),
              static_cast<int>(device.parameter_loads));
  return 0;
}
