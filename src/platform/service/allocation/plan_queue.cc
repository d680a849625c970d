#include "platform/service/allocation/plan_queue.h"

#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tutti::service {

PlanPlace PlaceOfPlan(const std::string& pipeline, const std::vector<std::string>& inputs,
                      const std::string& own, const std::vector<base::Mount>& mounts) {
  PlanPlace place;
  for (const std::string& input : inputs) {
    if (!absl::StartsWith(input, "/") || absl::StartsWith(input, own)) continue;
    const std::string mount = base::RemoteMountOf(input, mounts);
    if (!mount.empty()) place.mounts.insert(mount);
  }
  const size_t number = std::hash<std::string>()(absl::StrJoin(inputs, "\n")) % kPlanQueues;
  // No job's name has a "/" in it.
  place.queue =
      absl::StrCat(place.mounts.empty() ? pipeline : absl::StrJoin(place.mounts, ","), "/", number);
  return place;
}

}  // namespace tutti::service
