#include "base/text/binary_size.h"

#include "absl/strings/str_format.h"

namespace tutti::base {

std::string BinarySize(uint64_t bytes) {
  const double size = static_cast<double>(bytes);
  return bytes < uint64_t{1} << 30 ? absl::StrFormat("%.0f MiB", size / 0x1p20)
                                   : absl::StrFormat("%.1f GiB", size / 0x1p30);
}

}  // namespace tutti::base
