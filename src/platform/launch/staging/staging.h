// Puts in place what the processes need: folders, the code snapshot, the inputs, the environment;
// and works out the command, now that the paths are known.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/launch/delivery/delivery.h"
#include "platform/launch/environment/environment.h"
#include "platform/launch/node/node_folders.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

struct Staged {
  Variables inputs;       // name -> path or literal
  Variables outputs;      // name -> folder
  std::string command;    // expanded
  std::string python;     // the job's own Python environment; empty: the machine's
  std::string image;      // the id of the image that ranks run in; empty: none
  std::string note;       // how that differs from what was asked for; for the user
  std::string temporary;  // the scratch folder, by a path that is short enough for Unix sockets
};

// The scratch folder's path, or, if that leaves too little of the 108 characters of a Unix socket's
// address, as Python's multiprocessing makes them there, the name that a short link to it has.
std::filesystem::path ShortScratch(const NodeFolders& folders);
// Removes the link, if there is one.
void RemoveShortScratch(const NodeFolders& folders);

// Those that a job's files go to; what is there already stays.
absl::Status MakeEmptyFolders(const NodeFolders& folders);

// Whether there is nothing in it that could take long: no code to fetch, no input or output to
// copy, no environment to make.
bool StagesAtOnce(const spec::LaunchPlan& plan);

// An error says what is missing and, where it is the job's, how to mend it. `cancelled` is looked
// at between files and ends the work with Cancelled; so does delivery->AbandonCode().
absl::StatusOr<Staged> Stage(const spec::LaunchPlan& plan, Delivery* delivery,
                             const std::atomic<bool>& cancelled);

// The facts of this node with what was staged on it.
NodeFacts With(const Staged& staged, NodeFacts facts);

}  // namespace tutti::launch
