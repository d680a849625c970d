#include "platform/service/admission/disk_space.h"

#include <cstdint>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/deadline.h"
#include "base/text/binary_size.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

// How large copies are, within a time that whoever submits a job may wait for: what is not known
// then counts as nothing.
class Sizes {
 public:
  std::uintmax_t Of(const std::string& path) {
    const auto [known, is_new] = known_.try_emplace(path, 0);
    if (is_new) known->second = Measure(path);
    return known->second;
  }

 private:
  std::uintmax_t Measure(const fs::path& path) const {
    std::error_code error;
    if (!fs::is_directory(path, error)) return SizeOf(fs::directory_entry(path, error));
    std::uintmax_t bytes = 0;
    for (fs::recursive_directory_iterator
             entry(path, fs::directory_options::follow_directory_symlink, error),
         end;
         !error && entry != end && !deadline_.Expired(); entry.increment(error)) {
      bytes += SizeOf(*entry);
    }
    return bytes;
  }
  static std::uintmax_t SizeOf(const fs::directory_entry& entry) {
    std::error_code error;
    if (!entry.is_regular_file(error)) return 0;
    const std::uintmax_t bytes = entry.file_size(error);
    return error ? 0 : bytes;
  }

  const base::Deadline deadline_ = base::Deadline::After(absl::Seconds(1));
  std::map<std::string, std::uintmax_t> known_;
};

void CheckTree(const spec::JobSpec& job, const fs::path& directory, std::uintmax_t room,
               Sizes& sizes, std::vector<std::string>& faults) {
  for (const spec::Step& step : job.steps) CheckTree(step.job, directory, room, sizes, faults);
  if (job.kind == spec::JobKind::kPipeline || job.compute != "local") return;
  std::uintmax_t bytes = 0;
  for (const auto& [name, input] : job.inputs) {
    if (input.mode != "download") continue;
    bytes += job.instance_count * sizes.Of(input.path);
    if (bytes <= room) continue;
    faults.push_back(absl::StrCat(
        input.location.file, ":", input.location.line, ": input \"", name, "\": of ", input.path,
        " each of ", job.instance_count, job.instance_count == 1 ? " node" : " nodes",
        " gets a copy (mode: download), which with those before it is ", base::BinarySize(bytes),
        "; the disk of ", directory.native(), " has ", base::BinarySize(room),
        " left: take mode: ro_mount, or delete files"));
    return;
  }
}

}  // namespace

absl::Status CheckCopiesFit(const spec::JobSpec& job, const fs::path& directory) {
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  if (error) return absl::OkStatus();
  std::vector<std::string> faults;
  Sizes sizes;
  CheckTree(job, directory, space.available, sizes, faults);
  return faults.empty() ? absl::OkStatus()
                        : absl::ResourceExhaustedError(absl::StrJoin(faults, "\n"));
}

}  // namespace tutti::service
