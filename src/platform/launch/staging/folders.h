// Makes the empty folders that a job's processes find on a node.
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "platform/launch/node/node_folders.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Returns the scratch folder's path, or, if that leaves too little of the 108 characters of a Unix
// socket's address, as Python's multiprocessing makes them there, the path of a short link to it in
// /tmp, which no other user can guess beforehand.
std::filesystem::path ShortScratch(const spec::LaunchPlan& plan);
// Removes the link, if there is one.
void RemoveShortScratch(const spec::LaunchPlan& plan);

// Makes the folders that a job's files go to; what is there already stays.
absl::Status MakeEmptyFolders(const NodeFolders& folders);
// Makes these folders, the MPI host file, and the short link.
absl::Status MakeFolders(const spec::LaunchPlan& plan);

}  // namespace tutti::launch
