// Any bytes as a launch plan: an error, or a plan that is written and read back the same.
#include <cstdint>
#include <cstdlib>

#include "spec/json/launch_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plan = tutti::spec::LaunchPlanFromJson(text);
  if (!plan.ok()) return 0;
  plan->node();
  const std::string written = tutti::spec::ToJson(*plan);
  const auto back = tutti::spec::LaunchPlanFromJson(written);
  if (!back.ok() || tutti::spec::ToJson(*back) != written) std::abort();
  return 0;
}
