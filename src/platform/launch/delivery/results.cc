#include "platform/launch/delivery/results.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/launch/node/node_folders.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNamed = 5;      // of what is left out
constexpr size_t kMostFolders = 100;  // that are empty, and that have files
constexpr size_t kLongestPath = 200;

bool IsWithin(const fs::path& folder, const fs::path& path) {
  const auto [end, at] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

// The job has removed it.
bool IsAbsent(const fs::path& folder) {
  std::error_code ignored;
  return fs::symlink_status(folder, ignored).type() == fs::file_type::not_found;
}

// One output's folder.
class Walk {
 public:
  // `own`: the folders within which links to files are followed.
  Walk(fs::path folder, const std::vector<fs::path>& own, Results& results)
      : folder_(std::move(folder)), own_(own), results_(results) {}

  void Take(const std::string& prefix) {
    std::error_code error;
    root_ = fs::canonical(folder_, error);
    if (error == std::errc::no_such_file_or_directory && IsAbsent(folder_)) return;
    if (!error && IsOutOfTheJob(root_)) {
      return LeaveOut(prefix, absl::StrCat("a link out of the job's folder", TargetOf(folder_)));
    }
    if (!error) error = TakeEntries(root_, prefix, false);
    if (error == std::errc::permission_denied) {
      results_.failure.Update(absl::PermissionDeniedError(
          absl::StrCat("read ", absl::StrContains(prefix, '/') ? "" : "./", prefix,
                       ": Permission denied; a job must keep its right to read it")));
    } else if (error) {
      results_.failure.Update(base::ErrnoStatus(absl::StrCat("read ", prefix), error.value()));
    }
  }

 private:
  // Returns the error that ended it before all entries were taken.
  std::error_code TakeEntries(const fs::path& folder, const std::string& prefix, bool by_link) {
    std::error_code error;
    auto entry = fs::directory_iterator(folder, error);
    const bool is_empty = !error && entry == fs::directory_iterator();
    if (is_empty && folder != root_) {
      results_.empty_folders.push_back(base::BoundedUtf8(prefix, kLongestPath));
    }
    for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
      TakeEntry(*entry, absl::StrCat(prefix, "/", entry->path().filename().native()), by_link);
    }
    return error;
  }

  void TakeFolder(const fs::path& folder, const std::string& prefix, bool by_link) {
    const std::error_code error = TakeEntries(folder, prefix, by_link);
    if (error == std::errc::permission_denied) {
      LeaveOut(prefix, "a folder that may not be read");
    } else if (error) {
      LeaveOut(prefix, error.message());
      NoteUnread(prefix, error.value());
    }
  }

  // What is gone by now is no fault of the disk.
  void NoteUnread(absl::string_view path, int error_number) {
    if (error_number == ENOENT || error_number == EACCES) return;
    results_.unread.Update(base::ErrnoStatus(absl::StrCat("read ", path), error_number));
  }

  void TakeEntry(const fs::directory_entry& entry, const std::string& path, bool by_link) {
    std::error_code error, ignored;
    const bool is_link = entry.is_symlink(ignored);
    const fs::file_type type = entry.status(error).type();
    if (is_link && type == fs::file_type::regular && LeadsOutOfTheJob(entry.path())) {
      LeaveOut(path, absl::StrCat("a link out of the job's folder", TargetOf(entry.path())));
    } else if (type == fs::file_type::regular && ::access(entry.path().c_str(), R_OK) != 0) {
      const int error_number = errno;
      LeaveOut(path, error_number == EACCES ? "a file that may not be read"
                                            : std::generic_category().message(error_number));
      NoteUnread(path, error_number);
    } else if (type == fs::file_type::regular) {
      results_.files.push_back({entry.path(), path});
    } else if (type == fs::file_type::directory) {
      is_link ? TakeLink(entry.path(), path, by_link) : TakeFolder(entry.path(), path, by_link);
    } else if (error && !(is_link && error == std::errc::no_such_file_or_directory)) {
      LeaveOut(path, error.message());
      NoteUnread(path, error.value());
    } else {
      LeaveOut(path, is_link                         ? "a link to no file"
                     : type == fs::file_type::fifo   ? "a pipe"
                     : type == fs::file_type::socket ? "a socket"
                                                     : "no file");
    }
  }

  bool LeadsOutOfTheJob(const fs::path& link) const {
    std::error_code error;
    const fs::path target = fs::canonical(link, error);
    return error || IsOutOfTheJob(target);
  }

  bool IsOutOfTheJob(const fs::path& resolved) const {
    return std::none_of(own_.begin(), own_.end(),
                        [&](const fs::path& folder) { return IsWithin(folder, resolved); });
  }

  // ", to /etc/passwd"; "" if that cannot be found out.
  static std::string TargetOf(const fs::path& link) {
    std::error_code error;
    const fs::path target = fs::canonical(link, error);
    return error ? "" : absl::StrCat(", to ", base::BoundedUtf8(target.native(), kLongestPath));
  }

  void TakeLink(const fs::path& link, const std::string& path, bool by_link) {
    std::error_code error;
    const fs::path target = fs::canonical(link, error);
    const fs::path holder = error ? fs::path() : fs::canonical(link.parent_path(), error);
    if (error) {
      LeaveOut(path, error.message());
    } else if (!IsWithin(root_, target)) {
      LeaveOut(path, absl::StrCat("a link out of its folder", TargetOf(link)));
    } else if (by_link) {
      LeaveOut(path, "a link within what a link leads to");
    } else if (IsWithin(target, holder)) {
      LeaveOut(path, "a link to a folder that holds it");
    } else {
      TakeFolder(target, path, true);
    }
  }

  void LeaveOut(absl::string_view path, absl::string_view reason) {
    results_.left_out.push_back(
        absl::StrCat(base::BoundedUtf8(path, kLongestPath), " (", reason, ")"));
  }

  const fs::path folder_;
  const std::vector<fs::path>& own_;
  Results& results_;
  fs::path root_;
};

// Returns the folders that the job's processes write their results to, without links in their
// paths. One that the job has replaced by a link is none of its own.
std::vector<fs::path> OwnFolders(const spec::LaunchPlan& plan) {
  std::vector<fs::path> own;
  for (const std::string& directory : {plan.directory, plan.former_directory}) {
    std::error_code error;
    const fs::path resolved = fs::canonical(directory, error);
    if (directory.empty() || error) continue;
    const NodeFolders folders(resolved);
    own.insert(own.end(), {folders.work(), folders.outputs()});
  }
  return own;
}

// The service's own logs have these names.
bool HasReservedName(const Result& result) {
  return absl::StartsWith(result.path, "logs/rank-") ||
         absl::StartsWith(result.path, "logs/arrivals");
}

// Returns the folders below which files lie, by how deep they are.
std::set<std::pair<size_t, std::string>> FilledFolders(const std::vector<Result>& files) {
  std::set<std::pair<size_t, std::string>> folders;
  for (const Result& file : files) {
    size_t depth = static_cast<size_t>(std::count(file.path.begin(), file.path.end(), '/'));
    for (size_t end = file.path.rfind('/'); depth > 1; end = file.path.rfind('/', end - 1)) {
      std::string folder = base::BoundedUtf8(file.path.substr(0, end), kLongestPath);
      if (!folders.emplace(--depth, std::move(folder)).second) break;
    }
  }
  return folders;
}

}  // namespace

Results ResultsOf(const spec::LaunchPlan& plan) {
  const NodeFolders folders(plan.directory);
  const std::vector<fs::path> own = OwnFolders(plan);
  Results results;
  Walk(folders.work_outputs(), own, results).Take("outputs");
  Walk(folders.work_logs(), own, results).Take("logs");
  std::erase_if(results.files, HasReservedName);
  for (const auto& [name, output] : plan.outputs) {
    Walk(folders.outputs() / name, own, results).Take(absl::StrCat("outputs/", name));
  }
  std::sort(results.left_out.begin(), results.left_out.end());
  std::sort(results.empty_folders.begin(), results.empty_folders.end());
  return results;
}

Results FilesOfOutput(const spec::LaunchPlan& plan, const std::string& name) {
  const std::vector<fs::path> own = OwnFolders(plan);
  Results results;
  Walk(NodeFolders(plan.directory).outputs() / name, own, results)
      .Take(absl::StrCat("outputs/", name));
  return results;
}

void DescribeLeftOut(const Results& results, bool has_other_nodes, nlohmann::json& event) {
  const auto first = [](const std::vector<std::string>& texts, size_t most) {
    return std::vector<std::string>(
        texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(std::min(texts.size(), most)));
  };
  const std::vector<std::string>& left_out = results.left_out;
  if (!left_out.empty()) event["left_out"] = first(left_out, kMostNamed);
  if (left_out.size() > kMostNamed) event["left_out_more"] = left_out.size() - kMostNamed;
  if (!results.empty_folders.empty()) {
    event["empty_folders"] = first(results.empty_folders, kMostFolders);
  }
  if (!has_other_nodes) return;
  std::vector<std::string> filled;
  for (const auto& [depth, folder] : FilledFolders(results.files)) filled.push_back(folder);
  if (!filled.empty()) event["filled_folders"] = first(filled, kMostFolders);
  if (filled.size() > kMostFolders) event["more_filled_folders"] = true;
}

}  // namespace tutti::launch
