#include "platform/engine/local/usable_cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "base/file.h"

namespace tutti::engine {

std::vector<int> UsableCores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

int64_t UsableMemory() {
  int64_t bytes = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  for (const char* file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const auto text = base::ReadFile(file, 4096);
    int64_t limit = 0;
    if (text.ok() && absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &limit) && limit > 0) {
      bytes = std::min(bytes, limit);
    }
  }
  return bytes;
}

}  // namespace tutti::engine
