// Any bytes are either refused or describe tensors that lie within them.
#include <cstdlib>

#include "runtime/checkpoint/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view file(reinterpret_cast<const char*>(data), size);
  const auto header = tutti::checkpoint::ParseSafetensorsHeader(file);
  if (!header.ok()) return 0;
  uint64_t at = header->data_begin;
  for (const auto& tensor : header->tensors) {
    if (header->data_begin + tensor.begin != at) std::abort();
    at = header->data_begin + tensor.end;
  }
  if (at != size) std::abort();
  return 0;
}
