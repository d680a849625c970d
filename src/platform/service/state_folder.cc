#include "platform/service/state_folder.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/held_folder.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/service/attempt/launcher_token.h"
#include "spec/types/service_endpoint.h"

namespace tutti::service {
namespace {

constexpr size_t kTokenBytes = 24;
constexpr size_t kLongestList = 16 << 20;

absl::StatusOr<std::string> ReadOrMakeToken(const std::filesystem::path& path) {
  const auto existing = base::ReadFile(path, 4096);
  if (existing.ok()) {
    const absl::string_view token = absl::StripAsciiWhitespace(*existing);
    if (token.size() >= 16) return std::string(token);
    return absl::FailedPreconditionError(
        absl::StrCat(path.native(), " holds no token of at least 16 characters: remove it"));
  }
  if (!absl::IsNotFound(existing.status())) return existing.status();
  std::string token = base::RandomHex(kTokenBytes);
  TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(path, absl::StrCat(token, "\n"), 0600));
  return token;
}

absl::Status MoveTo(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  return error ? base::ErrnoStatus(from.native(), error.value()) : absl::OkStatus();
}

// Launch plans and events, which are JSON, name it.
absl::Status CheckName(const std::string& directory) {
  const std::string shown = base::BoundedUtf8(directory);
  if (shown == directory) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(shown,
                   ": the name of the service's folder is not UTF-8; choose another by --home or "
                   "TUTTI_HOME"));
}

}  // namespace

absl::StatusOr<StateFolder> StateFolder::Open(const std::filesystem::path& directory) {
  TUTTI_RETURN_IF_ERROR(CheckName(directory.native()));
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(directory));
  std::error_code error;
  std::filesystem::permissions(directory, std::filesystem::perms::owner_all, error);
  if (error) return base::ErrnoStatus(absl::StrCat("chmod ", directory.native()), error.value());
  StateFolder folder;
  folder.directory_ = directory;
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd lock, base::HoldFolder(directory));
  folder.lock_ = base::ClosedInChildren(std::move(lock));
  TUTTI_ASSIGN_OR_RETURN(folder.user_token_, ReadOrMakeToken(directory / "token"));
  TUTTI_ASSIGN_OR_RETURN(folder.launcher_key_, ReadOrMakeToken(directory / "launcher_key"));
  const std::filesystem::path former = directory / "launcher_token";
  if (std::filesystem::exists(former, error)) {
    TUTTI_ASSIGN_OR_RETURN(folder.former_launcher_token_, ReadOrMakeToken(former));
  }
  return folder;
}

absl::Status StateFolder::FindFormerAllocations(const std::vector<std::string>& under_way) {
  if (former_launcher_token_.empty()) return absl::OkStatus();
  const std::filesystem::path list = directory_ / "former_allocations";
  const auto known = base::ReadFile(list, kLongestList);
  if (known.ok()) {
    const std::set<std::string> theirs = absl::StrSplit(*known, '\n', absl::SkipEmpty());
    for (const std::string& id : under_way) {
      if (theirs.contains(id)) former_allocations_.insert(id);
    }
  } else if (absl::IsNotFound(known.status())) {
    former_allocations_ = {under_way.begin(), under_way.end()};
    TUTTI_RETURN_IF_ERROR(
        base::WriteFileAtomic(list, absl::StrJoin(former_allocations_, "\n"), 0600));
  } else {
    return known.status();
  }
  if (!former_allocations_.empty()) return absl::OkStatus();
  former_launcher_token_.clear();
  std::error_code error;  // the list last: without it all that is under way would be theirs
  std::filesystem::remove(directory_ / "launcher_token", error);
  if (!error) std::filesystem::remove(list, error);
  return error ? base::ErrnoStatus("remove launcher_token", error.value()) : absl::OkStatus();
}

absl::Status StateFolder::Announce(const std::string& url, const std::string& certificate) const {
  const auto text = [&](const std::string& token) {
    return spec::ToJson(spec::Endpoint{url, token, certificate}) + "\n";
  };
  TUTTI_RETURN_IF_ERROR(base::UpdateFile(launcher_file(), text(former_launcher_token_), 0600));
  std::error_code error;
  if (!std::filesystem::exists(ended_file(), error)) {
    return base::UpdateFile(service_file(), text(user_token_), 0600);
  }
  TUTTI_RETURN_IF_ERROR(base::UpdateFile(ended_file(), text(user_token_), 0600));
  return MoveTo(ended_file(), service_file());
}

absl::Status StateFolder::AnnounceToMonitors() const {
  return base::UpdateFile(directory_ / "metrics_token",
                          absl::StrCat(MetricsToken(launcher_key_), "\n"), 0600);
}

absl::Status StateFolder::Withdraw() const { return MoveTo(service_file(), ended_file()); }

}  // namespace tutti::service
