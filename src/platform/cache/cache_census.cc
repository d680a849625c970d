#include "platform/cache/cache_census.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/machine/folder.h"

namespace tutti::cache {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestPlace = 8192;
constexpr char kUnpinned[] = ".unpinned";  // follows KEY in the name of the note
constexpr char kLook[] = "look.lock";      // in the folder of the pins
constexpr absl::Duration kLongestLook = absl::Seconds(1);
constexpr absl::Duration kBetweenLooks = absl::Microseconds(50);

std::optional<struct stat> Look(const fs::path& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
  return info;
}

CachedData Described(const fs::path& folder, const std::string& key, const struct stat& info) {
  CachedData data{.key = key, .last_use = absl::TimeFromTimespec(info.st_mtim)};
  const std::string place = base::ReadFile(folder / key / kPlace, kLongestPlace).value_or("");
  data.place = place.substr(0, place.find('\n'));
  data.state = StateOf(folder / key);
  data.is_pinned = IsPinned(folder, key);
  data.has_pins = AllHoldPins(folder, key);
  return data;
}

}  // namespace

absl::string_view Name(DataState state) {
  switch (state) {
    case DataState::kWhole:
      return "whole";
    case DataState::kFetching:
      return "fetching";
    case DataState::kDamaged:
      return "damaged";
    case DataState::kStreamed:
      return "streamed";
  }
  return "";
}

// Only the place of a file fetched by https is noted.
DataState StateOf(const fs::path& folder) {
  bool has_data = false;
  for (const std::string& name : base::NamesIn(folder)) {
    if (name == "damaged") return DataState::kDamaged;
    if (name == kStreamed) return DataState::kStreamed;
    if (name == "part" || name == "whole" || absl::EndsWith(name, ".part")) {
      return DataState::kFetching;
    }
    has_data = has_data || name != kPlace;
  }
  return has_data ? DataState::kWhole : DataState::kFetching;
}

bool IsKey(absl::string_view name) {
  return name.size() == kKeyDigits && std::all_of(name.begin(), name.end(), absl::ascii_isxdigit);
}

std::optional<absl::Time> ChangedAt(const fs::path& path) {
  const auto info = Look(path);
  if (!info) return std::nullopt;
  return absl::TimeFromTimespec(info->st_mtim);
}

bool AllHoldPins(const fs::path& folder, absl::string_view key) {
  if (!Look(folder / kPins / std::string(key))) return false;
  const auto noted = ChangedAt(folder / kPins / absl::StrCat(key, kUnpinned));
  return !noted || *noted + kLongestWithoutPin < absl::Now();
}

absl::Status NoteUnpinnedUse(const fs::path& folder, absl::string_view key) {
  return base::Open(folder / kPins / absl::StrCat(key, kUnpinned), O_RDWR | O_CREAT).status();
}

void ForgetPins(const fs::path& folder, absl::string_view key) {
  ::unlink((folder / kPins / std::string(key)).c_str());
  ::unlink((folder / kPins / absl::StrCat(key, kUnpinned)).c_str());
}

base::UniqueFd AwaitLooks(const fs::path& folder) {
  auto look = base::Open(folder / kPins / kLook, O_RDWR | O_CREAT);
  if (!look.ok()) return {};
  const base::Deadline deadline = base::Deadline::After(kLongestLook);
  while (::flock(look->get(), LOCK_EX | LOCK_NB) != 0) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || deadline.Expired()) break;
    absl::SleepFor(kBetweenLooks);
  }
  return *std::move(look);
}

bool IsPinned(const fs::path& folder, absl::string_view key) {
  const base::UniqueFd look = AwaitLooks(folder);
  const auto pin = base::Open(folder / kPins / std::string(key), O_RDWR);
  if (!pin.ok()) return !absl::IsNotFound(pin.status());
  return ::flock(pin->get(), LOCK_EX | LOCK_NB) != 0;
}

Census::Files Census::FilesBelow(const fs::path& folder, std::map<FileId, uint64_t>& links) {
  Files files;
  std::error_code error;
  for (fs::recursive_directory_iterator
           entry(folder, fs::directory_options::skip_permission_denied, error),
       end;
       !error && entry != end; entry.increment(error)) {
    const auto info = Look(entry->path());
    if (!info || !S_ISREG(info->st_mode)) continue;
    const FileId which(info->st_dev, info->st_ino);
    File& file = files[which];
    file.bytes = static_cast<uint64_t>(info->st_size);
    ++file.names;
    links[which] = info->st_nlink;
  }
  return files;
}

Census Census::Of(const fs::path& folder) {
  Census census;
  for (const std::string& key : base::NamesIn(folder)) {
    const auto info = Look(folder / key);
    if (IsKey(key) && info) census.list_.push_back(Described(folder, key, *info));
  }
  std::sort(census.list_.begin(), census.list_.end(), [](const CachedData& a, const CachedData& b) {
    return std::pair(a.last_use, a.key) < std::pair(b.last_use, b.key);
  });
  std::map<FileId, uint64_t> links;
  for (CachedData& data : census.list_) {
    Files files = FilesBelow(folder / data.key, links);
    for (const auto& [which, file] : files) {
      data.files += file.names;
      data.bytes += file.bytes;
      if (file.names >= links[which]) data.own_bytes += file.bytes;
      File& known = census.all_[which];
      known = {file.bytes, known.names + file.names};
    }
    census.files_.push_back(std::move(files));
  }
  return census;
}

uint64_t Census::bytes() const {
  uint64_t bytes = 0;
  for (const auto& [which, file] : all_) bytes += file.bytes;
  return bytes;
}

std::vector<CachedData> Census::ToRemove(const RoomGoal& room) const {
  std::vector<CachedData> going;
  Files left = all_;
  uint64_t bytes = this->bytes(), freed = 0;
  const auto is_enough = [&] {
    return bytes <= room.most_bytes.value_or(bytes) && freed >= room.freed_bytes;
  };
  for (size_t i = 0; i < list_.size() && !is_enough(); ++i) {
    const CachedData& data = list_[i];
    if (data.is_pinned || !data.has_pins || room.spared.contains(data.key)) continue;
    for (const auto& [which, file] : files_[i]) {
      uint64_t& names = left[which].names;
      names -= std::min(names, file.names);
      if (names > 0) continue;
      freed += file.bytes;
      bytes -= file.bytes;
    }
    going.push_back(data);
  }
  if (freed < room.freed_bytes) return {};
  return going;
}

}  // namespace tutti::cache
