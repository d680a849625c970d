// Reads the mount commands of `unmanagedFileSystems`: which of them are volumes, and which. Inside
// the room spec only. Pure functions, safe on hostile text; thread-safe.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "spec/batchai/volumes.h"

namespace tutti::spec {

// "https://acme.file.core.windows.net/logs" is {"acme", "logs", "core.windows.net"}.
struct ShareOfAzure {
  std::string account, name, domain;
};
// Returns the share of an address; without a domain it is none.
ShareOfAzure ShareOf(absl::string_view url);

// Returns what a mount command mounts ("mount -t nfs 10.0.0.4:/data", "mount --bind /data"), with
// the account's key that a share's options have as the password; its address is empty where that
// is nothing that a job can be given.
Volume VolumeOfMountCommand(absl::string_view command);

// Returns the command of a volume that VolumeOfMountCommand has found, without options.
std::string MountCommandOf(const Volume& volume);

// Returns a command as messages show it: without what options say, which may be a password.
std::string ShownMountCommand(absl::string_view command);

}  // namespace tutti::spec
