#include "platform/service/disk_space.h"

#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

// For what accepted jobs have yet to write: their events and the ends of their logs.
constexpr std::uintmax_t kReservedBytes = 4 << 20;

std::string Size(std::uintmax_t bytes) {
  return bytes < std::uintmax_t{1} << 30 ? absl::StrFormat("%.0f MiB", bytes / 0x1p20)
                                         : absl::StrFormat("%.1f GiB", bytes / 0x1p30);
}

// Of the files below it; what is more than `enough` is not looked at.
std::uintmax_t BytesOf(const fs::path& path, std::uintmax_t enough) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return fs::file_size(path, error);
  std::uintmax_t bytes = 0;
  for (fs::recursive_directory_iterator entry(path, error), end;
       !error && entry != end && bytes <= enough; entry.increment(error)) {
    std::error_code failed;  // of one that vanishes meanwhile
    if (!entry->is_regular_file(failed)) continue;
    const std::uintmax_t size = entry->file_size(failed);
    if (!failed) bytes += size;
  }
  return bytes;
}

void CheckTree(const spec::JobSpec& job, const fs::path& directory, std::uintmax_t room,
               std::vector<std::string>& faults) {
  for (const spec::Step& step : job.steps) CheckTree(step.job, directory, room, faults);
  if (job.kind == spec::JobKind::kPipeline || job.compute != "local") return;
  for (const auto& [name, input] : job.inputs) {
    std::error_code error;
    if (input.mode != "download" || !fs::exists(input.path, error)) continue;
    const std::uintmax_t most = room / job.instance_count;
    if (BytesOf(input.path, most) <= most) continue;
    faults.push_back(absl::StrCat(
        input.place.file, ":", input.place.line, ": input \"", name, "\": of ", input.path,
        " each of ", job.instance_count, job.instance_count == 1 ? " node" : " nodes",
        " gets a copy (mode: download), for which the disk of ", directory.native(), " with ",
        Size(room), " left has no room; take mode: ro_mount, or delete files"));
  }
}

}  // namespace

absl::Status CheckSpace(const fs::path& directory) {
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  if (error || space.available >= kReservedBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the disk of ", directory.native(), " is full: ", space.available >> 10,
                   " kB of space are left, and no job is taken below ", kReservedBytes >> 10,
                   " kB; delete files or jobs that have ended"));
}

absl::Status CheckCopiesFit(const spec::JobSpec& job, const fs::path& directory) {
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  if (error) return absl::OkStatus();
  std::vector<std::string> faults;
  CheckTree(job, directory, space.available, faults);
  return faults.empty() ? absl::OkStatus()
                        : absl::InvalidArgumentError(absl::StrJoin(faults, "\n"));
}

}  // namespace tutti::service
