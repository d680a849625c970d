#include "platform/client/archive/snapshot.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/faults.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/client/archive/ignore.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

// Item is one entry to be written; `name` is relative to the code folder.
struct Item {
  std::string name;
  fs::path path;
  fs::file_type type;
};

// Returns the rules of an image's build, by the first of its ignore files that is there.
absl::StatusOr<IgnoreRules> RulesOfBuild(const fs::path& folder) {
  constexpr std::pair<const char*, IgnoreRules::Kind> kFiles[] = {
      {".containerignore", IgnoreRules::Kind::kDocker},
      {".dockerignore", IgnoreRules::Kind::kDocker},
      {".amlignore", IgnoreRules::Kind::kGit}};
  for (const auto& [name, kind] : kFiles) {
    auto text = base::ReadFile(folder / name, 1 << 20);
    if (text.ok()) return IgnoreRules(*text, kind);
    if (!absl::IsNotFound(text.status())) return text.status();
  }
  return IgnoreRules("");
}

absl::Status CheckLink(const fs::path& link, const fs::path& folder) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link, error);
  if (error) return base::ErrnoStatus(absl::StrCat("read link ", link.string()), error.value());
  const fs::path place = (link.parent_path() / target).lexically_normal();
  const fs::path from_folder = place.lexically_relative(folder);
  if (target.is_absolute() || from_folder.empty() || *from_folder.begin() == "..") {
    return absl::InvalidArgumentError(absl::StrCat(
        link.string(), " is a link to ", target.string(),
        ", outside of the code folder: copy what it points to, or leave it out in .amlignore"));
  }
  return absl::OkStatus();
}

// Returns whether a file's name is one that tokens or private keys usually have.
bool MayBeSecret(const fs::path& path) {
  static constexpr absl::string_view kNames[] = {".env",       ".netrc", ".git-credentials",
                                                 "id_rsa",     "id_dsa", "id_ecdsa",
                                                 "id_ed25519", ".pypirc"};
  const std::string name = path.filename().string();
  if (name == "credentials") return path.parent_path().filename() == ".aws";
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Whatever the ignore files say: another machine has no use for it.
bool IsOfThisMachine(const fs::path& path, bool is_directory) {
  const fs::path name = path.filename();
  return name == ".git" ||
         (is_directory && (name == "__pycache__" || base::IsPythonEnvironment(path)));
}

bool IsDownload(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kDownloadMark, error);
}

constexpr size_t kMostRefusals = 10;  // that are told one by one

// Ignored is what an ignore file or the mark of a download leaves out, by whole paths.
struct Ignored {
  fs::path path, by;
  bool is_directory;
};

// Content is what a folder holds.
struct Content {
  std::vector<Item> items;
  std::vector<Ignored> ignored;
  std::vector<std::string> refusals;  // of what cannot be sent
};

// Returns why it cannot be sent; OK if it can.
absl::Status CheckEntry(const fs::path& path, fs::file_type type, const fs::path& folder) {
  if (type == fs::file_type::symlink) return CheckLink(path, folder);
  if (type == fs::file_type::regular || type == fs::file_type::directory) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path.string(), " is no file, folder or link: leave it out in .amlignore"));
}

absl::Status Collect(const fs::path& folder, const fs::path& below, const IgnoreFiles& ignores,
                     Content& content) {
  std::error_code error;
  for (fs::directory_iterator at(below, error), end; !error && at != end; at.increment(error)) {
    const fs::path& path = at->path();
    const fs::file_type type = at->symlink_status().type();
    const bool is_directory = type == fs::file_type::directory;
    if (IsOfThisMachine(path, is_directory)) continue;
    if (is_directory && IsDownload(path)) {
      content.ignored.push_back({path, path / kDownloadMark, true});
      continue;
    }
    if (const fs::path* by = ignores.LeavesOut(path, is_directory); by != nullptr) {
      content.ignored.push_back({path, *by, is_directory});
      continue;
    }
    const absl::Status sendable = CheckEntry(path, type, folder);
    if (absl::IsInvalidArgument(sendable)) content.refusals.emplace_back(sendable.message());
    if (!sendable.ok() && !absl::IsInvalidArgument(sendable)) return sendable;
    content.items.push_back({path.lexically_relative(folder).string(), path, type});
    if (!is_directory) continue;
    TUTTI_ASSIGN_OR_RETURN(const IgnoreFiles ignores_below, ignores.Below(path));
    TUTTI_RETURN_IF_ERROR(Collect(folder, path, ignores_below, content));
  }
  if (error) return base::ErrnoStatus(absl::StrCat("read ", below.string()), error.value());
  return absl::OkStatus();
}

// Adds the names of what a build gets of `below`.
absl::Status CollectOfBuild(const fs::path& folder, const fs::path& below, const IgnoreRules& rules,
                            std::vector<std::string>& names) {
  std::error_code error;
  for (fs::directory_iterator at(below, error), end; !error && at != end; at.increment(error)) {
    const fs::file_type type = at->symlink_status().type();
    const bool is_directory = type == fs::file_type::directory;
    std::string name = at->path().lexically_relative(folder).string();
    const bool is_left_out = rules.Decide(name, is_directory).value_or(false);
    if (!is_left_out && !is_directory && type != fs::file_type::regular &&
        type != fs::file_type::symlink) {
      return absl::InvalidArgumentError(absl::StrCat(
          at->path().string(), " is no file, folder or link: leave it out in .dockerignore"));
    }
    if (!is_left_out) names.push_back(std::move(name));
    if (!is_directory || (is_left_out && !rules.MayReinclude())) continue;
    TUTTI_RETURN_IF_ERROR(CollectOfBuild(folder, at->path(), rules, names));
  }
  if (error) return base::ErrnoStatus(absl::StrCat("read ", below.string()), error.value());
  return absl::OkStatus();
}

void Measure(const fs::path& below, const IgnoreFiles& ignores, const CodeSize& most,
             CodeSize& size) {
  std::error_code error;
  for (fs::directory_iterator at(below, error), end; !error && at != end; at.increment(error)) {
    if (size.files >= most.files || size.bytes >= most.bytes) return;
    const fs::path& path = at->path();
    std::error_code unreadable;
    const fs::file_type type = at->symlink_status(unreadable).type();
    const bool is_directory = type == fs::file_type::directory;
    if (IsOfThisMachine(path, is_directory) || ignores.LeavesOut(path, is_directory)) continue;
    if (is_directory && IsDownload(path)) continue;
    if (is_directory) Measure(path, ignores.Below(path).value_or(ignores), most, size);
    if (type != fs::file_type::regular) continue;
    ++size.files;
    const uintmax_t bytes = at->file_size(unreadable);
    if (!unreadable) size.bytes += bytes;
  }
}

// Files and folders that are left out: there may be millions.
constexpr int kMostOfOne = 10'000, kMostOfAll = 100'000;

// Counts what is left out with `path`, as long as `uncounted` entries are left of all.
void Count(const fs::path& path, bool is_directory, int& uncounted, ExcludedPath& left_out) {
  std::error_code error;
  const auto add = [&](const fs::directory_entry& entry) {
    if (entry.symlink_status(error).type() != fs::file_type::directory) ++left_out.files;
    if (entry.symlink_status(error).type() != fs::file_type::regular) return;
    const uintmax_t bytes = entry.file_size(error);
    if (!error) left_out.bytes += bytes;
  };
  if (!is_directory) return add(fs::directory_entry(path, error));
  constexpr auto kUnreadable = fs::directory_options::skip_permission_denied;
  std::error_code end_of_walk;
  int seen = 0;
  for (fs::recursive_directory_iterator at(path, kUnreadable, end_of_walk), end;
       !end_of_walk && at != end; at.increment(end_of_walk)) {
    left_out.has_more = uncounted == 0 || seen == kMostOfOne;
    if (left_out.has_more) return;
    --uncounted;
    ++seen;
    add(*at);
  }
}

// Counts what is left out, with paths relative to the folder `from`.
std::vector<ExcludedPath> Counted(const std::vector<Ignored>& ignored, const fs::path& from) {
  std::vector<ExcludedPath> all;
  int uncounted = kMostOfAll;
  for (const Ignored& each : ignored) {
    ExcludedPath left_out{.name = each.path.lexically_relative(from).string(),
                          .by = each.by.lexically_relative(from).string()};
    if (each.is_directory) left_out.name += "/";
    Count(each.path, each.is_directory, uncounted, left_out);
    all.push_back(std::move(left_out));
  }
  std::sort(all.begin(), all.end(), [](const ExcludedPath& a, const ExcludedPath& b) {
    return std::tuple(b.has_more, b.bytes, a.name) < std::tuple(a.has_more, a.bytes, b.name);
  });
  return all;
}

// Writes entries by libarchive. Not thread-safe.
class Packer {
 public:
  explicit Packer(const fs::path& file) : file_(file), archive_(archive_write_new()) {}
  ~Packer() { archive_write_free(archive_); }

  absl::Status Open() {
    archive_write_add_filter_zstd(archive_);
    archive_write_set_format_pax_restricted(archive_);
    // Names are the file system's bytes, whatever the locale of either side.
    archive_write_set_options(archive_, "hdrcharset=BINARY");
    // The size of the padding at the end; fixed, since the bytes are hashed.
    archive_write_set_bytes_in_last_block(archive_, 1);
    return Check(archive_write_open_filename(archive_, file_.c_str()));
  }

  absl::Status Add(const Item& item, Snapshot& snapshot) {
    const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(),
                                                                              &archive_entry_free);
    archive_entry_set_pathname(entry.get(), item.name.c_str());
    archive_entry_set_mtime(entry.get(), 0, 0);
    if (item.type == fs::file_type::symlink) {
      archive_entry_set_filetype(entry.get(), AE_IFLNK);
      archive_entry_set_symlink(entry.get(), fs::read_symlink(item.path).c_str());
      archive_entry_set_perm(entry.get(), 0777);
      return Check(archive_write_header(archive_, entry.get()));
    }
    if (item.type == fs::file_type::directory) {
      archive_entry_set_filetype(entry.get(), AE_IFDIR);
      archive_entry_set_perm(entry.get(), 0755);
      return Check(archive_write_header(archive_, entry.get()));
    }
    return AddFile(item, entry.get(), snapshot);
  }

  absl::Status Close() { return Check(archive_write_close(archive_)); }

 private:
  absl::Status AddFile(const Item& item, archive_entry* entry, Snapshot& snapshot) {
    TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, base::Open(item.path, O_RDONLY | O_NOFOLLOW));
    struct stat info;
    if (::fstat(fd.get(), &info) != 0) return base::ErrnoStatus(item.path.string());
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, (info.st_mode & S_IXUSR) != 0 ? 0755 : 0644);
    archive_entry_set_size(entry, info.st_size);
    TUTTI_RETURN_IF_ERROR(Check(archive_write_header(archive_, entry)));

    int64_t copied = 0;
    std::vector<char> block(1 << 18);
    while (true) {
      const ssize_t n = ::read(fd.get(), block.data(), block.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return base::ErrnoStatus(absl::StrCat("read ", item.path.string()));
      if (n == 0) break;
      copied += n;
      if (copied > info.st_size) break;
      if (archive_write_data(archive_, block.data(), static_cast<size_t>(n)) != n) {
        return Check(ARCHIVE_FATAL);
      }
    }
    if (copied != info.st_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          item.path.string(), " changed while it was packed: leave it out in .amlignore"));
    }
    if (MayBeSecret(item.path)) snapshot.secret_files.push_back(item.name);
    ++snapshot.files;
    snapshot.content_bytes += static_cast<uint64_t>(copied);
    return absl::OkStatus();
  }

  absl::Status Check(int code) {
    if (code == ARCHIVE_OK) return absl::OkStatus();
    const int error = archive_errno(archive_);
    const char* text = archive_error_string(archive_);
    const std::string what =
        absl::StrCat("pack code into ", file_.string(), ": ", text == nullptr ? "failed" : text);
    return error > 0 ? absl::ErrnoToStatus(error, what) : absl::InternalError(what);
  }

  const fs::path file_;
  archive* const archive_;
};

// Lists the refusals in the order of their names; beyond the first ones it says only how many there
// are.
absl::Status Refusal(std::vector<std::string> refusals, const fs::path& folder) {
  std::sort(refusals.begin(), refusals.end());
  if (refusals.size() > kMostRefusals) {
    const size_t more = refusals.size() - kMostRefusals;
    refusals.resize(kMostRefusals);
    refusals.push_back(absl::StrCat(folder.string(), " has ", more,
                                    " more of what cannot be sent: leave it out in .amlignore"));
  }
  return absl::InvalidArgumentError(absl::StrJoin(refusals, "\n"));
}

// Returns what lies in a folder, with names that count from it.
absl::StatusOr<Content> FolderContent(const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (real == real.root_path()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "code: ", folder.string(), " is all of this machine: name the folder that is meant"));
  }
  TUTTI_ASSIGN_OR_RETURN(const IgnoreFiles ignores, IgnoreFiles::OfCode(real));
  Content content;
  TUTTI_RETURN_IF_ERROR(Collect(real, real, ignores, content));
  if (content.refusals.empty()) return content;
  return Refusal(std::move(content.refusals), folder);
}

absl::StatusOr<Content> CodeContent(const fs::path& code, absl::string_view key = "code") {
  std::error_code error;
  const fs::file_type type = fs::status(code, error).type();
  if (type == fs::file_type::directory) return FolderContent(code);
  if (type == fs::file_type::regular) {
    return Content{.items = {{code.filename().string(), fs::canonical(code, error), type}}};
  }
  return absl::NotFoundError(absl::StrCat(key, ": ", code.string(), " does not exist"));
}

// A folder itself is one of them, and a part of their names.
absl::StatusOr<Content> IncludeContent(const fs::path& include) {
  std::error_code error;
  TUTTI_ASSIGN_OR_RETURN(Content content, CodeContent(include, "additional_includes"));
  if (!fs::is_directory(include, error)) return content;
  const std::string folder = include.filename().string();
  for (Item& item : content.items) item.name = absl::StrCat(folder, "/", item.name);
  content.items.push_back({folder, include, fs::file_type::directory});
  return content;
}

absl::StatusOr<Content> AllContent(const fs::path& code, const std::vector<fs::path>& includes) {
  Content content;
  std::vector<Item>& items = content.items;
  base::Faults faults;
  const auto take = [&](absl::StatusOr<Content> more) {
    if (more.ok()) {
      std::move(more->items.begin(), more->items.end(), std::back_inserter(items));
      std::move(more->ignored.begin(), more->ignored.end(), std::back_inserter(content.ignored));
    }
    const bool other = !more.ok() && !absl::IsInvalidArgument(more.status());
    if (!other) faults.Add(more.status());
    return other ? more.status() : absl::OkStatus();
  };
  if (!code.empty()) TUTTI_RETURN_IF_ERROR(take(CodeContent(code)));
  for (const fs::path& include : includes) TUTTI_RETURN_IF_ERROR(take(IncludeContent(include)));
  TUTTI_RETURN_IF_ERROR(faults.status());
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.name < b.name; });
  const auto two = std::adjacent_find(
      items.begin(), items.end(), [](const Item& a, const Item& b) { return a.name == b.name; });
  if (two == items.end()) return content;
  return absl::InvalidArgumentError(absl::StrCat(
      "additional_includes: ", two->path.string(), " and ", std::next(two)->path.string(),
      " would both be \"", two->name, "\" beside the code: rename one, or leave it out"));
}

// Returns the folder that names of what is left out count from.
fs::path FolderOf(const fs::path& code, const std::vector<fs::path>& includes) {
  std::error_code error;
  const fs::path real = fs::canonical(code.empty() ? includes.front() : code, error);
  return !code.empty() && fs::is_directory(real, error) ? real : real.parent_path();
}

}  // namespace

absl::StatusOr<Snapshot> PackCode(const fs::path& code, const fs::path& archive,
                                  const std::vector<fs::path>& includes) {
  TUTTI_ASSIGN_OR_RETURN(const Content content, AllContent(code, includes));
  Snapshot snapshot;
  Packer packer(archive);
  TUTTI_RETURN_IF_ERROR(packer.Open());
  for (const Item& item : content.items) TUTTI_RETURN_IF_ERROR(packer.Add(item, snapshot));
  TUTTI_RETURN_IF_ERROR(packer.Close());
  TUTTI_ASSIGN_OR_RETURN(const base::Sha256Digest digest, base::Sha256OfFile(archive));
  snapshot.hash = absl::StrCat("sha256:", base::Hex(digest));
  std::error_code error;
  snapshot.archive_bytes = fs::file_size(archive, error);
  snapshot.left_out = Counted(content.ignored, FolderOf(code, includes));
  return snapshot;
}

absl::Status CheckCode(const fs::path& code, const std::vector<fs::path>& includes) {
  return AllContent(code, includes).status();
}

bool IsUnfilteredHome(const fs::path& code) {
  const char* home = std::getenv("HOME");
  std::error_code error;
  if (home == nullptr || !fs::equivalent(code, home, error)) return false;
  return !fs::exists(code / ".amlignore", error) && !fs::exists(code / ".gitignore", error);
}

CodeSize MeasureCode(const fs::path& folder, int most_files, uint64_t most_bytes) {
  CodeSize size;
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  Measure(real, IgnoreFiles::OfCode(real).value_or(IgnoreFiles()), {most_files, most_bytes}, size);
  return size;
}

absl::StatusOr<std::vector<std::string>> FilesOfCode(const fs::path& code) {
  TUTTI_ASSIGN_OR_RETURN(const Content content, AllContent(code, {}));
  std::vector<std::string> names;
  for (const Item& item : content.items) names.push_back(item.name);
  return names;
}

absl::StatusOr<std::vector<std::string>> FilesOfBuild(const fs::path& folder) {
  TUTTI_ASSIGN_OR_RETURN(const IgnoreRules rules, RulesOfBuild(folder));
  std::vector<std::string> names;
  TUTTI_RETURN_IF_ERROR(CollectOfBuild(folder, folder, rules, names));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tutti::client
