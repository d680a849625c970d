#include "platform/launch/outputs/stored_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::launch {
namespace {

using nlohmann::json;

constexpr uint64_t kLargest = uint64_t{1} << 30;

// Disks and clocks count in ticks: a file that was written to so shortly before it was read may
// have been written to once more, in the same tick.
constexpr int64_t kTick = 2'000'000'000;
constexpr size_t kMostLinesPerFile = 4;  // on the average, before the list is written anew
constexpr size_t kFewLines = 1000;

json JsonOf(const std::string& path, const StoredFile& file) {
  return {{"path", path},
          {"bytes", file.state.bytes},
          {"modified", file.state.modified},
          {"changed", file.state.changed},
          {"inode", file.state.inode},
          {"sha256", file.sha256},
          {"etag", file.etag},
          {"stored", file.stored},
          {"hashed", file.hashed},
          {"times", file.times}};
}

// Nothing if the line is none of this program's.
std::optional<std::pair<std::string, StoredFile>> FromLine(absl::string_view line) {
  const json entry = json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!entry.is_object()) return std::nullopt;
  try {
    return std::pair(entry.at("path").get<std::string>(),
                     StoredFile{.state = {.bytes = entry.at("bytes").get<int64_t>(),
                                          .modified = entry.at("modified").get<int64_t>(),
                                          .changed = entry.at("changed").get<int64_t>(),
                                          .inode = entry.at("inode").get<uint64_t>()},
                                .sha256 = entry.at("sha256").get<std::string>(),
                                .etag = entry.at("etag").get<std::string>(),
                                .stored = entry.at("stored").get<double>(),
                                .hashed = entry.at("hashed").get<int64_t>(),
                                .times = entry.at("times").get<int>()});
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

int64_t NanosecondsOf(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::string LineOf(const std::string& path, const StoredFile& file) {
  return absl::StrCat(JsonOf(path, file).dump(), "\n");
}

}  // namespace

absl::StatusOr<FileState> StateOf(const std::filesystem::path& file) {
  struct stat status = {};
  if (::stat(file.c_str(), &status) != 0) {
    return base::ErrnoStatus(absl::StrCat("read ", file.native()));
  }
  return FileState{.bytes = status.st_size,
                   .modified = NanosecondsOf(status.st_mtim),
                   .changed = NanosecondsOf(status.st_ctim),
                   .inode = status.st_ino};
}

absl::StatusOr<std::map<std::string, StoredFile>> StoredFiles::Read(
    const std::filesystem::path& file) {
  std::map<std::string, StoredFile> files;
  const auto text = base::ReadFile(file, kLargest);
  if (absl::IsNotFound(text.status())) return files;
  TUTTI_RETURN_IF_ERROR(text.status());
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    if (auto one = FromLine(line)) files[one->first] = std::move(one->second);
  }
  return files;
}

absl::StatusOr<StoredFiles> StoredFiles::Open(const std::filesystem::path& file) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(file.parent_path()));
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, base::Open(file, O_RDWR | O_APPEND | O_CREAT));
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file, kLargest));
  StoredFiles stored(std::move(fd));
  size_t lines = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    ++lines;
    if (auto one = FromLine(line)) stored.files_[one->first] = std::move(one->second);
  }
  if (lines > kFewLines && lines > kMostLinesPerFile * stored.files_.size()) {
    std::string anew;
    for (const auto& [path, one] : stored.files_) anew += LineOf(path, one);
    TUTTI_RETURN_IF_ERROR(base::ReplaceFile(file, anew));
    TUTTI_ASSIGN_OR_RETURN(stored.fd_, base::Open(file, O_RDWR | O_APPEND | O_CREAT));
  } else if (!text.empty() && text.back() != '\n') {
    TUTTI_RETURN_IF_ERROR(base::WriteAll(stored.fd_.get(), "\n", file.native()));
  }
  return stored;
}

bool IsCertain(const StoredFile& stored) { return stored.state.changed + kTick <= stored.hashed; }

bool StoredFiles::Has(const std::string& path, const FileState& state) const {
  const StoredFile* const found = Find(path);
  return found != nullptr && found->state == state;
}

const StoredFile* StoredFiles::Find(const std::string& path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? nullptr : &found->second;
}

int StoredFiles::Times(const std::string& path) const {
  const StoredFile* const found = Find(path);
  return found == nullptr ? 0 : found->times;
}

absl::Status StoredFiles::Renew(const std::string& path, const FileState& state, int64_t hashed) {
  StoredFile& file = files_.at(path);
  file.state = state;
  file.hashed = hashed;
  return Append(path, file);
}

absl::Status StoredFiles::Add(const std::string& path, StoredFile stored) {
  stored.times = Times(path) + 1;
  files_[path] = std::move(stored);
  return Append(path, files_[path]);
}

absl::Status StoredFiles::AddEarlier(const std::string& path, StoredFile stored) {
  stored.times = 0;
  files_[path] = std::move(stored);
  return Append(path, files_[path]);
}

absl::Status StoredFiles::Append(const std::string& path, const StoredFile& stored) {
  return base::AppendWhole(fd_.get(), LineOf(path, stored), "the list of stored files");
}

}  // namespace tutti::launch
