#include "base/machine/disk_encryption.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/fscrypt.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/machine/folder.h"

namespace tutti::base {
namespace {

namespace fs = std::filesystem;
using Kind = DiskEncryption::Kind;

constexpr int kDeepest = 16;  // devices below one another
constexpr unsigned kZfs = 0x2fc12fc1;

DiskEncryption EncryptionAt(const fs::path& path, const std::vector<Mount>& mounts,
                            const fs::path& sys, int depth);

std::string FirstLine(const fs::path& file) {
  const auto text = ReadFile(file);
  return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : "";
}

// "CRYPT-LUKS2-UUID-NAME" is a mapping of dm-crypt, of LVM it begins with "LVM-".
std::optional<std::string> CryptNameOf(const fs::path& device) {
  const std::string uuid = FirstLine(device / "dm" / "uuid");
  if (!absl::StartsWith(uuid, "CRYPT-")) return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(uuid, '-');
  // dm-integrity and dm-verity have the same beginning and encrypt nothing.
  if (parts[1] == "INTEGRITY" || parts[1] == "VERITY") return std::nullopt;
  return parts[1];
}

// Returns what stands for several devices: the first that is not encrypted, else the first.
DiskEncryption Worst(const std::vector<DiskEncryption>& all) {
  const auto open = std::find_if(all.begin(), all.end(), [](const DiskEncryption& one) {
    return one.kind != Kind::kEncrypted;
  });
  return open != all.end() ? *open : all.front();
}

// `device`: its folder below /sys/devices.
DiskEncryption EncryptionBelow(const fs::path& device, const std::vector<Mount>& mounts,
                               const fs::path& sys, int depth) {
  const std::string name = device.filename();
  if (depth > kDeepest) return {Kind::kUnknown, absl::StrCat(name, " lies on too many others")};
  if (const auto crypt = CryptNameOf(device)) {
    return {Kind::kEncrypted, absl::StrCat(*crypt, ", ", name)};
  }
  const std::string file = FirstLine(device / "loop" / "backing_file");
  if (!file.empty()) return EncryptionAt(file, mounts, sys, depth + 1);
  std::vector<std::string> below = NamesIn(device / "slaves");
  std::sort(below.begin(), below.end());
  std::vector<DiskEncryption> found;
  for (const std::string& slave : below) {
    std::error_code error;
    const fs::path place = fs::canonical(device / "slaves" / slave, error);
    if (error) return {Kind::kUnknown, absl::StrCat(name, ": ", error.message())};
    found.push_back(EncryptionBelow(place, mounts, sys, depth + 1));
  }
  if (!found.empty()) return Worst(found);
  std::error_code error;
  if (!fs::exists(device / "partition", error)) return {Kind::kPlain, name};
  const DiskEncryption whole = EncryptionBelow(device.parent_path(), mounts, sys, depth + 1);
  return whole.kind == Kind::kPlain ? DiskEncryption{Kind::kPlain, name} : whole;
}

DiskEncryption EncryptionOfNumber(unsigned major, unsigned minor, const std::vector<Mount>& mounts,
                                  const fs::path& sys, int depth) {
  std::error_code error;
  const std::string number = absl::StrCat(major, ":", minor);
  const fs::path device = fs::canonical(sys / "dev" / "block" / number, error);
  if (error) return {Kind::kUnknown, absl::StrCat("no device has the number ", number)};
  return EncryptionBelow(device, mounts, sys, depth);
}

bool HasFscryptPolicy(int folder) {
  fscrypt_get_policy_ex_arg asked{};
  asked.policy_size = sizeof asked.policy;
  return ::ioctl(folder, FS_IOC_GET_ENCRYPTION_POLICY_EX, &asked) == 0;
}

// A file system of btrfs has a number of its own in place of its devices'.
DiskEncryption EncryptionOfBtrfs(int folder, const std::vector<Mount>& mounts, const fs::path& sys,
                                 int depth) {
  btrfs_ioctl_fs_info_args info{};
  if (::ioctl(folder, BTRFS_IOC_FS_INFO, &info) != 0) {
    return {Kind::kUnknown, "btrfs does not say on which devices it lies"};
  }
  std::string uuid;
  for (size_t i = 0; i < sizeof info.fsid; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) uuid += '-';
    absl::StrAppendFormat(&uuid, "%02x", info.fsid[i]);
  }
  const fs::path devices = sys / "fs" / "btrfs" / uuid / "devices";
  std::vector<DiskEncryption> found;
  for (const std::string& name : NamesIn(devices)) {
    std::error_code error;
    const fs::path place = fs::canonical(devices / name, error);
    if (!error) found.push_back(EncryptionBelow(place, mounts, sys, depth + 1));
  }
  if (found.empty()) return {Kind::kUnknown, "btrfs does not say on which devices it lies"};
  return Worst(found);
}

DiskEncryption EncryptionAt(const fs::path& path, const std::vector<Mount>& mounts,
                            const fs::path& sys, int depth) {
  if (const std::string remote = RemoteMountOf(path, mounts); !remote.empty()) {
    return {Kind::kElsewhere, remote};
  }
  const fs::path there = NearestThatIsThere(path);
  const UniqueFd fd(::open(there.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat about {};
  struct statfs system {};
  if (!fd.valid() || ::fstat(fd.get(), &about) != 0 || ::fstatfs(fd.get(), &system) != 0) {
    return {Kind::kUnknown, absl::StrCat(there.string(), " cannot be opened")};
  }
  if (HasFscryptPolicy(fd.get())) return {Kind::kEncrypted, "fscrypt"};
  switch (static_cast<unsigned>(system.f_type)) {
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
      return {Kind::kMemory, "memory"};
    case ECRYPTFS_SUPER_MAGIC:
      return {Kind::kEncrypted, "eCryptfs"};
    case BTRFS_SUPER_MAGIC:
      return EncryptionOfBtrfs(fd.get(), mounts, sys, depth);
    case OVERLAYFS_SUPER_MAGIC:
      return {Kind::kUnknown, "an overlay, as of a container, does not say on which disk it lies"};
    case kZfs:
      return {Kind::kUnknown, "of ZFS `zfs get encryption` says it"};
    default:
      return EncryptionOfNumber(major(about.st_dev), minor(about.st_dev), mounts, sys, depth);
  }
}

}  // namespace

DiskEncryption EncryptionOfDevice(unsigned major, unsigned minor, const std::vector<Mount>& mounts,
                                  const fs::path& sys) {
  return EncryptionOfNumber(major, minor, mounts, sys, 0);
}

DiskEncryption EncryptionOf(const fs::path& path, const std::vector<Mount>& mounts,
                            const fs::path& sys) {
  return EncryptionAt(path, mounts, sys, 0);
}

}  // namespace tutti::base
