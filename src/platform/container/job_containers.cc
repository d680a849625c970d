#include "platform/container/job_containers.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/container/container_processes.h"
#include "platform/container/podman.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;

constexpr char kFolderLabel[] = "tutti.folder";
constexpr char kRootLabel[] = "tutti.root";
constexpr size_t kHashLength = 16;
constexpr size_t kMostListed = 64 << 20;  // bytes; podman tells about 2 kB of a container
constexpr absl::Duration kPodman = absl::Minutes(2);
constexpr absl::Duration kProcesses = absl::Seconds(30);
constexpr int kRemovals = 4;
constexpr absl::Duration kBetweenRemovals = absl::Milliseconds(500);

fs::path NoteIn(const fs::path& folder) { return folder / "containers"; }

std::set<std::string> NotedIn(const fs::path& folder) {
  const std::string note = base::ReadFile(NoteIn(folder), 1 << 20).value_or("");
  return absl::StrSplit(note, '\n', absl::SkipEmpty());
}

fs::path RootOf(const fs::path& folder) { return folder.parent_path().parent_path(); }

struct JobContainer {
  std::string name;
  fs::path folder, root;
};

// Returns what podman wrote to standard output.
absl::StatusOr<std::string> OutputOfPodman(const std::vector<std::string>& arguments,
                                           const std::atomic<bool>& cancelled) {
  const std::string what = absl::StrCat("podman ", arguments.front());
  auto run = AskPodman(arguments, kPodman, cancelled, kMostListed);
  if (absl::IsDeadlineExceeded(run.status())) {
    return absl::DeadlineExceededError(
        absl::StrCat(what, " does not end (a lock of its storage, or a disk that hangs?)"));
  }
  TUTTI_RETURN_IF_ERROR(run.status());
  if (run->exit.ok()) return std::move(run->out);
  const std::string said = ErrorIn(run->err);
  return absl::InternalError(absl::StrCat(what, ": ", said.empty() ? run->exit.ToString() : said));
}

// Reads what podman reports of a container; the name stays empty if it is no job's.
JobContainer ContainerOf(const nlohmann::json& told) {
  const auto labels = told.value("Labels", nlohmann::json());
  const auto names = told.value("Names", nlohmann::json());
  if (!labels.is_object() || !names.is_array() || names.empty()) return {};
  return {names.front().get<std::string>(), labels.value(kFolderLabel, ""),
          labels.value(kRootLabel, "")};
}

// Returns all containers of jobs that podman has for this user, whether they run or not.
absl::StatusOr<std::vector<JobContainer>> ListContainers(const std::atomic<bool>& cancelled) {
  TUTTI_ASSIGN_OR_RETURN(
      const std::string text,
      OutputOfPodman(
          {"ps", "--all", absl::StrCat("--filter=label=", kFolderLabel), "--format=json"},
          cancelled));
  std::vector<JobContainer> containers;
  try {
    for (const nlohmann::json& told : nlohmann::json::parse(text)) {
      JobContainer one = ContainerOf(told);
      if (!one.name.empty()) containers.push_back(std::move(one));
    }
  } catch (const nlohmann::json::exception& error) {
    return absl::InternalError(absl::StrCat("podman ps: ", error.what()));
  }
  return containers;
}

absl::Status RemoveOnce(const std::set<std::string>& names, const std::atomic<bool>& cancelled) {
  std::vector<std::string> arguments = {"rm", "--force", "--ignore", "--volumes", "--time=0"};
  arguments.insert(arguments.end(), names.begin(), names.end());
  return OutputOfPodman(arguments, cancelled).status();
}

}  // namespace

std::vector<std::string> JobContainerNames(absl::string_view allocation, const fs::path& folder,
                                           int count) {
  const std::string hash = base::Hex(base::Sha256Of(folder.native())).substr(0, kHashLength);
  std::vector<std::string> names;
  for (int rank = 0; rank < count; ++rank) {
    names.push_back(absl::StrCat("tutti-", allocation, "-", hash, "-", rank));
  }
  return names;
}

std::vector<std::string> JobContainerLabels(const fs::path& folder) {
  return {absl::StrCat("--label=", kFolderLabel, "=", folder.native()),
          absl::StrCat("--label=", kRootLabel, "=", RootOf(folder).native())};
}

// The note is not durable, since no container runs after a power failure.
absl::Status NoteContainers(const fs::path& folder, const std::vector<std::string>& names) {
  return base::ReplaceFile(NoteIn(folder), absl::StrCat(absl::StrJoin(names, "\n"), "\n"), 0600);
}

// A folder that does not answer may have one.
bool HasNoteOfContainers(const fs::path& folder) {
  std::error_code error;
  return fs::exists(NoteIn(folder), error) || error;
}

absl::Status ForgetContainers(const fs::path& folder) {
  TUTTI_RETURN_IF_ERROR(EndWaitingIn(folder, base::Deadline::After(kProcesses)));
  std::error_code error;
  fs::remove(NoteIn(folder), error);
  return error ? base::ErrnoStatus(NoteIn(folder).native(), error.value()) : absl::OkStatus();
}

absl::Status RemoveContainers(const std::set<std::string>& names,
                              const std::atomic<bool>& cancelled) {
  if (names.empty()) return absl::OkStatus();
  absl::Status podmans = EndPodmansOf(names, base::Deadline::After(kProcesses));
  absl::Status removed = RemoveOnce(names, cancelled);
  // One whose podman was killed half-way may be busy for a moment.
  for (int i = 1; i < kRemovals && absl::IsInternal(removed) && !cancelled; ++i) {
    absl::SleepFor(kBetweenRemovals);
    removed = RemoveOnce(names, cancelled);
  }
  // The monitors of containers that podman cannot remove are ended, too, so that nothing runs in
  // them.
  absl::Status monitors = EndMonitorsOf(names, base::Deadline::After(kProcesses));
  if (removed.ok()) removed = std::move(podmans);
  return removed.ok() ? monitors : removed;
}

void KillLeftContainers(const std::vector<fs::path>& folders) {
  std::set<std::string> names;
  for (const fs::path& folder : folders) names.merge(NotedIn(folder));
  KillWithin(names);
}

absl::Status RemoveLeftContainers(const fs::path& folder, const std::atomic<bool>& cancelled) {
  std::set<std::string> names = NotedIn(folder);
  KillWithin(names);
  TUTTI_RETURN_IF_ERROR(RemoveContainers(names, cancelled));
  // Should the note have lacked any.
  TUTTI_ASSIGN_OR_RETURN(const std::vector<JobContainer> all, ListContainers(cancelled));
  names.clear();
  for (const JobContainer& one : all) {
    if (one.folder == folder) names.insert(one.name);
  }
  TUTTI_RETURN_IF_ERROR(RemoveContainers(names, cancelled));
  return ForgetContainers(folder);
}

absl::StatusOr<size_t> RemoveStrayContainers(const fs::path& root,
                                             const std::atomic<bool>& cancelled) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<JobContainer> all, ListContainers(cancelled));
  std::set<std::string> names;
  for (const JobContainer& one : all) {
    if (one.root == root && !HasNoteOfContainers(one.folder)) names.insert(one.name);
  }
  TUTTI_RETURN_IF_ERROR(RemoveContainers(names, cancelled));
  return names.size();
}

}  // namespace tutti::container
