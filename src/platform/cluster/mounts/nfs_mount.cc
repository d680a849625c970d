#include "platform/cluster/mounts/nfs_mount.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace tutti::cluster {
namespace {

constexpr size_t kFields = 6;

bool IsOf(absl::string_view text, absl::string_view others) {
  return !text.empty() && text.size() <= 200 &&
         std::all_of(text.begin(), text.end(), [&](unsigned char c) {
           return absl::ascii_isalnum(c) || absl::StrContains(others, c);
         });
}

// Absolute, of characters that mean nothing to a shell or to fstab, and not the root.
bool IsMountPath(absl::string_view path) {
  if (!absl::StartsWith(path, "/") || path.size() < 2 || !IsOf(path, "/._-")) return false;
  for (const absl::string_view part : absl::StrSplit(path.substr(1), '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

bool IsExport(absl::string_view path) { return path == "/" || IsMountPath(path); }

bool IsServer(absl::string_view host) {
  return IsOf(host, ".-_") && host.front() != '-' && host.size() < 100;
}

absl::Status Wrong(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("--mount ", text, ": ", why,
                   "; write HOST:/EXPORT=/PATH, or NAME=/PATH with the name of a file server"));
}

absl::StatusOr<NfsMount> MountOfServer(const std::string& name, const spec::FileServers& servers) {
  const auto found = servers.find(name);
  if (found == servers.end()) {
    return absl::NotFoundError(absl::StrCat("--mount ", name,
                                            ": no file server of that name is known here; see "
                                            "`tutti file-server list`, or write HOST:/EXPORT"));
  }
  const spec::FileServer& server = found->second;
  if (spec::NamesEachNode(server)) {
    return absl::FailedPreconditionError(
        absl::StrCat("--mount ", name, ": that file server listens at ", server.address,
                     ", which is no address by which nodes reach it: give its file an `address` of "
                     "the network and `clients`, then `tutti file-server create` again"));
  }
  return NfsMount{server.address, server.port, absl::StrCat("/", name), ""};
}

absl::StatusOr<NfsMount> ReadMount(const std::string& text, const spec::FileServers& servers) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos) return Wrong(text, "names no path");
  const std::string what = text.substr(0, equals);
  const size_t colon = what.find(":/");
  NfsMount mount;
  if (colon == std::string::npos) {
    TUTTI_ASSIGN_OR_RETURN(mount, MountOfServer(what, servers));
  } else {
    mount.server = what.substr(0, colon);
    mount.exported = what.substr(colon + 1);
  }
  mount.path = text.substr(equals + 1);
  if (!IsServer(mount.server)) return Wrong(text, "its server is no host name or IPv4 address");
  if (!IsExport(mount.exported) || !IsMountPath(mount.path)) {
    return Wrong(text, "paths are absolute, of letters, digits, and . _ - between slashes");
  }
  return mount;
}

// Returns whether `inner` is `outer`, or lies below it.
bool IsBelow(absl::string_view inner, absl::string_view outer) {
  return inner == outer || absl::StartsWith(inner, absl::StrCat(outer, "/"));
}

}  // namespace

absl::StatusOr<std::vector<NfsMount>> ReadMounts(const std::vector<std::string>& texts,
                                                 const spec::FileServers& servers) {
  std::vector<NfsMount> mounts;
  if (texts == std::vector<std::string>{"none"}) return mounts;
  for (const std::string& text : texts) {
    TUTTI_ASSIGN_OR_RETURN(NfsMount mount, ReadMount(text, servers));
    for (const NfsMount& other : mounts) {
      if (!IsBelow(mount.path, other.path) && !IsBelow(other.path, mount.path)) continue;
      return absl::InvalidArgumentError(absl::StrCat("--mount ", text, ": its path and ",
                                                     other.path,
                                                     " lie in each other; give each its own"));
    }
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::string SourceOf(const NfsMount& mount) {
  return absl::StrCat(mount.server, ":", mount.exported);
}

// A node boots without the server (nofail), and slurmd starts after the attempt.
std::string FstabLine(const NfsMount& mount) {
  return absl::StrCat(SourceOf(mount), " ", mount.path, " nfs4 port=", mount.port,
                      ",_netdev,nofail,x-systemd.before=slurmd.service,", kMountOption, " 0 0");
}

bool IsFstabLine(absl::string_view line) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ');
  if (fields.size() != kFields || !IsMountPath(fields[1])) return false;
  return std::all_of(fields.begin(), fields.end(),
                     [](absl::string_view field) { return IsOf(field, ".-_:/,="); });
}

std::string PathOfFstabLine(absl::string_view line) {
  const std::vector<std::string> fields = absl::StrSplit(line, ' ');
  return fields.size() > 1 ? fields[1] : "";
}

}  // namespace tutti::cluster
