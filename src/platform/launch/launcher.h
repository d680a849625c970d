// Runs a job on one node: takes the launch plan, puts code and inputs in place, waits for the gang,
// runs the node's processes with the whole environment contract, spools their output and events,
// delivers everything to the service, and leaves no process behind. docs/formats/launch-plan.md is
// the contract; docs/formats/environment.md what the processes see.
#pragma once

#include <filesystem>
#include <optional>

#include "absl/status/status.h"
#include "base/unique_fd.h"
#include "platform/launch/environment/node_facts.h"
#include "platform/launch/node/launcher_options.h"
#include "platform/launch/node/signals.h"

namespace tutti::launch {

// StandbyState is what a launcher may have done before there was a plan.
struct StandbyState {
  std::optional<Signals> signals;  // blocked
  base::UniqueFd lock;             // claim.h's, of the plan's folder
  std::optional<NodeFacts> facts;
};

// Is the body of `tutti launch --plan FILE`. Call it first thing in main of a process of its own:
// it makes the process a subreaper, blocks signals and starts threads. SIGTERM or SIGINT ends the
// node's processes (SIGTERM, after the plan's grace SIGKILL); output and results are still
// delivered. Returns when the service has acknowledged everything (or has answered 410). OK also
// when the job failed: that is in the events. FailedPrecondition if another launcher of this
// allocation lives.
absl::Status RunLauncher(const std::filesystem::path& plan_file);
absl::Status RunLauncher(const std::filesystem::path& plan_file, const LauncherOptions& options,
                         StandbyState ahead = {});

}  // namespace tutti::launch
