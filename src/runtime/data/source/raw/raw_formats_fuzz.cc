// Any bytes, read as IDX and as CIFAR-10: an error, or parts that lie inside.
#include <cstdint>
#include <cstdlib>

#include "runtime/data/source/raw/cifar10.h"
#include "runtime/data/source/raw/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view file(reinterpret_cast<const char*>(data), size);
  const auto array = tutti::data::ParseIdx(file);
  if (array.ok()) {
    uint64_t bytes = 1;
    for (const uint32_t one : array->sizes) bytes *= one;
    const bool inside = bytes == array->bytes.size() &&
                        array->bytes.data() + array->bytes.size() == file.data() + file.size();
    if (!inside) std::abort();
  }
  const absl::Status ignored =
      tutti::data::ForEachCifarRecord(file, [&](int32_t label, const char* at) {
        const bool inside = at > file.data() && label >= 0 && label < 10 &&
                            at + tutti::data::kCifarPixels <= file.data() + file.size();
        if (!inside) std::abort();
      });
  ignored.IgnoreError();
  return 0;
}
