#include "platform/storage/arrow/arrow_processor.h"

#include "absl/strings/str_cat.h"
#include "base/machine/processor_name.h"

namespace tutti::storage {

absl::Status CheckProcessorForArrow() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("ssse3") || !__builtin_cpu_supports("sse4.2") ||
      !__builtin_cpu_supports("popcnt")) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Arrow, by which stores are read and written, runs on x86-64 with SSE4.2 at least, and "
        "this processor (",
        base::ProcessorName(), ") has none: take a machine of x86-64-v2 or newer"));
  }
#endif
  return absl::OkStatus();
}

}  // namespace tutti::storage
