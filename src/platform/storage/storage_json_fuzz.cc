// Any bytes as a request, and as a grant: an error, or one that is written and read back the same.
#include <cstdint>
#include <cstdlib>

#include "platform/storage/storage_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto request = tutti::storage::StorageRequestFromJson(text);
  // A service's answer to a request for access is read in the same way.
  if (const auto grant = tutti::storage::GrantFromJson(text); grant.ok()) {
    const std::string granted = tutti::storage::ToJson(*grant);
    const auto again = tutti::storage::GrantFromJson(granted);
    if (!again.ok() || tutti::storage::ToJson(*again) != granted) std::abort();
  }
  if (!request.ok()) return 0;
  const std::string written = tutti::storage::ToJson(*request);
  const auto back = tutti::storage::StorageRequestFromJson(written);
  if (!back.ok() || tutti::storage::ToJson(*back) != written) std::abort();
  return 0;
}
