// Preloaded into a service and its launchers: their wall clock is shifted by as many seconds as the file $CHAOS_CLOCK holds, a 64-bit
// number that may change at any time. The monotonic clock goes on as it is, as on a machine whose clock is set. Other programs that have
// it by their environment keep their clock: srun waits until a time of day, of which the kernel has another idea. Absl's waits, which are until
// such a time too, are told to the kernel in its own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t* shift;

__attribute__((constructor)) static void map_the_shift(void) {
  if (strcmp(program_invocation_short_name, "tutti") != 0) return;
  const char* path = getenv("CHAOS_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void* page = mmap(NULL, sizeof(*shift), PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) shift = page;
  close(file);
}

typedef long Call(long number, long, long, long, long, long, long);

long syscall(long number, ...) {
  static Call* call;
  if (!call) call = (Call*)dlsym(RTLD_NEXT, "syscall");
  long of[6];
  va_list all;
  va_start(all, number);
  for (int i = 0; i < 6; ++i) of[i] = va_arg(all, long);
  va_end(all);
  struct timespec until;
  if (number == SYS_futex && (of[1] & FUTEX_CLOCK_REALTIME) && of[3] && shift) {
    until = *(const struct timespec*)of[3];
    until.tv_sec -= *shift;
    if (until.tv_sec < 0) until.tv_sec = 0;
    of[3] = (long)&until;
  }
  return call(number, of[0], of[1], of[2], of[3], of[4], of[5]);
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  long result = syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && clock == CLOCK_REALTIME && shift) now->tv_sec += *shift;
  return (int)result;
}

int gettimeofday(struct timeval* now, void* zone) {
  (void)zone;
  struct timespec precise;
  int result = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return result;
}

time_t time(time_t* into) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (into) *into = now.tv_sec;
  return now.tv_sec;
}
