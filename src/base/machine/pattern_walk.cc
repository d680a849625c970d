#include "base/machine/pattern_walk.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace tutti::base {
namespace {

namespace fs = std::filesystem;

bool IsGone(const std::error_code& error) {
  return error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
}

// A folder of NFS is stale that another machine has removed, but also one that is there, as when
// its server has begun anew: whoever asks for it by its path is told.
bool IsStaleAndGone(const fs::path& folder, const std::error_code& error) {
  if (error.value() != ESTALE) return false;
  std::error_code now;
  fs::directory_iterator(folder, now);
  return IsGone(now);
}

class Walk {
 public:
  using Places = std::set<size_t>;  // the components of the pattern that the next name may fit

  Walk(fs::path folder, absl::string_view pattern, Wildcards wildcards,
       const std::function<bool()>& may_go_on,
       const std::function<absl::Status(const fs::path&)>& visit)
      : folder_(std::move(folder)),
        components_(absl::StrSplit(pattern, '/')),
        wildcards_(wildcards),
        may_go_on_(may_go_on),
        visit_(visit) {}

  absl::Status Run() {
    Places first;
    Add(0, first);
    return Enter("", first);
  }

 private:
  // With what stands behind "**", which is no component, too.
  void Add(size_t place, Places& places) const {
    places.insert(place);
    if (place < components_.size() && components_[place] == "**") Add(place + 1, places);
  }

  absl::Status Enter(const fs::path& below, const Places& places) {
    std::error_code error;
    const fs::path here = below.empty() ? folder_ : folder_ / below;
    fs::directory_iterator entry(here, error), end;
    const bool may_be_skipped = IsGone(error) || error == std::errc::permission_denied;
    if (!below.empty() && may_be_skipped) return absl::OkStatus();
    for (; !error && entry != end; entry.increment(error)) {
      if (!may_go_on_()) return absl::CancelledError("stopped while a pattern was looked for");
      TUTTI_RETURN_IF_ERROR(Meet(*entry, below / entry->path().filename(), places));
    }
    if (!error || (!below.empty() && IsStaleAndGone(here, error))) return absl::OkStatus();
    return ErrnoStatus(absl::StrCat("list ", here.native()), error.value());
  }

  absl::Status Meet(const fs::directory_entry& entry, const fs::path& below, const Places& places) {
    Places next, through_link;
    for (const size_t place : places) {
      if (place == components_.size()) continue;
      if (components_[place] == "**") {
        Add(place, next);
      } else if (MatchesPattern(components_[place], below.filename().native(), wildcards_)) {
        Add(place + 1, next);
        Add(place + 1, through_link);
      }
    }
    if (next.empty()) return absl::OkStatus();
    std::error_code unseen;
    if (entry.is_directory(unseen)) {
      const Places& inside = entry.is_symlink(unseen) ? through_link : next;
      const bool reaches = !inside.empty() && *inside.begin() < components_.size();
      return reaches ? Enter(below, inside) : absl::OkStatus();
    }
    const bool fits = next.contains(components_.size()) && entry.is_regular_file(unseen);
    return fits ? visit_(below) : absl::OkStatus();
  }

  const fs::path folder_;
  const std::vector<std::string> components_;
  const Wildcards wildcards_;
  const std::function<bool()>& may_go_on_;
  const std::function<absl::Status(const fs::path&)>& visit_;
};

TreeEntry LookAt(fs::path path, bool is_link) {
  TreeEntry entry{.path = std::move(path), .is_link = is_link};
  if (::stat(entry.path.c_str(), &entry.status) != 0) {
    entry.error = errno;
  } else if (!S_ISDIR(entry.status.st_mode) && !S_ISREG(entry.status.st_mode)) {
    entry.error = EOPNOTSUPP;
  }
  return entry;
}

class TreeWalk {
 public:
  TreeWalk(bool recursive, const std::function<absl::Status(const TreeEntry&)>& visit)
      : recursive_(recursive), visit_(visit) {}

  absl::Status Run(const fs::path& folder) {
    struct stat status = {};
    if (::stat(folder.c_str(), &status) != 0) {
      return ErrnoStatus(absl::StrCat("read ", folder.native()));
    }
    AddFoldersAbove(folder);
    root_depth_ = above_.size();
    return Enter(folder, {status.st_dev, status.st_ino});
  }

 private:
  using Id = std::pair<dev_t, ino_t>;

  // A link to one of these would lead out of the walked folder, up to the whole machine.
  void AddFoldersAbove(const fs::path& folder) {
    std::error_code unseen;
    fs::path at = fs::canonical(folder, unseen);
    while (!unseen && at.has_relative_path()) {
      at = at.parent_path();
      struct stat status = {};
      if (::stat(at.c_str(), &status) == 0) above_.emplace_back(status.st_dev, status.st_ino);
    }
  }

  absl::Status Enter(const fs::path& folder, Id id) {
    above_.push_back(id);
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      TUTTI_RETURN_IF_ERROR(Meet(*entry));
    }
    above_.pop_back();
    const bool is_gone = IsGone(error) && above_.size() > root_depth_;  // since it was met
    if (!error || is_gone) return absl::OkStatus();
    return ErrnoStatus(absl::StrCat("read ", folder.native()), error.value());
  }

  absl::Status Meet(const fs::directory_entry& found) {
    std::error_code unseen;
    TreeEntry entry = LookAt(found.path(), found.is_symlink(unseen));
    const Id id = {entry.status.st_dev, entry.status.st_ino};
    if (entry.is_folder() && std::find(above_.begin(), above_.end(), id) != above_.end()) {
      entry.error = ELOOP;
    }
    TUTTI_RETURN_IF_ERROR(visit_(entry));
    return recursive_ && entry.is_folder() ? Enter(entry.path, id) : absl::OkStatus();
  }

  const bool recursive_;
  const std::function<absl::Status(const TreeEntry&)>& visit_;
  std::vector<Id> above_;  // the folders that hold the walked one, and those that are being walked
  size_t root_depth_ = 0;  // of the walked folder within them
};

}  // namespace

absl::Status WalkPattern(const fs::path& folder, absl::string_view pattern, Wildcards wildcards,
                         const std::function<bool()>& may_go_on,
                         const std::function<absl::Status(const fs::path&)>& visit) {
  return Walk(folder, pattern, wildcards, may_go_on, visit).Run();
}

TreeEntry LookAt(fs::path path) {
  std::error_code unseen;
  const bool is_link = fs::is_symlink(path, unseen);
  return LookAt(std::move(path), is_link);
}

std::string WhyNoFile(const TreeEntry& entry) {
  if (entry.error == ELOOP && S_ISDIR(entry.status.st_mode)) {
    return "a link to a folder that it lies in";
  }
  if (entry.error == ENOENT && entry.is_link) return "a link to nothing";
  if (entry.error != EOPNOTSUPP) return std::generic_category().message(entry.error);
  if (S_ISFIFO(entry.status.st_mode)) return "a pipe";
  return S_ISSOCK(entry.status.st_mode) ? "a socket" : "a device";
}

absl::Status WalkTree(const fs::path& folder, bool recursive,
                      const std::function<absl::Status(const TreeEntry&)>& visit) {
  return TreeWalk(recursive, visit).Run(folder);
}

}  // namespace tutti::base
