#include "platform/mlflow/store_walk.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "platform/mlflow/file_store.h"

namespace tutti::mlflow {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestMeta = 1 << 20;
constexpr int kDeepestMetric = 5;  // folders below a run's metrics

bool IsFolder(const fs::directory_entry& entry) {
  std::error_code error;
  return !entry.is_symlink(error) && entry.is_directory(error);
}

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(fs::symlink_status(path, error));
}

// Reads a text as PyYAML writes it: bare, or in single quotes where YAML would take it for
// something else.
std::string Unquoted(absl::string_view value) {
  value = absl::StripAsciiWhitespace(value);
  if (absl::ConsumePrefix(&value, "'") && absl::ConsumeSuffix(&value, "'")) {
    return absl::StrReplaceAll(value, {{"''", "'"}});
  }
  return std::string(value);
}

// Entry is a line of what MLflow writes as YAML.
struct Entry {
  explicit Entry(absl::string_view line) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    key = std::string(pair.first);
    const std::string value = Unquoted(pair.second);
    path = std::string(absl::StripPrefix(value, "file://"));
  }
  std::string With(absl::string_view value) const { return absl::StrCat(key, ": ", Quoted(value)); }

  std::string key, path;
};

// "artifact_uri: /old/mlruns/0/RUN/artifacts" with `here` in place of /old/mlruns/0/RUN; "" if that
// is not what the line says. `part`: "0/RUN", by which the place within the store is recognised.
std::string Moved(absl::string_view line, const std::string& part, const std::string& here) {
  const Entry entry(line);
  if (entry.key != "artifact_uri" && entry.key != "artifact_location") return "";
  absl::string_view path = entry.path;
  const absl::string_view end = absl::EndsWith(path, "/artifacts") ? "/artifacts" : "";
  path.remove_suffix(end.size());
  if (!absl::StartsWith(path, "/") || !absl::EndsWith(path, absl::StrCat("/", part))) return "";
  return entry.With(absl::StrCat(here, end));
}

// "source: /old/mlruns/0/RUN/artifacts/model" with the store in place of /old/mlruns; "" if the
// store has no such run or model.
std::string MovedVersion(absl::string_view line, const fs::path& store) {
  const Entry entry(line);
  if (entry.key != "source" && entry.key != "storage_location") return "";
  const std::vector<std::string> names = absl::StrSplit(entry.path, '/', absl::SkipEmpty());
  const bool is_plain = std::find(names.begin(), names.end(), "..") == names.end();
  if (!absl::StartsWith(entry.path, "/") || !is_plain) return "";
  for (size_t first = 1; first + 2 < names.size(); ++first) {
    // EXPERIMENT/RUN/artifacts or EXPERIMENT/models/MODEL/artifacts
    const size_t artifacts = first + (names[first + 1] == "models" ? 3 : 2);
    if (artifacts >= names.size() || names[artifacts] != "artifacts") continue;
    const auto part = [&](size_t end) {
      return absl::StrJoin(names.begin() + static_cast<std::ptrdiff_t>(first),
                           names.begin() + static_cast<std::ptrdiff_t>(end), "/");
    };
    if (!IsFile(store / part(artifacts) / "meta.yaml")) continue;
    return entry.With((store / part(names.size())).string());
  }
  return "";
}

// Puts into a meta.yaml what `moved` makes of a line; "" leaves it. What cannot be written stays as
// it was: the artifacts are there all the same.
void ReplaceLines(const fs::path& meta,
                  const std::function<std::string(const std::string& line)>& moved) {
  if (!IsFile(meta)) return;
  const auto text = base::ReadFile(meta, kLargestMeta);
  if (!text.ok()) return;
  std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  bool changed = false;
  for (std::string& line : lines) {
    std::string other = moved(line);
    if (other.empty() || other == line) continue;
    line = std::move(other);
    changed = true;
  }
  if (changed) base::ReplaceFile(meta, absl::StrJoin(lines, "\n")).IgnoreError();
}

}  // namespace

std::string Quoted(absl::string_view value) {
  return absl::StrCat("'", absl::StrReplaceAll(value, {{"'", "''"}}), "'");
}

Budget::Budget() : left(kMostEntries) {}

std::vector<fs::path> FoldersIn(const fs::path& folder, Budget& budget) {
  std::vector<fs::path> folders;
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(folder, error))) return folders;
  auto entry = fs::directory_iterator(folder, error);
  for (const fs::directory_iterator end; !error && entry != end && budget.Take();
       entry.increment(error)) {
    if (IsFolder(*entry)) folders.push_back(entry->path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::vector<fs::path> StoresIn(const fs::path& outputs) {
  std::map<int, fs::path> stores;
  Budget budget;
  for (const fs::path& folder : FoldersIn(outputs, budget)) {
    const std::string name = folder.filename().string();
    absl::string_view rest = name;
    int rank = 0;
    const bool is_one = name == StoreName(0) || (absl::ConsumePrefix(&rest, "mlruns-rank-") &&
                                                 absl::SimpleAtoi(rest, &rank) && rank > 0);
    if (is_one) stores[rank] = folder;
  }
  std::vector<fs::path> paths;
  for (const auto& [rank, store] : stores) paths.push_back(store);
  return paths;
}

std::vector<fs::path> ExperimentsOf(const fs::path& store, Budget& budget) {
  std::vector<fs::path> experiments = FoldersIn(store, budget);
  std::erase_if(experiments, [](const fs::path& folder) {
    const std::string name = folder.filename().string();
    return name == "models" || name == ".trash";
  });
  return experiments;
}

std::vector<fs::path> RunsOf(const fs::path& store, Budget& budget) {
  std::vector<fs::path> runs;
  for (const fs::path& experiment : ExperimentsOf(store, budget)) {
    for (fs::path& folder : FoldersIn(experiment, budget)) {
      const std::string name = folder.filename().string();
      if (name != "models" && name != "tags" && name != "traces") runs.push_back(std::move(folder));
    }
  }
  return runs;
}

bool IsNested(const fs::path& run) {
  std::error_code error;
  return fs::exists(run / "tags" / kParentTag, error);
}

void ForEachMetricOf(
    const fs::path& run, Budget& budget,
    const std::function<void(const std::string& name, const fs::path& file)>& visit) {
  const fs::path folder = run / "metrics";
  ForEachFileBelow(folder, kDeepestMetric, budget, [&](const fs::path& file) {
    visit(file.lexically_relative(folder).generic_string(), file);
  });
}

std::optional<LoggedValue> ParseLoggedValue(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  LoggedValue logged;
  const bool is_one = words.size() >= 2 && absl::SimpleAtoi(words[0], &logged.time) &&
                      absl::SimpleAtod(words[1], &logged.value) &&
                      (words.size() == 2 || absl::SimpleAtoi(words[2], &logged.step));
  return is_one ? std::optional(logged) : std::nullopt;
}

void ForEachFileBelow(const fs::path& folder, int depth, Budget& budget,
                      const std::function<void(const fs::path&)>& visit) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(folder, error))) return;
  auto entry = fs::directory_iterator(folder, error);
  for (const fs::directory_iterator end; !error && entry != end && budget.Take();
       entry.increment(error)) {
    if (IsFile(entry->path())) visit(entry->path());
    if (depth > 0 && IsFolder(*entry)) ForEachFileBelow(entry->path(), depth - 1, budget, visit);
  }
}

std::string TailOf(const fs::path& file, uint64_t bytes) {
  const auto fd = base::Open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd.ok()) return "";
  const off_t size = ::lseek(fd->get(), 0, SEEK_END);
  if (size <= 0) return "";
  const auto wanted = std::min<uint64_t>(bytes, static_cast<uint64_t>(size));
  std::string text(wanted, '\0');
  const ssize_t got = ::pread(fd->get(), text.data(), wanted, size - static_cast<off_t>(wanted));
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, got)));
  // The first line of a tail may be half of one.
  if (wanted < static_cast<uint64_t>(size)) text.erase(0, text.find('\n') + 1);
  return text;
}

std::string ValueIn(const fs::path& yaml, absl::string_view key) {
  if (!IsFile(yaml)) return "";
  const auto text = base::ReadFile(yaml, kLargestMeta);
  if (!text.ok()) return "";
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (absl::ConsumePrefix(&line, key) && absl::ConsumePrefix(&line, ": ")) return Unquoted(line);
  }
  return "";
}

void PointToItself(const fs::path& store, const fs::path& part) {
  const std::string within = part.lexically_relative(store).generic_string();
  ReplaceLines(part / "meta.yaml",
               [&](const std::string& line) { return Moved(line, within, part.string()); });
}

void PointVersionToStore(const fs::path& store, const fs::path& version) {
  ReplaceLines(version / "meta.yaml",
               [&](const std::string& line) { return MovedVersion(line, store); });
}

}  // namespace tutti::mlflow
