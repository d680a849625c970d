// Any bytes as the answer of a token service: an error, or keys that are not empty.
#include <cstdint>
#include <cstdlib>

#include "platform/storage/signing/session_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto session = tutti::storage::SessionFrom({reinterpret_cast<const char*>(data), size});
  if (!session.ok()) return 0;
  if (session->access_key_id.empty() || session->session_token.empty()) std::abort();
  return 0;
}
