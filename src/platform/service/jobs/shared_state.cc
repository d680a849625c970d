#include "platform/service/jobs/shared_state.h"

#include <memory>
#include <utility>

#include "base/hash.h"
#include "base/machine/machine.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kPatienceWithSnapshots = absl::Seconds(2);
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

absl::Status AwaitDurable(SharedState& state) {
  return state.store->AwaitDurable(state.store->LastDeferred());
}

absl::Status AwaitDurable(SharedState& state, int64_t event) {
  return state.store->AwaitEvent(event);
}

bool ReadFiles(SharedState& state, absl::string_view job, std::function<void()> read,
               base::Deadline deadline) {
  const std::string queue(job);
  // Where one read hangs others may: then nobody waits for long.
  if (!state.read_work.OlderThan(kHangs).empty()) {
    deadline = base::Deadline::Sooner(deadline, base::Deadline::After(kPatienceOnceOneHangs));
  }
  return !state.read_work.Hangs(queue, kHangs) &&
         state.read_work.DoWithin(queue, std::move(read), deadline);
}

absl::Status FindSnapshot(SharedState& state, const std::string& name) {
  const auto status = std::make_shared<absl::Status>();
  const auto find = [status, name, snapshots = state.snapshots] {
    *status = snapshots.Find(name).status();
  };
  const bool answers =
      !state.snapshot_work.Hangs(name, kHangs) &&
      state.snapshot_work.DoWithin(name, find, base::Deadline::After(kPatienceWithSnapshots));
  if (answers) return *status;
  return absl::UnavailableError("the service's folder of snapshots does not answer");
}

}  // namespace tutti::service
