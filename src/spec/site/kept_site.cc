#include "spec/site/kept_site.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::spec {
namespace {

constexpr absl::Duration kMayChangeAgain = absl::Seconds(1);  // with the same time

constexpr int64_t kUnreadable = -1;  // bytes of a stamp

}  // namespace

absl::StatusOr<std::shared_ptr<const Site>> KeptSite::Read() {
  const absl::Time now = absl::Now();
  std::vector<Stamp> stamps = StampsNow();
  {
    absl::MutexLock lock(&mutex_);
    if (site_ != nullptr && stamps == stamps_) return site_;
  }
  TUTTI_ASSIGN_OR_RETURN(Site read, ReadSite(home_));
  read.find_model = find_model_;
  auto site = std::make_shared<const Site>(std::move(read));
  const bool is_settled = std::all_of(stamps.begin(), stamps.end(), [&](const Stamp& stamp) {
    return stamp.changed < now - kMayChangeAgain;
  });
  absl::MutexLock lock(&mutex_);
  site_ = is_settled ? site : nullptr;
  stamps_ = std::move(stamps);
  return site;
}

// Opened: an NFS client that knows a file from before asks its server anew then, and not for each
// stat, which would show a datastore that was made on another machine a minute later.
std::vector<KeptSite::Stamp> KeptSite::StampsNow() const {
  std::vector<Stamp> stamps;
  for (const std::filesystem::path& file : SiteFiles(home_)) {
    struct stat found = {};
    Stamp& stamp = stamps.emplace_back();
    stamp.changed = absl::UnixEpoch();
    const auto opened = base::Open(file, O_RDONLY | O_NONBLOCK);
    if (!opened.ok() && !absl::IsNotFound(opened.status())) stamp.bytes = kUnreadable;
    if (!opened.ok() || ::fstat(opened->get(), &found) != 0) continue;
    stamp = {found.st_dev, found.st_ino, found.st_size, absl::TimeFromTimespec(found.st_ctim)};
  }
  return stamps;
}

}  // namespace tutti::spec
