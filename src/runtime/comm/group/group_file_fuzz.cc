// Any text is either refused or a list of places, which are written as a text that is the same
// list.
#include <cstdint>
#include <cstdlib>

#include "runtime/comm/group/group_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto places = tutti::comm::ReadGroupFile({reinterpret_cast<const char*>(data), size});
  if (!places.ok()) return 0;
  for (const tutti::comm::Endpoint& place : *places) {
    if (place.host.empty() || place.port < 1 || place.port > 65535) std::abort();
    const auto again = tutti::comm::ParseEndpoint(place.ToString());
    if (!again.ok() || again->port != place.port || again->host != place.host) std::abort();
  }
  return 0;
}
