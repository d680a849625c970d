// Walks the files of a folder of this machine that a pattern matches (base/text/path_pattern.h),
// and no deeper than it reaches. Thread-safe.
#pragma once

#include <filesystem>
#include <functional>

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

}  // namespace tutti::base
