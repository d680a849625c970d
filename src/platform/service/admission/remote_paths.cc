#include "platform/service/admission/remote_paths.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/child_process.h"
#include "base/status.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kPatienceWithPath = absl::Seconds(5);  // of a mount that answers
constexpr absl::Duration kPatienceWithOthers = absl::Seconds(3);

absl::Status IsAway(const std::string& mount) {
  return absl::UnavailableError(absl::StrCat(
      mount, ", where the job has files, does not answer: is its server away? Try again later"));
}

void AddPath(const std::string& path, std::set<std::string>& paths) {
  if (absl::StartsWith(path, "/")) paths.insert(path);
}

void AddPaths(const spec::JobSpec& job, std::set<std::string>& paths) {
  for (const spec::Step& step : job.steps) AddPaths(step.job, paths);
  for (const auto& [name, input] : job.inputs) {
    AddPath(input.path, paths);
    AddPath(input.job_folder, paths);
  }
  AddPath(job.code, paths);
  for (const std::string& include : job.additional_includes) AddPath(include, paths);
  const auto programs = job.environment_variables.find("PATH");
  if (programs == job.environment_variables.end()) return;
  for (const absl::string_view folder : absl::StrSplit(programs->second, ':')) {
    AddPath(std::string(folder), paths);
  }
}

}  // namespace

absl::StatusOr<RemotePaths::Visit> RemotePaths::Begin(const std::set<std::string>& paths,
                                                      const std::vector<base::Mount>& mounts) {
  std::set<std::string> remote;
  for (const std::string& path : paths) {
    const std::string mount = base::RemoteMountOf(path, mounts);
    if (mount.empty() || !remote.insert(mount).second) continue;
    TUTTI_RETURN_IF_ERROR(Ask(mount, path));
  }
  if (remote.empty()) return Visit(nullptr, {});
  absl::MutexLock lock(&mutex_);
  const auto is_full = [this](const std::string& mount) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto visits = visits_.find(mount);
    return visits != visits_.end() && visits->second >= kMostVisits;
  };
  const auto has_room = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::none_of(remote.begin(), remote.end(), is_full);
  };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&has_room), kPatienceWithOthers)) {
    return IsAway(*std::find_if(remote.begin(), remote.end(), is_full));
  }
  for (const std::string& mount : remote) ++visits_[mount];
  return Visit(this, std::move(remote));
}

void RemotePaths::End(const std::set<std::string>& mounts) {
  absl::MutexLock lock(&mutex_);
  for (const std::string& mount : mounts) {
    if (--visits_[mount] == 0) visits_.erase(mount);
  }
}

absl::Status RemotePaths::Ask(const std::string& mount, const std::string& path) {
  const auto look = [path] {
    std::error_code ignored;
    static_cast<void>(std::filesystem::status(path, ignored));
  };
  if (!folders_.Await(path).ok() || looks_.Hangs(mount, kPatienceWithPath)) return IsAway(mount);
  const bool answers = looks_.DoWithin(mount, look, base::Deadline::After(kPatienceWithPath),
                                       [&] { return !folders_.Check(path).ok(); });
  return answers ? absl::OkStatus() : IsAway(mount);
}

std::set<std::string> PathsOf(const spec::JobSpec& job) {
  std::set<std::string> paths;
  AddPaths(job, paths);
  const std::map<std::string, std::string> own = base::CurrentEnvironment();
  if (const auto programs = own.find("PATH"); programs != own.end()) {
    for (const absl::string_view folder : absl::StrSplit(programs->second, ':')) {
      AddPath(std::string(folder), paths);
    }
  }
  return paths;
}

}  // namespace tutti::service
