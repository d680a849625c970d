// Says which of the service's secrets are logins of the registries that a job's image comes from.
// Thread-safe.
#pragma once

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "base/faults.h"
#include "platform/container/registry_logins.h"
#include "platform/service/jobs/engines.h"
#include "platform/service/secrets/secrets.h"
#include "spec/types/job.h"

namespace tutti::service {

// Returns the secrets that a launcher which makes the image is given: its registry's, or, of a
// build, whose Dockerfile is not read here, those of all registries. `known`: all secrets' names.
std::set<std::string> LoginSecretsOf(const spec::Image& image, const std::set<std::string>& known);

// Returns the logins of the registries of the job's images, and of those below it, by which the
// service asks them; without those of computes whose launchers reach the service by a folder alone:
// what podman has on their nodes counts there. Adds a fault, with its place in the job file, for
// each that cannot be read; Unavailable if they cannot be looked at now. Asks the store, of jobs
// with images, and reads Dockerfiles.
absl::StatusOr<container::Logins> LoginsOfImages(const spec::JobSpec& job, store::Store& store,
                                                 const Secrets& secrets, const Engines& engines,
                                                 base::Faults& faults);

}  // namespace tutti::service
