#include "platform/service/logs/growing_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::service {
namespace {

constexpr size_t kBlockOfAFile = 1 << 20;

}  // namespace

absl::StatusOr<bool> GrowingFile::ReadOn(bool to_the_end, const Take& take) {
  const auto fd = base::Open(path_, O_RDONLY);
  if (absl::IsNotFound(fd.status())) return false;
  TUTTI_RETURN_IF_ERROR(fd.status());
  bool any = false;
  std::string block;
  while (true) {
    if (block.empty()) {  // most looks find nothing new
      struct stat status;
      const bool is_known = ::fstat(fd->get(), &status) == 0 && S_ISREG(status.st_mode);
      if (is_known && static_cast<uint64_t>(status.st_size) <= offset_) break;
      block.resize(kBlockOfAFile);
    }
    const ssize_t n = ::pread(fd->get(), block.data(), block.size(), static_cast<off_t>(offset_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus(absl::StrCat("read ", path_.native()));
    if (n == 0) break;
    any = true;
    offset_ += static_cast<uint64_t>(n);
    TakeIn(absl::string_view(block).substr(0, static_cast<size_t>(n)), take);
  }
  if (to_the_end && !rest_.empty()) TakeIn("\n", take);
  return any;
}

void GrowingFile::BeginAtTheLast(uint64_t bytes) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path_, error);
  if (error || size <= bytes) return;
  offset_ = size - bytes;
  skips_ = true;
}

void GrowingFile::TakeIn(absl::string_view bytes, const Take& take) {
  const size_t newline = bytes.rfind('\n');
  if (newline == absl::string_view::npos) {
    if (!skips_) absl::StrAppend(&rest_, bytes);
    if (rest_.size() <= longest_line_) return;
    rest_.clear();
    skips_ = true;
    return;
  }
  std::string lines = std::exchange(rest_, std::string(bytes.substr(newline + 1)));
  if (skips_) bytes.remove_prefix(bytes.find('\n') + 1);
  skips_ = false;
  absl::StrAppend(&lines, bytes.substr(0, bytes.rfind('\n') + 1));
  if (!lines.empty()) take(lines);
}

}  // namespace tutti::service
