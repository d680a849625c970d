#include "platform/container/kept_images.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine/folder.h"
#include "base/machine/machine.h"
#include "base/process/child_process.h"
#include "base/process/command.h"
#include "base/status.h"
#include "platform/container/podman.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kRecord = ".json", kGone = ".gone-";
constexpr uint64_t kLargestRecord = 1 << 16;
constexpr absl::Duration kPatienceWithPodman = absl::Minutes(5);

fs::path RecordsOf(const fs::path& folder, absl::string_view host) {
  return folder / "images" / std::string(host);
}

fs::path RecordOf(const fs::path& folder, absl::string_view host, absl::string_view key) {
  return RecordsOf(folder, host) / absl::StrCat(key, kRecord);
}

fs::path MarkOf(const fs::path& folder, absl::string_view host, absl::string_view key) {
  return RecordsOf(folder, host) / absl::StrCat(kGone, key, kRecord);
}

fs::path LockOf(const fs::path& folder, absl::string_view host, absl::string_view key) {
  return folder / absl::StrCat("image-", key, ".", host, ".lock");
}

std::optional<KeptImage> Read(const fs::path& file) {
  const auto changed = base::ChangedAt(file);
  const auto text = base::ReadFile(file, kLargestRecord);
  if (!changed || !text.ok()) return std::nullopt;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto field = [&json](const char* name) {
    const auto at = json.find(name);
    return at != json.end() && at->is_string() ? at->get<std::string>() : "";
  };
  KeptImage image{.name = field("name"), .id = field("id"), .base = field("base")};
  const auto bytes = json.find("bytes");
  if (bytes != json.end() && bytes->is_number_unsigned()) image.bytes = bytes->get<uint64_t>();
  image.last_use = *changed;
  if (image.name.empty() || image.id.empty()) return std::nullopt;
  return image;
}

// Returns the lock, which is not valid if another process has it.
absl::StatusOr<base::UniqueFd> TryLock(const fs::path& file) {
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd lock, base::Open(file, O_RDWR | O_CREAT));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK || errno == EINTR) return base::UniqueFd();
  return base::ErrnoStatus(absl::StrCat("lock ", file.native()));
}

enum class Outcome { kRemoved, kInUse, kNotOurs };

// Podman removes what of the image nothing else has, and no more than its name where that is all.
absl::StatusOr<Outcome> RemoveFromStorage(const KeptImage& image,
                                          const std::atomic<bool>& cancelled) {
  const auto found = InspectImage(image.name, "{{.Id}} {{len .RepoTags}}", cancelled);
  if (absl::IsNotFound(found.status())) return Outcome::kNotOurs;
  TUTTI_RETURN_IF_ERROR(base::Annotate(found.status(), "podman"));
  const std::pair<std::string, std::string> words = absl::StrSplit(*found, absl::MaxSplits(' ', 1));
  const bool has_got_a_name = image.name == image.id && words.second != "0";
  if (words.first != image.id || has_got_a_name) return Outcome::kNotOurs;
  TUTTI_ASSIGN_OR_RETURN(const base::CommandResult removed,
                         AskPodman({"rmi", image.name}, kPatienceWithPodman, cancelled));
  if (removed.exit.ok()) return Outcome::kRemoved;
  if (absl::StrContains(removed.err, "in use")) return Outcome::kInUse;
  return absl::FailedPreconditionError(absl::StrCat("podman rmi: ", ErrorIn(removed.err)));
}

absl::Status RemoveMarked(const fs::path& folder, absl::string_view host, absl::string_view key) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock, TryLock(LockOf(folder, host, key)));
  if (!lock.valid()) return absl::OkStatus();
  const fs::path mark = MarkOf(folder, host, key);
  const auto image = Read(mark);
  std::error_code error;
  if (image && !fs::exists(RecordOf(folder, host, key), error)) {
    const std::atomic<bool> never = false;
    TUTTI_ASSIGN_OR_RETURN(const Outcome outcome, RemoveFromStorage(*image, never));
    if (outcome == Outcome::kInUse) return absl::OkStatus();
  }
  fs::remove(mark, error);
  return absl::OkStatus();
}

}  // namespace

std::string KeyOfImage(absl::string_view name) {
  return base::Hex(base::Sha256Of(name)).substr(0, 24);
}

fs::path ImageLock(const fs::path& folder, absl::string_view key) {
  return LockOf(folder, base::HostName(), key);
}

bool TakeImage(const fs::path& folder, absl::string_view key) {
  const std::string host = base::HostName();
  const fs::path record = RecordOf(folder, host, key);
  std::error_code error;
  fs::rename(MarkOf(folder, host, key), record, error);
  if (!fs::exists(record, error)) return false;
  base::Touch(record);
  return true;
}

absl::Status RecordImage(const fs::path& folder, KeptImage image) {
  const std::string host = base::HostName();
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(RecordsOf(folder, host)));
  nlohmann::json json = {{"name", image.name}, {"id", image.id}, {"bytes", image.bytes}};
  if (!image.base.empty()) json["base"] = image.base;
  return base::ReplaceFile(
      RecordOf(folder, host, image.key),
      json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::vector<KeptImage> ListImages(const fs::path& folder) {
  std::vector<KeptImage> images;
  for (const std::string& host : base::NamesIn(folder / "images")) {
    for (const std::string& file : base::NamesIn(RecordsOf(folder, host))) {
      absl::string_view key = file;
      if (absl::StartsWith(file, ".") || !absl::ConsumeSuffix(&key, kRecord)) continue;
      auto image = Read(RecordOf(folder, host, key));
      if (!image) continue;
      image->key = std::string(key);
      image->host = host;
      images.push_back(*std::move(image));
    }
  }
  return images;
}

absl::StatusOr<bool> RemoveImage(const fs::path& folder, const std::vector<KeptImage>& records,
                                 const std::atomic<bool>& cancelled) {
  std::vector<base::UniqueFd> locks;
  for (const KeptImage& record : records) {
    TUTTI_ASSIGN_OR_RETURN(locks.emplace_back(), TryLock(LockOf(folder, record.host, record.key)));
    const bool is_free = locks.back().valid();
    if (!is_free || base::ChangedAt(RecordOf(folder, record.host, record.key)) != record.last_use) {
      return false;
    }
  }
  bool removed = false;
  for (const KeptImage& record : records) {
    TUTTI_ASSIGN_OR_RETURN(const Outcome outcome, RemoveFromStorage(record, cancelled));
    if (outcome == Outcome::kInUse) return false;
    removed |= outcome == Outcome::kRemoved;
    std::error_code ignored;
    fs::remove(RecordOf(folder, record.host, record.key), ignored);
  }
  return removed;
}

absl::StatusOr<bool> MarkImage(const fs::path& folder, const KeptImage& image) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock, TryLock(LockOf(folder, image.host, image.key)));
  const fs::path record = RecordOf(folder, image.host, image.key);
  if (!lock.valid() || base::ChangedAt(record) != image.last_use) return false;
  std::error_code error;
  fs::rename(record, MarkOf(folder, image.host, image.key), error);
  if (error) return base::ErrnoStatus(absl::StrCat("rename ", record.native()), error.value());
  return true;
}

absl::Status RemoveMarkedImages(const fs::path& folder) {
  const std::string host = base::HostName();
  absl::Status status;
  for (const std::string& file : base::NamesIn(RecordsOf(folder, host))) {
    absl::string_view key = file;
    if (!absl::ConsumePrefix(&key, kGone) || !absl::ConsumeSuffix(&key, kRecord)) continue;
    status.Update(RemoveMarked(folder, host, key));
  }
  return status;
}

}  // namespace tutti::container
