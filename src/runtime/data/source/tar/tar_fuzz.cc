// Any bytes, read as a tar archive: an error or members that lie inside of it.
#include <cstdint>
#include <cstdlib>

#include "runtime/data/source/tar/tar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view archive(reinterpret_cast<const char*>(data), size);
  tutti::data::TarReader reader(archive);
  while (true) {
    const auto member = reader.Next();
    if (!member.ok() || !member->has_value()) return 0;
    const absl::string_view content = (*member)->content;
    const bool inside = content.data() >= archive.data() &&
                        content.data() + content.size() <= archive.data() + archive.size();
    if (!inside) std::abort();
  }
}
