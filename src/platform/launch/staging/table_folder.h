// Lays the files that a table's paths name out in one folder, which is what the job gets of an
// input of mode eval_mount or eval_download; or those that an address with a pattern does.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/text/path_pattern.h"

namespace tutti::launch {

// TablePart is what one path names, as spec::Input has it.
struct TablePart {
  std::filesystem::path path;  // where it lies on this node: a file or a folder
  std::string pattern;         // of a folder: which files below it; empty: all
  std::string placed;          // where in the table's folder
  base::Wildcards wildcards = base::Wildcards::kClasses;  // of the pattern
};

// More files that patterns match are bound to their paths for no job, one by one.
inline constexpr size_t kMostMatchedMounts = 1000;

enum class TableFiles {
  kLinks,   // to where they lie
  kCopies,  // which are the job's own
};

// Makes `folder`, which is not there, or empty, of the parts' files. What two parts have is there
// once: no two files have the same place, as who has placed them has seen to. Folders that a part
// has links to are links, too; a pattern goes into those that a component of it other than "**"
// names. NotFound if a pattern matches no file; InvalidArgument if a file of one part lies where
// another has a folder; Cancelled once `cancelled` is set.
//
// Returns the files that patterns matched, where they lie: of their folders the job gets no more.
absl::StatusOr<std::set<std::filesystem::path>> MakeTableFolder(const std::vector<TablePart>& parts,
                                                                const std::filesystem::path& folder,
                                                                TableFiles files,
                                                                const std::atomic<bool>& cancelled);

// Returns those of the files that are there: where others write, some may have gone since they were
// matched, and what binds a file to its path can not without it.
std::vector<std::string> StillThere(const std::set<std::string>& matched);

}  // namespace tutti::launch
