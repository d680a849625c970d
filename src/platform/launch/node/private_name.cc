#include "platform/launch/node/private_name.h"

#include "base/hash.h"

namespace tutti::launch {
namespace {

constexpr size_t kNameDigits = 16;  // the paths of Unix sockets below such a name must stay short

}  // namespace

std::string PrivateName(const spec::LaunchPlan& plan, absl::string_view what) {
  return base::Hex(base::HmacSha256(plan.job_token, what)).substr(0, kNameDigits);
}

}  // namespace tutti::launch
