#include "platform/launch/delivery/results.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "platform/launch/node/node_folders.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNamed = 5;

bool IsWithin(const fs::path& folder, const fs::path& path) {
  const auto [end, at] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

// One output's folder.
class Walk {
 public:
  Walk(const fs::path& folder, Results& results) : results_(results) {
    std::error_code error;
    root_ = fs::canonical(folder, error);
    error_ = error;
  }

  void Take(const std::string& prefix) {
    if (!error_) Take(root_, prefix, false);
    if (error_ && error_ != std::errc::no_such_file_or_directory) {
      spdlog::warn("{}: {}", prefix, error_.message());
    }
  }

 private:
  void Take(const fs::path& folder, const std::string& prefix, bool by_link) {
    auto entry = fs::directory_iterator(folder, error_);
    if (error_ == std::errc::permission_denied) {
      LeaveOut(prefix, "a folder that may not be read");
      error_.clear();
    }
    for (const fs::directory_iterator end; !error_ && entry != end; entry.increment(error_)) {
      TakeEntry(*entry, absl::StrCat(prefix, "/", entry->path().filename().native()), by_link);
    }
  }

  void TakeEntry(const fs::directory_entry& entry, const std::string& path, bool by_link) {
    std::error_code ignored;
    const bool is_link = entry.is_symlink(ignored);
    if (entry.is_regular_file(ignored)) {
      results_.files.push_back({entry.path(), path});
    } else if (entry.is_directory(ignored)) {
      is_link ? TakeLink(entry.path(), path, by_link) : Take(entry.path(), path, by_link);
    } else {
      LeaveOut(path, is_link                    ? "a link to no file"
                     : entry.is_fifo(ignored)   ? "a pipe"
                     : entry.is_socket(ignored) ? "a socket"
                                                : "no file");
    }
  }

  void TakeLink(const fs::path& link, const std::string& path, bool by_link) {
    std::error_code error;
    const fs::path target = fs::canonical(link, error);
    if (error || !IsWithin(root_, target)) {
      LeaveOut(path, "a link out of its folder");
    } else if (by_link) {
      LeaveOut(path, "a link within what a link leads to");
    } else if (IsWithin(target, fs::canonical(link.parent_path(), error))) {
      LeaveOut(path, "a link to a folder that holds it");
    } else {
      Take(target, path, true);
    }
  }

  void LeaveOut(const std::string& path, absl::string_view reason) {
    results_.left_out.push_back(absl::StrCat(path, " (", reason, ")"));
  }

  Results& results_;
  fs::path root_;
  std::error_code error_;
};

// The service's own logs have these names.
bool IsReserved(const Result& result) {
  return absl::StartsWith(result.path, "logs/rank-") ||
         absl::StartsWith(result.path, "logs/arrivals");
}

}  // namespace

Results ResultsOf(const spec::LaunchPlan& plan) {
  const NodeFolders folders(plan.directory);
  Results results;
  Walk(folders.work_outputs(), results).Take("outputs");
  Walk(folders.work_logs(), results).Take("logs");
  std::erase_if(results.files, IsReserved);
  for (const auto& [name, output] : plan.outputs) {
    Walk(folders.outputs() / name, results).Take(absl::StrCat("outputs/", name));
  }
  std::sort(results.left_out.begin(), results.left_out.end());
  return results;
}

std::string LeftOutNote(const Results& results) {
  const std::vector<std::string>& all = results.left_out;
  if (all.empty()) return "";
  const size_t named = std::min(all.size(), kMostNamed);
  return absl::StrCat(
      "left out of the results: ",
      absl::StrJoin(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(named), ", "),
      named < all.size() ? absl::StrCat(" and ", all.size() - named, " more") : "");
}

}  // namespace tutti::launch
