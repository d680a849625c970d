// Makes the choices of script_job.h that look at the file system: the environment, and whether the
// code folder can be sent. Internal to this folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tutti::client {

// A value of the key `environment`, of which one member is set.
struct EnvironmentChoice {
  std::string name;        // host, a name, or file:…
  std::string conda_file;  // conda's, pip's or pyproject's
  std::string dockerfile_folder;
};

// Returns what `--environment` says: `given` is a name, or a file or folder, relative to where the
// user is.
absl::StatusOr<EnvironmentChoice> EnvironmentOf(const std::string& given);
// Returns what lies in `folder`; `remarks` get what was taken, and what beside it was not.
EnvironmentChoice EnvironmentBeside(const std::filesystem::path& folder,
                                    std::vector<std::string>& remarks);

// Checks the code's folder; InvalidArgument, with what to do, for a folder that nobody means to
// send: "/", a home, or one with very much in it. A large one is a remark.
absl::Status CheckCodeFolder(const std::filesystem::path& folder, const std::string& script,
                             std::vector<std::string>& remarks);

}  // namespace tutti::client
