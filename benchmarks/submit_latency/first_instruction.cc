// Prints when it began: the machine's realtime clock, in seconds since 1970.
#include <time.h>

#include <cstdio>

int main() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  std::printf("%lld.%09ld\n", static_cast<long long>(now.tv_sec), now.tv_nsec);
}
