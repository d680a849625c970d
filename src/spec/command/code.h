// Parses `code:` when it is the address of a git repository, in pip's words or in Docker's:
//
//   git+https://github.com/me/project.git@v1.2#subdirectory=training
//   https://github.com/me/project.git#v1.2:training
//
// Revision and folder may be left out. Pure functions; thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::spec {

struct GitCode {
  std::string url;       // that git understands; https, http, ssh, git or file
  std::string revision;  // a branch, tag or commit; empty: the default branch
  std::string folder;    // relative, below the repository's root; empty: the root
};

// Returns whether `code` means a repository and no path.
bool IsGitCode(absl::string_view code);

// Parses `code`; InvalidArgument for another scheme, a revision that could be an option of git, or
// a folder that leaves the repository.
absl::StatusOr<GitCode> ParseGitCode(absl::string_view code);

}  // namespace tutti::spec
