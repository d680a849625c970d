// Says whether this machine encrypts what lies in a folder before it is on a disk: by LUKS or
// another dm-crypt below its file system, or by fscrypt in it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/machine/mounts.h"

namespace tutti::base {

struct DiskEncryption {
  enum class Kind {
    kEncrypted,
    kPlain,      // not by this machine; what is below it, as a cloud's disk, may encrypt
    kMemory,     // on no disk, but perhaps in the swap space
    kElsewhere,  // on a server, or behind a program (FUSE)
    kUnknown     // the kernel does not say
  };
  Kind kind = Kind::kUnknown;
  std::string how;  // "LUKS2, dm-1"; "sda2"; the mount's point; or why it is not known
};

// Returns the encryption of what lies on a block device. `sys`: where the kernel shows its devices.
DiskEncryption EncryptionOfDevice(unsigned major, unsigned minor, const std::vector<Mount>& mounts,
                                  const std::filesystem::path& sys = "/sys");

// Returns the encryption of an absolute path, or of the nearest folder above it that is there.
// Asks no file system that is not local. Encrypted is what lies on devices that are all encrypted
// (LVM, RAID and btrfs have several); a file that is a disk (loop) is as its folder is.
DiskEncryption EncryptionOf(const std::filesystem::path& path, const std::vector<Mount>& mounts,
                            const std::filesystem::path& sys = "/sys");

}  // namespace tutti::base
