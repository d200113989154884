// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include <reef/reef.hpp>

int main(int, char** argv) {
  auto model = reef::Model::load(argv[1]);
  if (!model) return std::fprintf(stderr, "%s\n", model.error().message.c_str()), 1;
  auto interpreter = reef::Interpreter::create(*model);
  if (!interpreter) return std::fprintf(stderr, "%s\n", interpreter.error().message.c_str()), 1;
  if (const auto error = interpreter->invoke()) return std::fprintf(stderr, "%s\n", error.message.c_str()), 1;
  std::printf("%zu scores\n", interpreter->output(0).data<unsigned char>().size());
  return 0;
}
