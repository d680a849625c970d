#include "platform/service/jobs/shared_state.h"

#include <sys/stat.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/machine/machine.h"
#include "base/status.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kPatienceWithSnapshots = absl::Seconds(2);
constexpr absl::Duration kPatienceOnceOneHangs = absl::Milliseconds(20);

ServiceOptions WithDefaults(ServiceOptions options) {
  if (!options.find_port) options.find_port = FindFreePort;
  if (options.boot_id.empty()) options.boot_id = base::BootId();
  if (!options.random_hex) options.random_hex = base::RandomHex;
  return options;
}

}  // namespace

SharedState::SharedState(ServiceOptions with, store::Store* jobs, Engines where,
                         const base::Clock* time)
    : options(WithDefaults(std::move(with))),
      store(jobs),
      engines(std::move(where)),
      clock(time),
      snapshots(options.directory / "snapshots"),
      files(options.directory / "jobs"),
      models(options.directory, time) {}

std::vector<FolderWatch::Folder> SharedState::OwnFolders() const {
  std::vector<FolderWatch::Folder> own;
  for (const char* const name :
       {"jobs", "snapshots", "nodes", "environments", "data", "assets", "clusters"}) {
    own.push_back({name, options.directory / name});
  }
  for (const auto& [compute, engine] : engines.clusters) {
    const std::filesystem::path shared = engine->SharedFolder();
    if (shared.empty()) continue;
    own.push_back({absl::StrCat("folder of compute ", compute), shared});
    for (const char* const cache : {"environments", "data"}) {
      own.push_back({absl::StrCat(cache, " of compute ", compute), shared / cache});
    }
  }
  return own;
}

void NoteWriteOfJobs(SharedState& state, const absl::Status& status, uint64_t bytes) {
  if (IsFullDisk(status)) DiskOfJobs(state).NoteWrite(status, bytes);
}

DiskGauge& DiskOfJobs(SharedState& state) {
  struct stat home = {}, jobs = {};
  const bool is_apart = ::stat(state.options.directory.c_str(), &home) == 0 &&
                        ::stat(state.files.FolderOf("").c_str(), &jobs) == 0 &&
                        home.st_dev != jobs.st_dev;
  return is_apart ? state.jobs_disk : state.disk;
}

absl::Status AwaitDurable(SharedState& state) {
  return state.store->AwaitDurable(state.store->LastDeferred());
}

absl::Status AwaitDurable(SharedState& state, int64_t event) {
  return state.store->AwaitEvent(event);
}

bool DoWithin(SharedState& state, base::WorkQueues& work, const std::string& queue,
              const std::filesystem::path& path, base::WorkQueues::Task task,
              base::Deadline deadline) {
  return work.DoWithin(queue, std::move(task), deadline,
                       [&] { return !state.folders.Check(path).ok(); });
}

bool ReadFiles(SharedState& state, absl::string_view job, std::function<void()> read,
               base::Deadline deadline) {
  const std::string queue(job);
  // Where one read hangs others may: then nobody waits for long.
  if (!state.read_work.OlderThan(kHangs).empty()) {
    deadline = base::Deadline::Sooner(deadline, base::Deadline::After(kPatienceOnceOneHangs));
  }
  const std::filesystem::path folder = state.files.FolderOf(job);
  return state.folders.Check(folder).ok() && !state.read_work.Hangs(queue, kHangs) &&
         DoWithin(state, state.read_work, queue, folder, std::move(read), deadline);
}

absl::Status FindSnapshot(SharedState& state, const std::string& name) {
  const auto status = std::make_shared<absl::Status>();
  const auto find = [status, name, snapshots = state.snapshots] {
    *status = snapshots.Find(name).status();
  };
  const std::filesystem::path folder = state.snapshots.directory();
  TUTTI_RETURN_IF_ERROR(state.folders.Check(folder));
  const bool answers = !state.snapshot_work.Hangs(name, kHangs) &&
                       DoWithin(state, state.snapshot_work, name, folder, find,
                                base::Deadline::After(kPatienceWithSnapshots));
  if (answers) return *status;
  TUTTI_RETURN_IF_ERROR(state.folders.Check(folder));
  return absl::UnavailableError("the service's folder of snapshots does not answer");
}

}  // namespace tutti::service
