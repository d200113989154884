/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that objects compiled on a newer system ask for and glibc 2.28 lacks. Every portable program and library links them and
 * hides them from others. tools/packages/check_portable.py tells when something is missing here.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PRIVATE __attribute__((visibility("hidden")))

/* Since 2.32. libstdc++ leaves out atomic operations where it is true; false is always right. */
PRIVATE char __libc_single_threaded = 0;

/* Since 2.36; std::random_device uses it. Nothing in Reef does: results do not depend on chance. */
PRIVATE uint32_t arc4random(void) {
  uint32_t value = 0;
  while (syscall(SYS_getrandom, &value, sizeof value, 0) != (long)sizeof value) {
  }
  return value;
}

/* Since 2.30; std::condition_variable waits by it until a point of steady time. The older function waits by the time of day, so a clock that
 * is set meanwhile changes how long it waits; libstdc++ did the same before, and looks at the steady clock again afterwards. */
static struct timespec time_of_day(clockid_t clock, const struct timespec* until) {
  struct timespec now, day;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &day);
  day.tv_sec += until->tv_sec - now.tv_sec;
  day.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (day.tv_nsec < 0) {
    day.tv_nsec += 1000000000;
    --day.tv_sec;
  } else if (day.tv_nsec >= 1000000000) {
    day.tv_nsec -= 1000000000;
    ++day.tv_sec;
  }
  return day;
}
PRIVATE int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  const struct timespec day = time_of_day(clock, until);
  return pthread_cond_timedwait(condition, mutex, &day);
}
PRIVATE int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  const struct timespec day = time_of_day(clock, until);
  return pthread_mutex_timedlock(mutex, &day);
}

/* Since 2.38: the C23 forms, which also read "0b101", are what newer headers make of strtol and its kin. */
extern long old_strtol(const char*, char**, int) __asm__("strtol");
extern unsigned long old_strtoul(const char*, char**, int) __asm__("strtoul");
extern long long old_strtoll(const char*, char**, int) __asm__("strtoll");
extern unsigned long long old_strtoull(const char*, char**, int) __asm__("strtoull");
extern int old_vsscanf(const char*, const char*, va_list) __asm__("vsscanf");
PRIVATE long __isoc23_strtol(const char* text, char** end, int base) { return old_strtol(text, end, base); }
PRIVATE unsigned long __isoc23_strtoul(const char* text, char** end, int base) { return old_strtoul(text, end, base); }
PRIVATE long long __isoc23_strtoll(const char* text, char** end, int base) { return old_strtoll(text, end, base); }
PRIVATE unsigned long long __isoc23_strtoull(const char* text, char** end, int base) { return old_strtoull(text, end, base); }
PRIVATE int __isoc23_sscanf(const char* text, const char* format, ...) {
  va_list list;
  va_start(list, format);
  const int count = old_vsscanf(text, format, list);
  va_end(list);
  return count;
}
