// Checks, before a job queues, that its images can be had: it asks the registries for those that
// the job names and those that its Dockerfiles are built from. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/deadline.h"
#include "platform/container/registry_logins.h"
#include "spec/types/job.h"

namespace tutti::container {

// Asks for the images that are not on this machine, several at a time and until `deadline` at most;
// whether what they are for was built earlier is then looked up, for a second at most.
// InvalidArgument has a line for each that cannot be had, with its place in the job file: its
// registry's name does not resolve, nobody listens there, it asks for a login, it does not have the
// image. A warning is added where that is not known: of a step's image, which another step may
// push; of jobs on clusters, whose nodes may reach what this machine does not; of a registry that
// does not answer in time. A login of `logins`, those of the images' secrets, that its registry
// does not take is never a warning. Without podman nothing is asked: see CheckCanRun.
absl::Status CheckRegistries(const spec::JobSpec& job, const Logins& logins,
                             base::Deadline deadline, std::vector<std::string>& warnings);

}  // namespace tutti::container
