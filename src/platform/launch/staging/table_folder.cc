#include "platform/launch/staging/table_folder.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/machine/pattern_walk.h"
#include "base/status.h"
#include "platform/launch/staging/copy.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

class TableFolder {
 public:
  TableFolder(const fs::path& folder, TableFiles files, const std::atomic<bool>& cancelled)
      : folder_(folder), files_(files), cancelled_(cancelled) {}

  absl::Status Add(const TablePart& part) {
    std::error_code error;
    const bool is_folder = fs::is_directory(part.path, error);
    if (error) return base::ErrnoStatus(part.path.native(), error.value());
    if (!is_folder) return Place(part.path, folder_ / part.placed);
    if (!part.pattern.empty()) return AddMatches(part);
    const size_t above = part.path.native().size() + (part.path == "/" ? 0 : 1);
    for (fs::recursive_directory_iterator entry(part.path, error), end; !error && entry != end;
         entry.increment(error)) {
      if (cancelled_) return absl::CancelledError("stopped while a table was laid out");
      const fs::path below = entry->path().native().substr(above);
      std::error_code unseen;
      // A folder is where a file of it is.
      if (entry->is_directory(unseen) && !entry->is_symlink(unseen)) continue;
      TUTTI_RETURN_IF_ERROR(Place(entry->path(), folder_ / part.placed / below));
    }
    if (!error) return absl::OkStatus();
    return base::ErrnoStatus(absl::StrCat("read ", part.path.native()), error.value());
  }

  std::set<fs::path> TakeMatched() { return std::move(matched_); }

 private:
  absl::Status AddMatches(const TablePart& part) {
    bool has_any = false;
    TUTTI_RETURN_IF_ERROR(base::WalkPattern(
        part.path, part.pattern, part.wildcards, [&] { return !cancelled_; },
        [&](const fs::path& below) {
          has_any = true;
          matched_.insert(part.path / below);
          return Place(part.path / below, folder_ / part.placed / below);
        }));
    if (has_any) return absl::OkStatus();
    return absl::NotFoundError(
        absl::StrCat("no file of ", part.path.native(), " matches ", part.pattern));
  }

  absl::Status Place(const fs::path& file, const fs::path& to) {
    std::error_code error;
    const fs::file_status there = fs::symlink_status(to, error);
    if (there.type() == fs::file_type::directory) return Clash(to);
    if (fs::exists(there)) return absl::OkStatus();  // two paths name it
    TUTTI_RETURN_IF_ERROR(MakeFolder(to.parent_path()));
    if (files_ == TableFiles::kCopies) return Copy(file, to, cancelled_);
    fs::create_symlink(file, to, error);
    if (!error) return absl::OkStatus();
    return base::ErrnoStatus(absl::StrCat("link ", to.native()), error.value());
  }

  // Nothing is placed through a part's own links.
  absl::Status MakeFolder(const fs::path& folder) {
    if (folder == folder_ || made_.contains(folder)) return absl::OkStatus();
    TUTTI_RETURN_IF_ERROR(MakeFolder(folder.parent_path()));
    std::error_code error;
    const fs::file_type there = fs::symlink_status(folder, error).type();
    if (there == fs::file_type::not_found) {
      TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
    } else if (there != fs::file_type::directory) {
      return Clash(folder);
    }
    made_.insert(folder);
    return absl::OkStatus();
  }

  absl::Status Clash(const fs::path& to) const {
    return absl::InvalidArgumentError(absl::StrCat("its table has a file and a folder called ",
                                                   to.lexically_relative(folder_).native(),
                                                   ", which no folder can hold"));
  }

  const fs::path& folder_;
  const TableFiles files_;
  const std::atomic<bool>& cancelled_;
  std::set<fs::path> made_;  // folders
  std::set<fs::path> matched_;
};

}  // namespace

absl::StatusOr<std::set<fs::path>> MakeTableFolder(const std::vector<TablePart>& parts,
                                                   const fs::path& folder, TableFiles files,
                                                   const std::atomic<bool>& cancelled) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  TableFolder table(folder, files, cancelled);
  for (const TablePart& part : parts) TUTTI_RETURN_IF_ERROR(table.Add(part));
  return table.TakeMatched();
}

std::vector<std::string> StillThere(const std::set<std::string>& matched) {
  std::vector<std::string> there;
  std::error_code error;
  std::copy_if(matched.begin(), matched.end(), std::back_inserter(there),
               [&](const std::string& file) { return fs::exists(file, error); });
  return there;
}

}  // namespace tutti::launch
