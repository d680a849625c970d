// Makes the choices of script_job.h that look at the file system: the environment, the code folder,
// and whether that can be sent. Internal to this folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tutti::client {

// EnvironmentChoice is a value of the key `environment`, of which one member is set.
struct EnvironmentChoice {
  std::string name;        // host, a name, or file:…
  std::string conda_file;  // conda's, pip's or pyproject's
  std::string dockerfile_folder;
};

// Returns what `--environment` says: `given` is a name, or a file or folder, relative to where the
// user is.
absl::StatusOr<EnvironmentChoice> EnvironmentOf(const std::string& given);
// Returns what lies in `folder`; `remarks` get what was taken, and what beside it was not. `place`
// tells them where that is: "beside it".
EnvironmentChoice EnvironmentIn(const std::filesystem::path& folder, const std::string& place,
                                std::vector<std::string>& remarks);

struct Project {
  std::filesystem::path root;
  std::string mark;  // the file or folder by which it is known; "": the root is only a guess
};

// Returns the project that a script in `folder` belongs to. Its root is the nearest folder, from
// that one upwards, with a file of packages (as EnvironmentIn knows them), a pyproject.toml or
// .git; `folder` itself, if there is none before the user's home or "/".
Project ProjectOf(const std::filesystem::path& folder);

// Checks the code's folder; InvalidArgument, with what to do, for a folder that nobody means to
// send: "/", a home, or one with very much in it. A large one is a remark.
absl::Status CheckCodeFolder(const std::filesystem::path& folder, const std::string& script,
                             std::vector<std::string>& remarks);

}  // namespace tutti::client
