// SPDX-License-Identifier: Apache-2.0
// For C programs of tests: ends the program with a sentence where a condition does not hold.
#ifndef REEF_TESTS_CHECK_H_
#define REEF_TESTS_CHECK_H_

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
      exit(1);                                                              \
    }                                                                       \
  } while (0)

#endif  // REEF_TESTS_CHECK_H_
