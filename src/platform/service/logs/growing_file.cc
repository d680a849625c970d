#include "platform/service/logs/growing_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::service {
namespace {

constexpr size_t kBlockOfAFile = 1 << 20;

}  // namespace

absl::StatusOr<bool> GrowingFile::ReadOn(bool to_the_end, const Take& take, uint64_t end) {
  const auto fd = base::Open(path_, O_RDONLY);
  if (absl::IsNotFound(fd.status())) return false;
  TUTTI_RETURN_IF_ERROR(fd.status());
  bool any = false;
  std::string block;
  while (offset_ < end) {
    if (block.empty()) {  // most looks find nothing new
      struct stat status;
      const bool is_known = ::fstat(fd->get(), &status) == 0 && S_ISREG(status.st_mode);
      if (is_known && static_cast<uint64_t>(status.st_size) <= offset_) break;
      block.resize(kBlockOfAFile);
    }
    const size_t most = std::min<uint64_t>(block.size(), end - offset_);
    const ssize_t n = ::pread(fd->get(), block.data(), most, static_cast<off_t>(offset_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus(absl::StrCat("read ", path_.native()));
    if (n == 0) break;
    any = true;
    TakeIn(absl::string_view(block).substr(0, static_cast<size_t>(n)), take);
    offset_ += static_cast<uint64_t>(n);
  }
  if (to_the_end && !rest_.empty()) TakeIn("\n", take);
  return any;
}

void GrowingFile::TakeIn(absl::string_view bytes, const Take& take) {
  uint64_t begin = position();
  const size_t newline = bytes.rfind('\n');
  if (newline == absl::string_view::npos) {
    if (!skips_) absl::StrAppend(&rest_, bytes);
    if (rest_.size() <= longest_line_) return;
    rest_.clear();
    skips_ = true;
    return;
  }
  std::string lines = std::exchange(rest_, std::string(bytes.substr(newline + 1)));
  if (skips_) {
    const size_t skipped = bytes.find('\n') + 1;
    bytes.remove_prefix(skipped);
    begin += skipped;
  }
  skips_ = false;
  absl::StrAppend(&lines, bytes.substr(0, bytes.rfind('\n') + 1));
  if (!lines.empty()) take(lines, begin);
}

}  // namespace tutti::service
