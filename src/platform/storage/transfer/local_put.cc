#include "platform/storage/transfer/local_put.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "platform/storage/transfer/object_names.h"

namespace tutti::storage {
namespace {

namespace fs = std::filesystem;

absl::Status Refused() { return absl::ErrnoToStatus(errno, "the file system refuses"); }

absl::Status WriteBlock(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Refused();
    data += n;
    size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRoot(const fs::path& root) {
  std::error_code error;
  if (root.empty() || fs::is_directory(root, error)) return absl::OkStatus();
  if (error && error != std::errc::no_such_file_or_directory) {
    return absl::ErrnoToStatus(error.value(), root.native());
  }
  return absl::NotFoundError(absl::StrCat("there is no folder ", root.native()));
}

absl::Status PutLocalFile(const fs::path& to, const fs::path& root,
                          const std::function<absl::Status(const TakeBlock&)>& give,
                          const SentListener& sent) {
  TUTTI_RETURN_IF_ERROR(CheckRoot(root));
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(to.parent_path()));
  // Several nodes may write the same name.
  const fs::path part = to.parent_path() / absl::StrCat(kPutPrefix, base::RandomHex(8));
  const base::UniqueFd fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd.valid()) return Refused();
  absl::Status put = give([&](absl::string_view block) {
    TUTTI_RETURN_IF_ERROR(WriteBlock(fd.get(), block.data(), block.size()));
    return sent(static_cast<int64_t>(block.size()));
  });
  if (put.ok() && ::fdatasync(fd.get()) != 0) put = Refused();
  if (put.ok() && ::rename(part.c_str(), to.c_str()) != 0) put = Refused();
  if (!put.ok()) ::unlink(part.c_str());
  return put;
}

}  // namespace tutti::storage
