/* SPDX-License-Identifier: Apache-2.0
 *
 * A program in C that runs a compiled model on the device that it is told, with bytes 0, 1, 2, ... as inputs, and prints
 * what it ran on and a checksum of the outputs. It knows nothing of virtual sticks.
 *
 *   stick_client MODEL_edgetpu.tflite DEVICE [RUNS]
 */
#include <reef/reef.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(void) {
  fprintf(stderr, "%s\n", reef_error_message());
  return 1;
}

static int run(reef_interpreter* interpreter, int runs) {
  if (reef_interpreter_prepare(interpreter) != REEF_OK) return fail();
  for (size_t i = 0; i < reef_interpreter_input_count(interpreter); ++i) {
    reef_tensor input;
    if (reef_interpreter_input(interpreter, i, &input) != REEF_OK) return fail();
    for (size_t k = 0; k < input.bytes; ++k) ((unsigned char*)input.data)[k] = (unsigned char)k;
  }
  for (int i = 0; i < runs; ++i) {
    if (reef_interpreter_invoke(interpreter) != REEF_OK) return fail();
  }
  unsigned long sum = 0;
  for (size_t i = 0; i < reef_interpreter_output_count(interpreter); ++i) {
    reef_tensor output;
    if (reef_interpreter_output(interpreter, i, &output) != REEF_OK) return fail();
    for (size_t k = 0; k < output.bytes; ++k) sum = sum * 31 + ((const unsigned char*)output.data)[k];
  }
  reef_device device;
  if (reef_interpreter_device(interpreter, &device) != REEF_OK) return fail();
  printf("%s %s %lu\n", device.is_real ? "real" : "virtual", device.selector, sum);
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  reef_model* model = NULL;
  if (reef_model_load(argv[1], &model) != REEF_OK) return fail();
  reef_options options;
  reef_options_init(&options);
  options.device = argv[2];
  reef_interpreter* interpreter = NULL;
  int result = reef_interpreter_create(model, &options, &interpreter) == REEF_OK ? 0 : fail();
  reef_model_free(model);
  if (result == 0) result = run(interpreter, argc > 3 ? atoi(argv[3]) : 1);
  reef_interpreter_free(interpreter);
  return result;
}
