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

// One entry to be written; `name` is relative to the code folder.
struct Item {
  std::string name;
  fs::path path;
  fs::file_type type;
};

using IgnoreFile = std::pair<const char*, IgnoreRules::Kind>;
constexpr IgnoreFile kOfCode[] = {{".amlignore", IgnoreRules::Kind::kGit},
                                  {".gitignore", IgnoreRules::Kind::kGit}};
constexpr IgnoreFile kOfBuilds[] = {{".containerignore", IgnoreRules::Kind::kDocker},
                                    {".dockerignore", IgnoreRules::Kind::kDocker},
                                    {".amlignore", IgnoreRules::Kind::kGit}};

// By the first of the files that is there.
absl::StatusOr<IgnoreRules> RulesOf(const fs::path& folder,
                                    absl::Span<const IgnoreFile> files = kOfCode) {
  for (const auto& [name, kind] : files) {
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

// Whatever the ignore file says: another machine has no use for it.
bool IsOfThisMachine(const fs::path& path, bool is_directory) {
  return path.filename() == ".git" || (is_directory && base::IsPythonEnvironment(path));
}

constexpr size_t kMostRefusals = 10;  // that are told one by one

// What a folder holds.
struct Content {
  std::vector<Item> items;
  std::vector<std::string> refusals;  // of what cannot be sent
};

// Why it cannot be sent; OK if it can.
absl::Status CheckEntry(const fs::path& path, fs::file_type type, const fs::path& folder) {
  if (type == fs::file_type::symlink) return CheckLink(path, folder);
  if (type == fs::file_type::regular || type == fs::file_type::directory) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path.string(), " is no file, folder or link: leave it out in .amlignore"));
}

absl::Status Collect(const fs::path& folder, const fs::path& below, const IgnoreRules& rules,
                     Content& content) {
  std::error_code error;
  for (fs::directory_iterator at(below, error), end; !error && at != end; at.increment(error)) {
    const fs::path& path = at->path();
    const fs::file_type type = at->symlink_status().type();
    const bool is_directory = type == fs::file_type::directory;
    const std::string name = path.lexically_relative(folder).string();
    if (IsOfThisMachine(path, is_directory) || rules.Ignores(name, is_directory)) continue;
    const absl::Status sendable = CheckEntry(path, type, folder);
    if (absl::IsInvalidArgument(sendable)) content.refusals.emplace_back(sendable.message());
    if (!sendable.ok() && !absl::IsInvalidArgument(sendable)) return sendable;
    content.items.push_back({name, path, type});
    if (is_directory) TUTTI_RETURN_IF_ERROR(Collect(folder, path, rules, content));
  }
  if (error) return base::ErrnoStatus(absl::StrCat("read ", below.string()), error.value());
  return absl::OkStatus();
}

// Adds the names of what a build gets of `below`.
absl::Status CollectOfBuild(const fs::path& folder, const fs::path& below, const IgnoreRules& rules,
                            std::vector<std::string>& names) {
  std::error_code error;
  for (fs::directory_iterator at(below, error), end; !error && at != end; at.increment(error)) {
    const bool is_directory = at->symlink_status().type() == fs::file_type::directory;
    std::string name = at->path().lexically_relative(folder).string();
    const bool is_left_out = rules.Ignores(name, is_directory);
    if (!is_left_out) names.push_back(std::move(name));
    if (!is_directory || (is_left_out && !rules.TakesBackIn())) continue;
    TUTTI_RETURN_IF_ERROR(CollectOfBuild(folder, at->path(), rules, names));
  }
  if (error) return base::ErrnoStatus(absl::StrCat("read ", below.string()), error.value());
  return absl::OkStatus();
}

void Measure(const fs::path& folder, const fs::path& below, const IgnoreRules& rules,
             const CodeSize& most, CodeSize& size) {
  std::error_code error;
  for (fs::directory_iterator at(below, error), end; !error && at != end; at.increment(error)) {
    if (size.files >= most.files || size.bytes >= most.bytes) return;
    const fs::path& path = at->path();
    std::error_code unreadable;
    const fs::file_type type = at->symlink_status(unreadable).type();
    const bool is_directory = type == fs::file_type::directory;
    const std::string name = path.lexically_relative(folder).string();
    if (IsOfThisMachine(path, is_directory) || rules.Ignores(name, is_directory)) continue;
    if (is_directory) Measure(folder, path, rules, most, size);
    if (type != fs::file_type::regular) continue;
    ++size.files;
    const uintmax_t bytes = at->file_size(unreadable);
    if (!unreadable) size.bytes += bytes;
  }
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

// In the order of their names; only how many there are beyond the first.
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

// What lies in a folder, with names that count from it.
absl::StatusOr<std::vector<Item>> ItemsIn(const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (real == real.root_path()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "code: ", folder.string(), " is all of this machine: name the folder that is meant"));
  }
  TUTTI_ASSIGN_OR_RETURN(const IgnoreRules rules, RulesOf(real));
  Content content;
  TUTTI_RETURN_IF_ERROR(Collect(real, real, rules, content));
  if (content.refusals.empty()) return std::move(content.items);
  return Refusal(std::move(content.refusals), folder);
}

absl::StatusOr<std::vector<Item>> ItemsOf(const fs::path& code, absl::string_view key = "code") {
  std::error_code error;
  const fs::file_type type = fs::status(code, error).type();
  if (type == fs::file_type::directory) return ItemsIn(code);
  if (type == fs::file_type::regular) {
    return std::vector<Item>{{code.filename().string(), fs::canonical(code, error), type}};
  }
  return absl::NotFoundError(absl::StrCat(key, ": ", code.string(), " does not exist"));
}

// A folder itself is one of them, and a part of their names.
absl::StatusOr<std::vector<Item>> ItemsOfInclude(const fs::path& include) {
  std::error_code error;
  TUTTI_ASSIGN_OR_RETURN(std::vector<Item> items, ItemsOf(include, "additional_includes"));
  if (!fs::is_directory(include, error)) return items;
  const std::string folder = include.filename().string();
  for (Item& item : items) item.name = absl::StrCat(folder, "/", item.name);
  items.push_back({folder, include, fs::file_type::directory});
  return items;
}

absl::StatusOr<std::vector<Item>> AllItems(const fs::path& code,
                                           const std::vector<fs::path>& includes) {
  std::vector<Item> items;
  base::Faults faults;
  const auto take = [&](absl::StatusOr<std::vector<Item>> more) {
    if (more.ok()) std::move(more->begin(), more->end(), std::back_inserter(items));
    const bool other = !more.ok() && !absl::IsInvalidArgument(more.status());
    if (!other) faults.Add(more.status());
    return other ? more.status() : absl::OkStatus();
  };
  if (!code.empty()) TUTTI_RETURN_IF_ERROR(take(ItemsOf(code)));
  for (const fs::path& include : includes) TUTTI_RETURN_IF_ERROR(take(ItemsOfInclude(include)));
  TUTTI_RETURN_IF_ERROR(faults.status());
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.name < b.name; });
  const auto two = std::adjacent_find(
      items.begin(), items.end(), [](const Item& a, const Item& b) { return a.name == b.name; });
  if (two == items.end()) return items;
  return absl::InvalidArgumentError(absl::StrCat(
      "additional_includes: ", two->path.string(), " and ", std::next(two)->path.string(),
      " would both be \"", two->name, "\" beside the code: rename one, or leave it out"));
}

}  // namespace

absl::StatusOr<Snapshot> PackCode(const fs::path& code, const fs::path& archive,
                                  const std::vector<fs::path>& includes) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Item> items, AllItems(code, includes));
  Snapshot snapshot;
  Packer packer(archive);
  TUTTI_RETURN_IF_ERROR(packer.Open());
  for (const Item& item : items) TUTTI_RETURN_IF_ERROR(packer.Add(item, snapshot));
  TUTTI_RETURN_IF_ERROR(packer.Close());
  TUTTI_ASSIGN_OR_RETURN(const base::Sha256Digest digest, base::Sha256OfFile(archive));
  snapshot.hash = absl::StrCat("sha256:", base::Hex(digest));
  std::error_code error;
  snapshot.archive_bytes = fs::file_size(archive, error);
  return snapshot;
}

absl::Status CheckCode(const fs::path& code, const std::vector<fs::path>& includes) {
  return AllItems(code, includes).status();
}

bool SendsAHome(const fs::path& code) {
  const char* home = std::getenv("HOME");
  std::error_code error;
  if (home == nullptr || !fs::equivalent(code, home, error)) return false;
  return !fs::exists(code / ".amlignore", error) && !fs::exists(code / ".gitignore", error);
}

CodeSize MeasureCode(const fs::path& folder, int most_files, uint64_t most_bytes) {
  CodeSize size;
  const auto rules = RulesOf(folder);
  const IgnoreRules none("");
  Measure(folder, folder, rules.ok() ? *rules : none, {most_files, most_bytes}, size);
  return size;
}

absl::StatusOr<std::vector<std::string>> FilesOfCode(const fs::path& code) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Item> items, AllItems(code, {}));
  std::vector<std::string> names;
  for (const Item& item : items) names.push_back(item.name);
  return names;
}

absl::StatusOr<std::vector<std::string>> FilesOfBuild(const fs::path& folder) {
  TUTTI_ASSIGN_OR_RETURN(const IgnoreRules rules, RulesOf(folder, kOfBuilds));
  std::vector<std::string> names;
  TUTTI_RETURN_IF_ERROR(CollectOfBuild(folder, folder, rules, names));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tutti::client
