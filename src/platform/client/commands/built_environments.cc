// Lists the Python environments that jobs, or `tutti environment build`, have made, for `tutti
// environment list`; with --built it shows nothing else.
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/machine/folder.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/table.h"
#include "spec/environment/install_failure.h"
#include "spec/site/site.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLargestList = 1 << 20;

struct ListedEnvironment {
  std::string key, place;  // the compute in whose shared folder it lies; "": here
  std::vector<std::string> packages;
  std::string python;  // "3.11"
  uint64_t bytes = 0;
  absl::Time last_use;
};

// Each file once, though it has several names.
uint64_t BytesOfTree(const fs::path& folder) {
  uint64_t bytes = 0;
  std::set<std::pair<dev_t, ino_t>> counted;  // of those with several names
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat info = {};
    if (::lstat(entry->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (info.st_nlink > 1 && !counted.emplace(info.st_dev, info.st_ino).second) continue;
    bytes += static_cast<uint64_t>(info.st_size);
  }
  return bytes;
}

std::string PythonIn(const fs::path& folder) {
  for (const std::string& name : base::NamesIn(folder / "lib")) {
    if (absl::StartsWith(name, "python3.")) return name.substr(6);
  }
  return "";
}

// To know how large they are takes a look at each of their files.
enum class Sizes { kNone, kKnown };

std::vector<ListedEnvironment> BuiltIn(const fs::path& environments, const std::string& place,
                                       Sizes sizes) {
  std::vector<ListedEnvironment> built;
  for (const std::string& name : base::NamesIn(environments)) {
    const fs::path folder = environments / name;
    const auto used = base::ChangedAt(folder);
    if (!used || !base::ChangedAt(folder / "complete") || !base::ChangedAt(folder / "pyvenv.cfg")) {
      continue;
    }
    const std::string list = base::ReadFile(folder / "requirements.txt", kLargestList).value_or("");
    const std::string safe_list = spec::WithoutPasswords(list);
    built.push_back({.key = name,
                     .place = place,
                     .packages = absl::StrSplit(safe_list, '\n', absl::SkipEmpty()),
                     .python = PythonIn(folder),
                     .bytes = sizes == Sizes::kKnown ? BytesOfTree(folder) : 0,
                     .last_use = *used});
  }
  return built;
}

// The longest unused last.
std::vector<ListedEnvironment> AllBuilt(const fs::path& home, const spec::Site& site, Sizes sizes) {
  std::vector<ListedEnvironment> all = BuiltIn(home / "environments", "", sizes);
  for (const auto& [name, compute] : site.slurm_computes) {
    if (!absl::StartsWith(compute.folder, "/")) continue;  // a folder of each node's own
    for (ListedEnvironment& one : BuiltIn(fs::path(compute.folder) / "environments", name, sizes)) {
      all.push_back(std::move(one));
    }
  }
  std::sort(all.begin(), all.end(), [](const ListedEnvironment& a, const ListedEnvironment& b) {
    return std::pair(b.last_use, a.key) < std::pair(a.last_use, b.key);
  });
  return all;
}

nlohmann::json JsonOfBuilt(const std::vector<ListedEnvironment>& all) {
  nlohmann::json list = nlohmann::json::array();
  for (const ListedEnvironment& one : all) {
    list.push_back(
        {{"key", one.key},
         {"place", one.place.empty() ? nlohmann::json() : nlohmann::json(one.place)},
         {"packages", one.packages},
         {"python", one.python},
         {"bytes", one.bytes},
         {"last_used", absl::FormatTime(absl::RFC3339_sec, one.last_use, absl::UTCTimeZone())}});
  }
  return {{"environments", std::move(list)}};
}

void ShowTableOfBuilt(Context& context, const std::vector<ListedEnvironment>& all, Sizes sizes) {
  Table table(
      {{"KEY"},
       {"PLACE"},
       {"PYTHON"},
       {.title = "SIZE", .align = Table::Align::kRight, .leaves = sizes == Sizes::kKnown ? 0 : 1},
       {"UNUSED", Table::Align::kRight},
       {"PACKAGES", Table::Align::kLeft, true}});
  const absl::Time now = absl::Now();
  for (const ListedEnvironment& one : all) {
    table.Add({{one.key},
               {one.place.empty() ? "here" : one.place},
               {one.python},
               {sizes == Sizes::kKnown ? Bytes(one.bytes) : ""},
               {Age(now - one.last_use)},
               {one.packages.empty() ? "none" : absl::StrJoin(one.packages, " ")}});
  }
  table.DropEmpty();
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
}

}  // namespace

absl::StatusOr<ExitCode> EnvironmentListBuilt(Context& context, Format format) {
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(context.home));
  const std::vector<ListedEnvironment> all = AllBuilt(context.home, site, Sizes::kKnown);
  if (format == Format::kTable) {
    ShowTableOfBuilt(context, all, Sizes::kKnown);
  } else {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, JsonOfBuilt(all).dump(), format));
  }
  return ExitCode::kOk;
}

void ShowBuiltEnvironments(Context& context, const spec::Site& site) {
  const std::vector<ListedEnvironment> all = AllBuilt(context.home, site, Sizes::kNone);
  if (all.empty()) return;
  context.out << "\n";
  ShowTableOfBuilt(context, all, Sizes::kNone);
  context.err << "tutti environment list --built has their sizes\n";
}

}  // namespace tutti::client
