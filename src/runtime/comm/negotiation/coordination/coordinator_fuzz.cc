// Whatever well-formed requests the ranks make, of process sets that they add and remove too, the
// coordinator neither fails nor says what no rank could read.
#include <cstdint>
#include <cstdlib>

#include "runtime/comm/negotiation/coordination/arbitrary_ranks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::comm::ArbitraryRanks ranks([&](uint32_t below) -> uint32_t {
    if (size == 0) return 0;
    --size;
    return *data++ % below;
  });
  while (size > 0) {
    if (!ranks.Step()) std::abort();
  }
  return 0;
}
