// Makes the command line that starts a rank of a job whose environment is an image: `podman run`,
// one container for each rank. A container here is what is installed, not a wall: its processes are
// in the node's network, process numbers, host name and shared memory, are descendants of the
// launcher like any other, and write to the rank's own pipes. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/launch/environment/process_environment.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

struct ContainerStart {
  std::vector<std::string> arguments;
  Variables environment;  // podman's: its own, and what it hands on to the rank
};

// Makes the start in a container; facts.image is the image's id. The allocation's folder and the
// inputs are at the same paths in the container as outside, the inputs for reading only.
// InvalidArgument for an input whose path podman cannot mount.
absl::StatusOr<ContainerStart> ContainerStartOf(const spec::LaunchPlan& plan, int local_rank,
                                                const std::string& command, const NodeFacts& facts);

// Notes that the containers of this node are about to begin (platform/container/job_containers.h).
absl::Status NoteContainers(const spec::LaunchPlan& plan);

// Removes the containers of this node, with whatever runs in them, and what a podman that was
// killed has left of them, and then the note; OK if there are none.
absl::Status RemoveContainers(const spec::LaunchPlan& plan);

// Returns a note on the job's wishes that this node does not meet; "" if it meets all.
std::string ContainerRemark(const spec::LaunchPlan& plan, const NodeFacts& facts);

}  // namespace tutti::launch
