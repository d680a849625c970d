#include "base/machine/disk_encryption.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace tutti::base {
namespace {

namespace fs = std::filesystem;
using Kind = DiskEncryption::Kind;

// Plays what the kernel shows of a machine's devices.
class DiskEncryptionTest : public testing::Test {
 protected:
  // A device of that number, in a folder below /sys/devices; a partition's is in its disk's.
  fs::path Device(const std::string& name, const std::string& number) {
    const fs::path folder = sys() / "devices" / name;
    fs::create_directories(folder);
    fs::create_directories(sys() / "dev" / "block");
    fs::create_directory_symlink(folder, sys() / "dev" / "block" / number);
    return folder;
  }
  void Write(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    ASSERT_TRUE(ReplaceFile(file, text + "\n").ok());
  }
  void LiesOn(const fs::path& device, const fs::path& below) {
    fs::create_directories(device / "slaves");
    fs::create_directory_symlink(below, device / "slaves" / below.filename());
  }
  void Expect(unsigned major, unsigned minor, Kind kind, const std::string& how) {
    const DiskEncryption found = EncryptionOfDevice(major, minor, ReadMounts(), sys());
    EXPECT_EQ(found.kind, kind) << major << ":" << minor;
    EXPECT_EQ(found.how, how) << major << ":" << minor;
  }
  fs::path sys() const { return folder_.path() / "sys"; }

  TemporaryDirectory folder_;
};

TEST_F(DiskEncryptionTest, ADiskOrItsPartitionIsPlainByItself) {
  Device("sda", "8:0");
  Write(Device("sda/sda2", "8:2") / "partition", "2");
  Expect(8, 0, Kind::kPlain, "sda");
  Expect(8, 2, Kind::kPlain, "sda2");
}

TEST_F(DiskEncryptionTest, LuksBelowAVolumeOfLvmCounts) {
  const fs::path disk = Device("sda", "8:0");
  const fs::path crypt = Device("dm-0", "253:0");
  const fs::path volume = Device("dm-1", "253:1");
  Write(crypt / "dm" / "uuid", "CRYPT-LUKS2-0123456789abcdef-luks");
  Write(volume / "dm" / "uuid", "LVM-abc");
  LiesOn(crypt, disk);
  LiesOn(volume, crypt);
  Expect(253, 0, Kind::kEncrypted, "LUKS2, dm-0");
  Expect(253, 1, Kind::kEncrypted, "LUKS2, dm-0");
}

TEST_F(DiskEncryptionTest, OneDiskThatIsNotEncryptedIsEnoughToTell) {
  const fs::path open = Device("sdb", "8:16");
  const fs::path crypt = Device("dm-0", "253:0");
  const fs::path volume = Device("dm-1", "253:1");
  Write(crypt / "dm" / "uuid", "CRYPT-PLAIN-name");
  LiesOn(volume, crypt);
  LiesOn(volume, open);
  Expect(253, 1, Kind::kPlain, "sdb");
}

TEST_F(DiskEncryptionTest, APartitionOfAnEncryptedDiskIsEncrypted) {
  const fs::path disk = Device("dm-0", "253:0");
  Write(disk / "dm" / "uuid", "CRYPT-LUKS1-0123-name");
  Write(Device("dm-0/dm-0p1", "259:0") / "partition", "1");
  Expect(259, 0, Kind::kEncrypted, "LUKS1, dm-0");
}

TEST_F(DiskEncryptionTest, WhatOnlyChecksBlocksEncryptsNothing) {
  const fs::path disk = Device("sda", "8:0");
  for (const std::string kind : {"INTEGRITY", "VERITY"}) {
    const fs::path mapped = Device("dm-" + kind, kind == "VERITY" ? "253:0" : "253:1");
    Write(mapped / "dm" / "uuid", "CRYPT-" + kind + "-name");
    LiesOn(mapped, disk);
  }
  Expect(253, 0, Kind::kPlain, "sda");
  Expect(253, 1, Kind::kPlain, "sda");
}

TEST_F(DiskEncryptionTest, WhatTheKernelDoesNotShowIsNotKnown) {
  Expect(8, 7, Kind::kUnknown, "no device has the number 8:7");
  const fs::path loop = Device("dm-0", "253:0");
  LiesOn(loop, loop);
  Expect(253, 0, Kind::kUnknown, "dm-0 lies on too many others");
}

TEST_F(DiskEncryptionTest, AFolderOfAServerIsNotAsked) {
  const DiskEncryption found =
      EncryptionOf("/mnt/share/home", {{"/", "ext4"}, {"/mnt/share", "nfs4"}}, sys());
  EXPECT_EQ(found.kind, Kind::kElsewhere);
  EXPECT_EQ(found.how, "/mnt/share");
}

TEST_F(DiskEncryptionTest, AFolderInMemoryAndOneThatIsNotThere) {
  EXPECT_EQ(EncryptionOf("/dev/shm/not/there", ReadMounts(), sys()).kind, Kind::kMemory);
}

}  // namespace
}  // namespace tutti::base
