#include "spec/command/code.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "spec/data/data_address.h"
#include "spec/data/data_map.h"

namespace tutti::spec {
namespace {

// By these git runs no program that the address names (as ext:: does).
constexpr std::array<absl::string_view, 5> kSchemes = {"https", "http", "ssh", "git", "file"};

bool IsRevision(absl::string_view revision) {
  return !absl::StartsWith(revision, "-") &&
         std::all_of(revision.begin(), revision.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '/' || c == '-';
         });
}

bool IsFolderBelow(absl::string_view folder) {
  if (absl::StartsWith(folder, "/") || absl::StrContains(folder, '\0')) return false;
  for (const absl::string_view part : absl::StrSplit(folder, '/')) {
    if (part == ".." || part == ".git") return false;
  }
  return true;
}

// "subdirectory=FOLDER" or "REVISION:FOLDER".
void ReadFragment(absl::string_view fragment, GitCode& code) {
  if (absl::StrContains(fragment, '=')) {
    for (absl::string_view part : absl::StrSplit(fragment, '&')) {
      if (absl::ConsumePrefix(&part, "subdirectory=")) code.folder = std::string(part);
    }
    return;
  }
  const size_t colon = std::min(fragment.find(':'), fragment.size());
  code.revision = std::string(fragment.substr(0, colon));
  if (colon < fragment.size()) code.folder = std::string(fragment.substr(colon + 1));
}

}  // namespace

bool IsGitCode(absl::string_view code) {
  if (absl::StartsWith(code, "git+") || absl::StartsWith(code, "git://") ||
      absl::StartsWith(code, "git@")) {
    return true;
  }
  const absl::string_view location = code.substr(0, code.find('#'));
  const bool remote = absl::StartsWith(code, "https://") || absl::StartsWith(code, "http://") ||
                      absl::StartsWith(code, "ssh://");
  return remote && (absl::EndsWith(location, ".git") || absl::StrContains(location, ".git@"));
}

absl::StatusOr<GitCode> ParseGitCode(absl::string_view written) {
  const auto wrong = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", written.substr(0, 200), "\" ", why,
                     "; write git+https://HOST/REPOSITORY.git@REVISION#subdirectory=FOLDER"));
  };
  GitCode code;
  absl::string_view location = absl::StripPrefix(written, "git+");
  if (HasUser(location)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", ShownAddress(location),
        "\" has a user or a token, which would be kept with the job, "
        "and shown: leave it out, and git asks its credential helper or ~/.netrc for it, or write "
        "git+ssh://git@HOST/REPOSITORY.git"));
  }
  if (const size_t hash = location.find('#'); hash != absl::string_view::npos) {
    ReadFragment(location.substr(hash + 1), code);
    location = location.substr(0, hash);
  }
  std::string address(location);
  if (absl::StartsWith(location, "git@")) {  // git@HOST:PATH, as ssh writes it
    const size_t colon = location.find(':');
    if (colon == absl::string_view::npos) return wrong("is no address of a repository");
    address = absl::StrCat("ssh://", location.substr(0, colon), "/", location.substr(colon + 1));
  }
  const size_t scheme = address.find("://");
  if (scheme == std::string::npos ||
      std::find(kSchemes.begin(), kSchemes.end(), absl::string_view(address).substr(0, scheme)) ==
          kSchemes.end()) {
    return wrong("is no address of a repository by https, ssh, git or file");
  }
  // "@" behind the last slash is the revision; before it, a user.
  const size_t at = address.rfind('@');
  if (at != std::string::npos && at > address.find('/', scheme + 3)) {
    code.revision = address.substr(at + 1);
    address.resize(at);
  }
  if (!IsRevision(code.revision)) return wrong("has a revision that is none");
  if (!IsFolderBelow(code.folder)) return wrong("names a folder outside of the repository");
  code.url = std::move(address);
  return code;
}

bool IsCodeInStore(absl::string_view code) {
  if (IsGitCode(code)) return false;
  const auto place = PlaceOf(WithoutQuery(code), /*datastores=*/{});
  return !place.ok() || place->has_value();
}

absl::Status CheckCodeInStore(absl::string_view code) {
  const auto wrong = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("\"", ShownAddress(code), "\" ", why));
  };
  if (IsSigned(code)) {
    return wrong(
        "has a signature, which would be kept with the job, and shown: make a datastore of the "
        "container with it (credentials: {sas_token: …}, tutti datastore create --file FILE), and "
        "write azureml://datastores/NAME/paths/PATH");
  }
  if (code.find_first_of("*?") != absl::string_view::npos) {
    return wrong("has a \"*\" or \"?\": name the folder, or the one file, itself");
  }
  const absl::Status place = PlaceOf(code, /*datastores=*/{}).status();
  return absl::IsInvalidArgument(place) ? place : absl::OkStatus();
}

bool IsRemoteCode(absl::string_view code) { return IsGitCode(code) || IsCodeInStore(code); }

}  // namespace tutti::spec
