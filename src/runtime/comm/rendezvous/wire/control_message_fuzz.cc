// Any bytes are either refused or read into a message that is written as the same bytes again.
#include <cstdint>
#include <cstdlib>

#include "runtime/comm/rendezvous/wire/control_message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto message = tutti::comm::Read(bytes);
  if (message.ok() && tutti::comm::Write(*message) != bytes) std::abort();
  return 0;
}
