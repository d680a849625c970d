// Pulls or builds a job's image on this node, once and under a lock, and returns the id of its
// content, so that all of a job's ranks on the node run the same image even if its tag moves
// meanwhile.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "platform/container/registry_logins.h"
#include "spec/types/job.h"

namespace tutti::container {

struct MadeImage {
  std::string id;    // of what it holds; for `podman run`
  std::string note;  // what differs from what was asked for; empty: nothing
};

// Finds, pulls or builds the environment's image, and installs its packages in it (packages.h), if
// it has any. A name with a tag other than "latest", with a digest or of this
// machine (localhost/…) is pulled if it is not here; "latest" is asked for each time, and what is
// here is taken if the registry does not answer. `folder` takes locks and podman's words
// (image-KEY.log). `logins`: by which podman pulls, beside those that the user has; they lie in
// memory for as long as it does. FailedPrecondition says why in one line, with the place in the job
// file; Cancelled once `cancelled` is set.
absl::StatusOr<MadeImage> MakeImage(const spec::Environment& environment,
                                    const std::filesystem::path& folder,
                                    const std::atomic<bool>& cancelled, const Logins& logins = {});

// Returns the name under which a build is kept: "localhost/tutti-build:" and the hash of its files.
absl::StatusOr<std::string> NameOfBuild(const spec::Image& image);

// Returns "docker.io/library/python:3.11" for "python:3.11", as Docker has it.
std::string FullReference(const std::string& reference);

// Returns whether a registry may have another image under that name tomorrow.
bool MayChange(const std::string& reference);

// Checks that this machine can run the job; InvalidArgument, with a line and the remedy for each
// environment of the job, or of one below it, that is an image, if its nodes are this machine's and
// this machine has no podman.
absl::Status CheckCanRun(const spec::JobSpec& job);

}  // namespace tutti::container
