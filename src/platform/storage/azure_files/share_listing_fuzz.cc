// Any bytes as the list of a folder that a store answers with.
#include <cstdint>
#include <cstdlib>

#include "platform/storage/azure_files/share_listing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto page =
      tutti::storage::SharePageFrom(std::string(reinterpret_cast<const char*>(data), size));
  if (!page.ok()) return 0;
  for (const auto& file : page->files) {
    if (file.bytes < 0 || file.modified < 0) std::abort();
  }
  return 0;
}
