// Walks a folder of this machine: the files that a pattern matches (base/text/path_pattern.h), no
// deeper than it reaches, or all, links followed. Thread-safe.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/text/path_pattern.h"

namespace tutti::base {

// Calls `visit` with the path below `folder` of each regular file, links followed, that the whole
// of `pattern` fits, each once, in no order. A folder that a link names is entered where a
// component other than "**" fits it, so that no loop of links is endless. What this user may not
// list, or is gone by then, has no files, unless it is `folder` itself.
//
// Returns what `visit` returns once that is no OK; Cancelled once `may_go_on`, which is asked at
// each name that is met, returns false; else why a folder cannot be read.
absl::Status WalkPattern(const std::filesystem::path& folder, absl::string_view pattern,
                         Wildcards wildcards, const std::function<bool()>& may_go_on,
                         const std::function<absl::Status(const std::filesystem::path&)>& visit);

// TreeEntry is what a walk of all that a folder has meets.
struct TreeEntry {
  std::filesystem::path path;  // the walked folder's, and what is below it
  struct stat status = {};     // of what a link leads to
  // 0: it is a regular file or a folder. ELOOP: a link to a folder that it lies in; EOPNOTSUPP: a
  // pipe, a socket or a device; else why it cannot be looked at.
  int error = 0;
  bool is_link = false;

  bool is_folder() const { return error == 0 && S_ISDIR(status.st_mode); }
};

// Looks at one path, as a walk that meets it does.
TreeEntry LookAt(std::filesystem::path path);

// Says what an entry with an error is: "a link to a folder that it lies in", "a link to nothing",
// "a pipe", or the error's own text.
std::string WhyNoFile(const TreeEntry& entry);

// Calls `visit` with each entry, a folder before what is in it; what is below folders if it is
// `recursive`. Links are followed, but not to a folder that the link lies in, above `folder` too:
// of such a link there would be no end. An error that `visit` returns ends the walk and is its
// result; so does a folder that cannot be read, with an errno's status that names it.
absl::Status WalkTree(const std::filesystem::path& folder, bool recursive,
                      const std::function<absl::Status(const TreeEntry&)>& visit);

}  // namespace tutti::base
