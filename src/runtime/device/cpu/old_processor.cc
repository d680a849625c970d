#include "runtime/device/cpu/old_processor.h"

#if defined(__x86_64__)
#include <ATen/Context.h>

#include "absl/strings/str_cat.h"
#include "base/machine/processor_name.h"

namespace tutti::device::cpu {

absl::Status PrepareOldProcessor() {
  if (!__builtin_cpu_supports("sse4.1")) {
    return absl::FailedPreconditionError(
        absl::StrCat("libtorch computes on x86-64 with SSE4.1 at least, and this processor (",
                     base::ProcessorName(), ") has none: take a machine of x86-64-v2 or newer"));
  }
  if (!__builtin_cpu_supports("avx2")) at::globalContext().setUserEnabledNNPACK(false);
  return absl::OkStatus();
}

}  // namespace tutti::device::cpu
#else

namespace tutti::device::cpu {

absl::Status PrepareOldProcessor() { return absl::OkStatus(); }

}  // namespace tutti::device::cpu
#endif
