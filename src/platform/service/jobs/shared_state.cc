#include "platform/service/jobs/shared_state.h"

#include <utility>

#include "base/hash.h"
#include "base/machine/machine.h"

namespace tutti::service {
namespace {

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
  return !state.read_work.Hangs(queue) &&
         state.read_work.DoWithin(queue, std::move(read), deadline);
}

}  // namespace tutti::service
