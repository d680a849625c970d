#include "platform/service/jobs/shared_state.h"

#include <utility>

#include "base/hash.h"
#include "base/machine/machine.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kHangs = absl::Seconds(1);
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
      snapshots(options.directory / "snapshots", options.directory / "incoming"),
      files(options.directory / "jobs", options.directory / "incoming") {}

bool ReadFiles(SharedState& state, absl::string_view job, std::function<void()> read,
               base::Deadline deadline) {
  const std::string queue(job);
  // Where one read hangs others may: then nobody waits for long, nor once all threads do.
  const size_t hanging = state.read_work.OlderThan(kHangs).size();
  if (hanging >= kMostFolderThreads) return false;
  if (hanging > 0) {
    deadline = base::Deadline::Sooner(deadline, base::Deadline::After(kPatienceOnceOneHangs));
  }
  return !state.read_work.Hangs(queue) &&
         state.read_work.DoWithin(queue, std::move(read), deadline);
}

}  // namespace tutti::service
