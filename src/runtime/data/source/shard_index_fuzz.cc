// What a store gives for an index must be refused or read, whatever it is.
#include <cstddef>
#include <cstdint>

#include "runtime/data/source/shard_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto index =
      tutti::data::ParseShardIndex(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!index.ok()) return 0;
  const auto again = tutti::data::ParseShardIndex(tutti::data::ToText(*index));
  if (!again.ok() || !(*again == *index)) __builtin_trap();
  return 0;
}
