/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <reef/reef.h>

static int fail(void) {
  fprintf(stderr, "%s\n", reef_error_message());
  return 1;
}

int main(int count, char** arguments) {
  reef_model* model = NULL;
  reef_interpreter* interpreter = NULL;
  reef_tensor output;
  if (count != 2 || reef_model_load(arguments[1], &model) != REEF_OK) return fail();
  if (reef_interpreter_create(model, NULL, &interpreter) != REEF_OK) return fail();
  reef_model_free(model);
  if (reef_interpreter_prepare(interpreter) != REEF_OK || reef_interpreter_invoke(interpreter) != REEF_OK) return fail();
  if (reef_interpreter_output(interpreter, 0, &output) != REEF_OK) return fail();
  printf("%u scores\n", (unsigned)output.bytes);
  reef_interpreter_free(interpreter);
  return 0;
}
