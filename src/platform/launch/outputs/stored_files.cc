#include "platform/launch/outputs/stored_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::launch {
namespace {

using nlohmann::json;

constexpr uint64_t kLargest = uint64_t{1} << 30;

json JsonOf(const std::string& path, const StoredFile& file) {
  return {{"path", path},          {"bytes", file.state.bytes}, {"modified", file.state.modified},
          {"sha256", file.sha256}, {"etag", file.etag},         {"stored", file.stored}};
}

}  // namespace

absl::StatusOr<FileState> StateOf(const std::filesystem::path& file) {
  struct stat status = {};
  if (::stat(file.c_str(), &status) != 0) {
    return base::ErrnoStatus(absl::StrCat("read ", file.native()));
  }
  return FileState{status.st_size,
                   int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

absl::StatusOr<StoredFiles> StoredFiles::Open(const std::filesystem::path& file) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(file.parent_path()));
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, base::Open(file, O_RDWR | O_APPEND | O_CREAT));
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file, kLargest));
  StoredFiles stored(std::move(fd));
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const json entry = json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    if (!entry.is_object()) continue;
    try {
      StoredFile one{
          .state = {entry.at("bytes").get<int64_t>(), entry.at("modified").get<int64_t>()},
          .sha256 = entry.at("sha256").get<std::string>(),
          .etag = entry.at("etag").get<std::string>(),
          .stored = entry.at("stored").get<double>()};
      const std::string path = entry.at("path").get<std::string>();
      one.times = stored.Times(path) + 1;
      stored.files_[path] = std::move(one);
    } catch (const json::exception&) {
      continue;  // no line of this program's
    }
  }
  if (!text.empty() && text.back() != '\n') {
    TUTTI_RETURN_IF_ERROR(base::WriteAll(stored.fd_.get(), "\n", file.native()));
  }
  return stored;
}

bool StoredFiles::Has(const std::string& path, const FileState& state) const {
  const auto found = files_.find(path);
  return found != files_.end() && found->second.state == state;
}

int StoredFiles::Times(const std::string& path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? 0 : found->second.times;
}

absl::Status StoredFiles::Add(const std::string& path, StoredFile stored) {
  stored.times = Times(path) + 1;
  const std::string line = absl::StrCat(JsonOf(path, stored).dump(), "\n");
  files_[path] = std::move(stored);
  return base::AppendWhole(fd_.get(), line, "the list of stored files");
}

}  // namespace tutti::launch
