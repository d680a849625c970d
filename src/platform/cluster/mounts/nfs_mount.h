// NfsMount is an export of a file server that the nodes of a cluster mount, and how it stands in
// their /etc/fstab. Plain values and pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/data/file_server.h"

namespace tutti::cluster {

struct NfsMount {
  std::string server;  // a name, or a numeric IPv4 address
  int port = spec::kNfsPort;
  std::string exported;  // absolute path at the server
  std::string path;      // absolute path on each node
};

// Reads what --mount says: "HOST:/EXPORT=/PATH", or "NAME=/PATH" with the name of one of `servers`.
// "none" alone is no mount. InvalidArgument names the text and the form; NotFound a name that no
// file server has; FailedPrecondition a file server that nodes do not reach.
absl::StatusOr<std::vector<NfsMount>> ReadMounts(const std::vector<std::string>& texts,
                                                 const spec::FileServers& servers);

// "10.0.0.5:/photos", as the kernel names what is mounted.
std::string SourceOf(const NfsMount& mount);

// Returns the mount's line of /etc/fstab, without its end. kMountOption in it says that it is
// tutti's.
std::string FstabLine(const NfsMount& mount);
inline constexpr absl::string_view kMountOption = "x-tutti";

// Returns whether a line can stand in a script between single quotes, and has the fields of a
// mount.
bool IsFstabLine(absl::string_view line);
// Returns the second field, the path at which it is mounted.
std::string PathOfFstabLine(absl::string_view line);

}  // namespace tutti::cluster
