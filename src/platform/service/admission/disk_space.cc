#include "platform/service/admission/disk_space.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/deadline.h"
#include "base/machine/pattern_walk.h"
#include "base/text/binary_size.h"
#include "platform/cache/cache_census.h"
#include "platform/storage/storage_request.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

// How large copies are, within a time that whoever submits a job may wait for: what is not known
// then counts as nothing.
class Sizes {
 public:
  // Returns the size; of a folder with a pattern, that of the files that match.
  std::uintmax_t Of(const spec::Input& input) {
    const base::Wildcards wildcards = spec::WildcardsOf(input);
    const auto [known, is_new] = known_.try_emplace({input.path, input.pattern, wildcards}, 0);
    if (!is_new) return known->second;
    return known->second = input.pattern.empty()
                               ? Measure(input.path)
                               : MeasureMatches(input.path, input.pattern, wildcards);
  }

 private:
  std::uintmax_t Measure(const fs::path& path) const {
    std::error_code error;
    if (!fs::is_directory(path, error)) return SizeOf(fs::directory_entry(path, error));
    std::uintmax_t bytes = 0;
    base::WalkTree(path, /*recursive=*/true, [&](const base::TreeEntry& entry) -> absl::Status {
      if (deadline_.Expired()) return absl::DeadlineExceededError("it is large");
      if (entry.error == 0 && !entry.is_folder()) {
        bytes += static_cast<std::uintmax_t>(entry.status.st_size);
      }
      return absl::OkStatus();
    }).IgnoreError();  // what is not there is told elsewhere
    return bytes;
  }
  std::uintmax_t MeasureMatches(const fs::path& folder, const std::string& pattern,
                                base::Wildcards wildcards) const {
    std::uintmax_t bytes = 0;
    base::WalkPattern(
        folder, pattern, wildcards, [&] { return !deadline_.Expired(); },
        [&](const fs::path& below) {
          std::error_code error;
          bytes += SizeOf(fs::directory_entry(folder / below, error));
          return absl::OkStatus();
        })
        .IgnoreError();  // what is not there is told elsewhere
    return bytes;
  }
  static std::uintmax_t SizeOf(const fs::directory_entry& entry) {
    std::error_code error;
    if (!entry.is_regular_file(error)) return 0;
    const std::uintmax_t bytes = entry.file_size(error);
    return error ? 0 : bytes;
  }

  const base::Deadline deadline_ = base::Deadline::After(absl::Seconds(1));
  // The keys are a path and a pattern.
  std::map<std::tuple<std::string, std::string, base::Wildcards>, std::uintmax_t> known_;
};

void CheckTree(const spec::JobSpec& job, const fs::path& directory, std::uintmax_t room,
               Sizes& sizes, std::vector<std::string>& faults) {
  for (const spec::Step& step : job.steps) CheckTree(step.job, directory, room, sizes, faults);
  if (job.kind == spec::JobKind::kPipeline || job.compute != "local") return;
  std::vector<const std::pair<const std::string, spec::Input>*> inputs;
  for (const auto& one : job.inputs) {
    if (one.second.mode == "download") inputs.push_back(&one);
  }
  // A pattern may walk over much for few files: what is named whole is measured before.
  std::stable_partition(inputs.begin(), inputs.end(),
                        [](const auto* one) { return one->second.pattern.empty(); });
  std::uintmax_t bytes = 0;
  for (const auto* one : inputs) {
    const auto& [name, input] = *one;
    bytes += job.instance_count * sizes.Of(input);
    if (bytes <= room) continue;
    faults.push_back(
        absl::StrCat(input.location.file, ":", input.location.line, ": input \"", name, "\": of ",
                     input.path, input.pattern.empty() ? "" : absl::StrCat("/", input.pattern),
                     " each of ", job.instance_count, job.instance_count == 1 ? " node" : " nodes",
                     " gets a copy (mode: download), which with those before it is ",
                     base::BinarySize(bytes), "; the disk of ", directory.native(), " has ",
                     base::BinarySize(room), " left: take mode: ro_mount, or delete files"));
    return;
  }
}

bool AreOnOneDisk(const fs::path& a, const fs::path& b) {
  struct stat of_a, of_b;
  return ::stat(a.c_str(), &of_a) == 0 && ::stat(b.c_str(), &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev;
}

constexpr long kXfs = 0x58465342;  // XFS_SUPER_MAGIC, which no header of the kernel's has

// Whether a copy within the file system may take no room (copy_file_range clones there).
bool MayShareBlocks(const fs::path& folder) {
  struct statfs info = {};
  if (::statfs(folder.c_str(), &info) != 0) return true;
  return info.f_type == kXfs || info.f_type == BTRFS_SUPER_MAGIC;
}

// Adds up what a job needs, input by input.
class Needed {
 public:
  // Returns the bytes of all so far, which are any store's word; `with_copies`: those that nodes
  // get too.
  double With(const InputInStore& one, bool with_copies) {
    uint64_t& most = most_of_container_[spec::StoreOf(*one.input->place)];
    most = std::max(most, one.bytes);
    if (with_copies && one.input->mode == "download") {
      copies_ += 1.0 * one.job->instance_count * static_cast<double>(one.bytes);
    }
    double all = copies_;
    for (const auto& [container, bytes] : most_of_container_) all += static_cast<double>(bytes);
    return all;
  }

 private:
  std::map<std::string, uint64_t> most_of_container_;
  double copies_ = 0;
};

std::string TooLittleRoomFor(const InputInStore& one, double needed, const fs::path& cache,
                             uint64_t free, uint64_t kept) {
  const spec::SourceLocation& at = one.input->location;
  const bool is_copied = one.input->mode == "download";
  return absl::StrCat(
      at.file, ":", at.line, ": input \"", *one.name, "\": ", storage::Described(*one.input->place),
      " has ", base::BinarySize(one.bytes),
      is_copied ? ", and each node gets a copy (mode: download)" : "", "; the job needs ",
      base::BinarySize(static_cast<uint64_t>(std::min(needed, 0x1p63))),
      " for it and the inputs before it in ", cache.native(), ", where ", base::BinarySize(free),
      " are free",
      kept == 0 ? "" : absl::StrCat(" and ", base::BinarySize(kept), " are of data that may go"),
      ": delete files there, have the data on a larger disk, or take mode: ",
      is_copied ? "ro_mount" : "direct");
}

}  // namespace

absl::Status CheckFetchesFit(const std::vector<InputInStore>& inputs, const fs::path& directory) {
  if (inputs.empty()) return absl::OkStatus();
  const fs::path cache = directory / "data";
  std::error_code error;
  // Before the first fetch there is none.
  fs::space_info space = fs::space(cache, error);
  const bool is_made = !error;
  if (!is_made) space = fs::space(directory, error);
  if (error) return absl::OkStatus();
  const bool has_copies =
      (!is_made || AreOnOneDisk(cache, directory)) && !MayShareBlocks(directory);
  std::map<const spec::JobSpec*, Needed> jobs;
  std::set<const spec::JobSpec*> told;
  std::optional<uint64_t> kept;
  std::vector<std::string> faults;
  for (const InputInStore& one : inputs) {
    const double needed = jobs[one.job].With(one, has_copies);
    const auto free = static_cast<double>(space.available);
    if (needed <= free || told.contains(one.job)) continue;
    if (!kept) kept = cache::Census::Of(cache).bytes();
    if (needed <= free + static_cast<double>(*kept)) continue;
    faults.push_back(TooLittleRoomFor(one, needed, cache, space.available, *kept));
    told.insert(one.job);
  }
  return faults.empty() ? absl::OkStatus()
                        : absl::ResourceExhaustedError(absl::StrJoin(faults, "\n"));
}

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
