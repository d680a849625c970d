#include "platform/service/retention/removal.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/binary_size.h"

namespace tutti::service {
namespace {

constexpr std::array<absl::string_view, kKeptKinds.size()> kKeptNames = {
    "snapshots", "data", "environments", "images", "logs", "results"};

// "41 days", "5 hours".
std::string AgeText(absl::Duration age) {
  const int64_t hours = std::max<int64_t>(age / absl::Hours(1), 0);
  const bool in_hours = hours < 48 && hours != 24;
  const int64_t number = in_hours ? hours : hours / 24;
  return absl::StrCat(number, in_hours ? " hour" : " day", number == 1 ? "" : "s");
}

}  // namespace

absl::string_view Name(KeptKind kind) { return kKeptNames[static_cast<size_t>(kind)]; }

const spec::KeepFor& LimitOf(const spec::Retention& retention, KeptKind kind) {
  switch (kind) {
    case KeptKind::kData:
      return retention.data;
    case KeptKind::kEnvironments:
      return retention.environments;
    case KeptKind::kImages:
      return retention.images;
    case KeptKind::kLogs:
      return retention.logs;
    case KeptKind::kResults:
      return retention.results;
    case KeptKind::kSnapshots:
      break;
  }
  return retention.snapshots;
}

std::vector<Removal> ToRemove(std::vector<Kept> kept, const spec::KeepFor& limit, absl::Time now) {
  std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) {
    return std::pair(a.last_use, a.name) < std::pair(b.last_use, b.name);
  });
  uint64_t total = 0;
  for (const Kept& one : kept) total += one.bytes;
  std::vector<Removal> removals;
  for (Kept& one : kept) {
    if (one.in_use) continue;
    const absl::Duration unused = now - one.last_use;
    const std::string key = absl::StrCat("retention.", Name(one.kind));
    std::string why;
    if (limit.age && unused > *limit.age) {
      why = absl::StrCat("unused for ", AgeText(unused), " (", key, ".age: ", AgeText(*limit.age),
                         ")");
    } else if (limit.size && total > *limit.size) {
      why = absl::StrCat("longest unused of ", base::BinarySize(total), " (", key,
                         ".size: ", base::BinarySize(*limit.size), ")");
    } else {
      continue;
    }
    total -= one.bytes;
    removals.push_back({std::move(one), std::move(why)});
  }
  return removals;
}

}  // namespace tutti::service
