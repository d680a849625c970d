// Says which other nodes fetch a job's inputs at the same time as this one. Pure; thread-safe.
#pragma once

#include <optional>

#include "platform/storage/storage_request.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Returns the nodes of the gang, which listen at the port after the one at which their ranks meet.
// Nothing where there are no others, or all of them have one folder: of one machine, or shared.
std::optional<storage::Peers> GangPeers(const spec::LaunchPlan& plan);

}  // namespace tutti::launch
