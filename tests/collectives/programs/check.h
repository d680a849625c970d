/* What the C programs share. A failed CHECK ends the process, of a forked rank too; it says SELF,
 * which rank or member this process is, where a program has defined that before. */
#ifndef TUTTI_TESTS_PROGRAMS_CHECK_H
#define TUTTI_TESTS_PROGRAMS_CHECK_H

#include <stdio.h>
#include <unistd.h>

#include "tutti_comm.h"

#ifndef SELF
#define SELF 0
#endif

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      fprintf(stderr, "%d, %s:%d: %s (last error: %s)\n", SELF, __FILE__, __LINE__, #condition, \
              tutti_comm_last_error());                                                         \
      _exit(1);                                                                                 \
    }                                                                                           \
  } while (0)
#define OK(call) CHECK((call) == TUTTI_COMM_OK)

#endif
