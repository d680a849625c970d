// StateFolder is the folder that a service owns: one service at a time (flock), its tokens, and the
// files that tell clients and launchers where it listens.
//
//   lock            held while a service lives; its pid
//   token           the user's bearer token, mode 0600
//   launcher_key    what each allocation's token is made of (attempt/launcher_token.h), mode 0600
//   metrics_token   what a monitor reads /metrics with, and nothing else; mode 0600
//   launcher_token  of earlier versions: one token for all launchers, until none of theirs is left
//   former_allocations  those that it opens, a line each
//   service.json    where it is, for clients (spec/types/service_endpoint.h), mode 0600; once the
//   service has
//                   ended service.json.ended, whose room is there for the next on a full disk
//   launcher.json   the same for launchers, without a token: theirs is in their plans
//   tutti.db, jobs/, snapshots/
//   reserve         room on the disk that is held for the store (base/disk_reserve.h)
//   retention_since  since when the use of caches is marked (retention/in_use.h)
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/closed_in_children.h"

namespace tutti::service {

class StateFolder {
 public:
  // Makes the folder (mode 0700) and the tokens if they are not there. FailedPrecondition if
  // another service holds it (names its pid and address). InvalidArgument if its name is not UTF-8.
  static absl::StatusOr<StateFolder> Open(const std::filesystem::path& directory);

  const std::filesystem::path& directory() const { return directory_; }
  const std::string& user_token() const { return user_token_; }
  const std::string& launcher_key() const { return launcher_key_; }
  // Returns the token that all launchers of an earlier version share; empty: there are no such
  // launchers.
  const std::string& former_launcher_token() const { return former_launcher_token_; }
  // Returns the allocations that are theirs.
  const std::set<std::string>& former_allocations() const { return former_allocations_; }
  // Finds former_allocations among `under_way`, the allocations that are under way as this service
  // begins. When a version with a token for each allocation begins for the first time, all of them
  // are; later, those that are left of them. Once none is left, their token is forgotten.
  absl::Status FindFormerAllocations(const std::vector<std::string>& under_way);
  std::filesystem::path database() const { return directory_ / "tutti.db"; }
  std::filesystem::path launcher_file() const { return directory_ / "launcher.json"; }
  std::filesystem::path service_file() const { return directory_ / "service.json"; }

  // Call once the port is bound. `url`: "http://127.0.0.1:6280"; `certificate`: spec::Endpoint's.
  absl::Status Announce(const std::string& url, const std::string& certificate) const;
  // Writes metrics_token, which those who watch the service are given.
  absl::Status AnnounceToMonitors() const;
  // Call at an orderly end: clients then say "no service runs" at once. Launchers' file stays.
  absl::Status Withdraw() const;

 private:
  std::filesystem::path ended_file() const { return directory_ / "service.json.ended"; }

  std::filesystem::path directory_;
  std::string user_token_, launcher_key_, former_launcher_token_;
  std::set<std::string> former_allocations_;
  base::ClosedInChildren lock_;
};

}  // namespace tutti::service
