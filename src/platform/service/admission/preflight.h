// Checks all that can be known of a job before it queues, and reports every fault of it at once.
// Thread-safe. A job of which the reader refused a part is checked in the others (spec::Reading).
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "platform/container/registry_logins.h"
#include "platform/service/secrets/secret_info.h"
#include "spec/types/job.h"

namespace tutti::service {

// Run the checks of all rooms that need the machine but not the service. InvalidArgument has each
// fault once, a line each; ResourceExhausted if it is the disk's alone. What may fail, or cannot be
// known from here, goes to `warnings`, of which each is kept once.

// Checks the paths, programs, GPUs and disk space of the job and of those below it. Hangs as long
// as a file system does that has one of PathsOf (remote_paths.h). `sent`: the code that has come
// with the job, by JobSpec::AllCode; another machine's folders are not looked for here.
absl::Status PreflightFiles(const spec::JobSpec& job, const std::set<std::string>& sent,
                            const std::filesystem::path& directory,
                            std::vector<std::string>& warnings);
// Checks their Pythons, images, registries and inputs from elsewhere, all at the same time, within
// five seconds (a second more where an image may have been built already); it blocks that long.
// `signatures`: of the inputs' addresses that name theirs; `logins`: of their images' registries.
absl::Status PreflightNetwork(const spec::JobSpec& job, const std::filesystem::path& directory,
                              const SecretValues& signatures, const container::Logins& logins,
                              std::vector<std::string>& warnings);

}  // namespace tutti::service
