// Writes the launch plans of an allocation for its launchers to read: of a gang one file for all of
// its nodes and a small one for each (spec/json/gang_plan.h), so that a gang of n nodes takes n
// small files and not n times its n nodes.
#pragma once

#include <filesystem>
#include <string>

#include "platform/engine/engine.h"

namespace tutti::engine {

// Returns the text of a node's plan.json. If there are several nodes, it says that the rest is in
// the file `shared`.
std::string PlanText(const Allocation& allocation, const spec::NodePart& node,
                     const std::filesystem::path& shared);

// Writes that file, readable by its owner alone and not brought to the disk. Does nothing for an
// allocation of one node, or where the file has that text already.
absl::Status WriteSharedPlan(const Allocation& allocation, const std::filesystem::path& shared);

}  // namespace tutti::engine
