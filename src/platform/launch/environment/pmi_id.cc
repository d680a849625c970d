#include "platform/launch/environment/pmi_id.h"

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/hash.h"

namespace tutti::launch {

int PmiId(const spec::LaunchPlan& plan, int rank) {
  const base::Sha256Digest digest =
      base::HmacSha256(plan.job_token, absl::StrCat("PMI ", plan.allocation_id));
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof number; ++i) number = number << 8 | digest[i];
  const uint64_t count = std::numeric_limits<int>::max() - plan.WorldSize();
  return static_cast<int>(1 + number % count) + rank;
}

}  // namespace tutti::launch
