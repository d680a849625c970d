#include "platform/service/results/file_digests.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::service {
namespace {

constexpr size_t kReadAtOnce = 1 << 20;
constexpr size_t kMostKept = 200'000;  // files; about 50 MiB
// A file that was written just now may be written again without another time: clocks of file
// systems have ticks.
constexpr absl::Duration kSettles = absl::Seconds(2);

}  // namespace

FileDigests::Stat FileDigests::StatOf(const struct stat& info) {
  return {static_cast<int64_t>(info.st_dev), static_cast<int64_t>(info.st_ino), info.st_size,
          absl::ToUnixNanos(absl::TimeFromTimespec(info.st_mtim)),
          absl::ToUnixNanos(absl::TimeFromTimespec(info.st_ctim))};
}

absl::StatusOr<std::string> FileDigests::Of(const std::filesystem::path& file) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd, base::Open(file, O_RDONLY));
  struct stat before = {}, after = {};
  if (::fstat(fd.get(), &before) != 0) return base::ErrnoStatus(file.native());
  const auto reading = std::make_shared<Reading>();
  reading->stat = StatOf(before);
  if (auto found = BeginReading(file.native(), reading)) return *std::move(found);
  absl::StatusOr<std::string> digest = Read(fd.get(), file);
  const bool settled = digest.ok() && ::fstat(fd.get(), &after) == 0 &&
                       StatOf(after) == reading->stat &&
                       absl::Now() - absl::TimeFromTimespec(before.st_ctim) > kSettles;
  EndReading(file.native(), *reading, digest, settled);
  return digest;
}

std::optional<absl::StatusOr<std::string>> FileDigests::BeginReading(
    const std::string& file, const std::shared_ptr<Reading>& reading) {
  absl::MutexLock lock(&mutex_);
  while (true) {
    const auto known = known_.find(file);
    if (known != known_.end() && known->second.stat == reading->stat) return known->second.digest;
    const auto [found, is_first] = readings_.try_emplace(file, reading);
    if (is_first) return std::nullopt;
    const std::shared_ptr<const Reading> other = found->second;
    mutex_.Await(absl::Condition(&other->done));
    if (other->stat == reading->stat) return other->digest;
  }
}

void FileDigests::EndReading(const std::string& file, Reading& reading,
                             const absl::StatusOr<std::string>& digest, bool settled) {
  absl::MutexLock lock(&mutex_);
  reading.done = true;
  reading.digest = digest;
  readings_.erase(file);
  if (!settled) return;
  if (known_.size() >= kMostKept) known_.clear();
  known_[file] = {reading.stat, *digest};
}

absl::StatusOr<std::string> FileDigests::Read(int fd, const std::filesystem::path& file) const {
  base::Sha256 hash;
  std::string block(kReadAtOnce, '\0');
  while (!*stop_) {
    const ssize_t n = ::read(fd, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus(absl::StrCat("read ", file.native()));
    if (n == 0) return base::Hex(hash.Finish());
    hash.Update({block.data(), static_cast<size_t>(n)});
  }
  return absl::CancelledError(absl::StrCat("read ", file.native()));
}

}  // namespace tutti::service
