// Whatever a filter or an order says, it is read or refused, and what is read is within the bounds.
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "platform/tracking/search/filter.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tutti::tracking::Subject;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Subject subject : {Subject::kRuns, Subject::kExperiments}) {
    const auto filter = tutti::tracking::ParseFilter(text, subject);
    if (filter.ok() && filter->size() > tutti::tracking::kMostComparisons) std::abort();
    const auto ordering = tutti::tracking::ParseOrdering(text, subject);
    const bool is_attribute =
        ordering.ok() && ordering->entity == tutti::tracking::Entity::kAttribute;
    if (ordering.ok() && !is_attribute && ordering->key.size() > size) std::abort();
  }
  return 0;
}
