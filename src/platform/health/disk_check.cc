#include "platform/health/disk_check.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text/binary_size.h"

namespace tutti::health {
namespace {

namespace fs = std::filesystem;

constexpr size_t kProbeBytes = 4096;
constexpr char kProbeName[] = ".tutti-probe";

absl::Status WriteProbe(const fs::path& file, const std::string& content) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd,
                         base::Open(file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
  TUTTI_RETURN_IF_ERROR(base::WriteAll(fd.get(), content, file.native()));
  if (::fsync(fd.get()) != 0) return base::ErrnoStatus(absl::StrCat("sync ", file.native()));
  // The next read must come from the disk.
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  return absl::OkStatus();
}

absl::Status Probe(const fs::path& file) {
  // Each probe has its own content, so that a file left from an earlier one is not taken for it.
  std::string content = absl::StrCat(absl::ToInt64Nanoseconds(base::SteadyNow()), "\n");
  content.resize(kProbeBytes, 't');
  const absl::Status written = WriteProbe(file, content);
  const auto read = written.ok() ? base::ReadFile(file, 2 * kProbeBytes) : written;
  const bool removed = ::unlink(file.c_str()) == 0;
  const absl::Status unlinked =
      removed ? absl::OkStatus() : base::ErrnoStatus(absl::StrCat("remove ", file.native()));
  TUTTI_RETURN_IF_ERROR(read.status());
  TUTTI_RETURN_IF_ERROR(unlinked);
  if (*read == content) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(file.native(), " is not read as it was written"));
}

// "" if there is enough.
std::string WhatIsShort(const fs::path& folder, const struct statvfs& space,
                        const DiskLimits& limits) {
  const uint64_t bytes = uint64_t{space.f_bavail} * space.f_frsize;
  if (bytes < limits.bytes) {
    return absl::StrCat(folder.native(), " has ", base::BinarySize(bytes),
                        " left, and no job begins below ", base::BinarySize(limits.bytes));
  }
  // Some file systems have no fixed number of inodes, and report 0; their files are not counted.
  if (space.f_files > 0 && space.f_favail < limits.inodes) {
    return absl::StrCat(folder.native(), " has room for ", space.f_favail,
                        " more files, and no job begins below ", limits.inodes);
  }
  return "";
}

}  // namespace

NodeCheck CheckDisk(const std::string& name, const fs::path& folder, const DiskLimits& limits) {
  const auto ill = [&](absl::string_view why) {
    return NodeCheck{name, NodeCheck::Outcome::kIll, std::string(why),
                     base::SpeaksOfAFullDisk(why)};
  };
  struct statvfs space = {};
  if (::statvfs(folder.c_str(), &space) != 0) {
    return ill(base::ErrnoStatus(absl::StrCat("look at ", folder.native())).message());
  }
  if (const std::string lacking = WhatIsShort(folder, space, limits); !lacking.empty()) {
    return {name, NodeCheck::Outcome::kIll, lacking, /*is_full=*/true};
  }
  const absl::Duration began = base::SteadyNow();
  if (const absl::Status probed = Probe(folder / kProbeName); !probed.ok()) {
    return ill(probed.message());
  }
  const auto took = absl::ToInt64Milliseconds(base::SteadyNow() - began);
  const uint64_t bytes = uint64_t{space.f_bavail} * space.f_frsize;
  return {name, NodeCheck::Outcome::kWell,
          absl::StrCat(base::BinarySize(bytes), " free, a file written and read in ", took, " ms")};
}

}  // namespace tutti::health
