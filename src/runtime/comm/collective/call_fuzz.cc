// What a peer says it calls (GroupOptions::check_calls) is compared and described as it came.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtime/comm/collective/call.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::comm::Call call;
  std::memcpy(&call, data, std::min(size, sizeof(call)));
  if (tutti::comm::Describe(call).empty() || call != call) std::abort();
  return 0;
}
