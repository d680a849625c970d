// Parses `code:` when it is no path of this machine. It may be the address of a git repository, in
// pip's words or in Docker's, whose revision and folder may be left out,
//
//   git+https://github.com/me/project.git@v1.2#subdirectory=training
//   https://github.com/me/project.git#v1.2:training
//
// or that of a folder or a file in a store (data_address.h):
//
//   azureml://datastores/scripts/paths/training
//
// Pure functions; thread-safe.
#pragma once

#include <string>

#include "absl/status/status.h"
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

// Returns whether `code` means a place in a store. Https is of a store where its host is Azure's.
bool IsCodeInStore(absl::string_view code);

// Checks what can be said of the address of code in a store without a list of datastores;
// InvalidArgument for one with a signature, for a pattern, and for one that names no container or
// leaves it. The message has no signature.
absl::Status CheckCodeInStore(absl::string_view code);

// Returns whether `code` is fetched from elsewhere, by git or from a store.
bool IsRemoteCode(absl::string_view code);

}  // namespace tutti::spec
