#include "platform/client/results/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "base/file.h"
#include "platform/client/connection/connection_fake.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class DownloadTest : public testing::Test {
 protected:
  absl::Status Download(std::vector<FileView> files, FakeService::Answer answer,
                        const std::string& missing = "none") {
    FakeService fake([&](const http::ClientRequest& request) {
      return absl::EndsWith(request.target, missing) ? FakeService::Answer{.status = 404} : answer;
    });
    ServiceClient service(fake.connect()());
    const absl::Status status = DownloadFiles(service, "j", files, folder_.path() / "to",
                                              [this](const FileView&, uint64_t n) { seen_ = n; });
    requests_ = fake.requests();
    return status;
  }
  int FilesIn(const fs::path& folder) {
    int count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }

  base::TemporaryDirectory folder_;
  std::vector<std::string> requests_;
  uint64_t seen_ = 0;
};

TEST_F(DownloadTest, PutsFilesWhereTheyBelong) {
  ASSERT_TRUE(Download({{"outputs/a b/x", 4}}, {.chunks = {"ab", "cd"}}).ok());
  EXPECT_EQ(*base::ReadFile(folder_.path() / "to/outputs/a b/x"), "abcd");
  EXPECT_EQ(requests_.at(0), "GET /v1/jobs/j/files/outputs/a%20b/x");
  EXPECT_EQ(seen_, 4u);
}

TEST_F(DownloadTest, AFileWhoseNameCannotBeToldIsNamedAndTheOthersCome) {
  const absl::Status status =
      Download({{"a", 2}, {"\xEF\xBF\xBD", 2}, {"z", 2}}, {.chunks = {"ab"}}, "%EF%BF%BD");
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(": its name is not UTF-8"));
  EXPECT_EQ(*base::ReadFile(folder_.path() / "to/z"), "ab");
}

TEST_F(DownloadTest, WhatCannotBeWrittenIsNamedAndTheOthersCome) {
  const std::string longest(255, 'l'), too_long(256, 't');
  fs::create_directories(folder_.path() / "to/folder");
  const absl::Status status =
      Download({{longest, 2}, {too_long, 2}, {"folder", 2}, {longest + "/x", 2}, {"z", 2}},
               {.chunks = {"ab"}});
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(too_long + ": "), HasSubstr("File name too long"),
                    HasSubstr("; folder: "), HasSubstr("; " + longest + "/x: ")));
  EXPECT_EQ(*base::ReadFile(folder_.path() / "to" / longest), "ab");
  EXPECT_EQ(*base::ReadFile(folder_.path() / "to/z"), "ab");
  EXPECT_EQ(FilesIn(folder_.path()), 2);
}

TEST_F(DownloadTest, AFileOfTheWrongSizeDoesNotAppear) {
  EXPECT_EQ(Download({{"x", 5}}, {.chunks = {"abc"}}).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Download({{"x", 2}}, {.chunks = {"abc"}}).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(FilesIn(folder_.path()), 0);
}

TEST_F(DownloadTest, OfAJobThatRunsAFileMayHaveChangedOrGone) {
  ASSERT_TRUE(Download({{"grown", 2, true}, {"gone", 2, true}, {"shorter", 5, true}},
                       {.chunks = {"ab", "c"}}, "gone")
                  .ok());
  EXPECT_EQ(*base::ReadFile(folder_.path() / "to/grown"), "abc");
  EXPECT_EQ(*base::ReadFile(folder_.path() / "to/shorter"), "abc");
  EXPECT_EQ(FilesIn(folder_.path()), 2);
}

TEST_F(DownloadTest, ABrokenTransferLeavesTheOldFile) {
  ASSERT_TRUE(Download({{"x", 3}}, {.chunks = {"old"}}).ok());
  const absl::Status status =
      Download({{"x", 3}}, {.chunks = {"n"}, .then = absl::UnavailableError("broken")});
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("x: broken"));
  EXPECT_EQ(*base::ReadFile(folder_.path() / "to/x"), "old");
  EXPECT_EQ(FilesIn(folder_.path()), 1);
}

TEST_F(DownloadTest, AHostileServiceCannotWriteElsewhere) {
  for (const std::string path : {"../x", "a/../../x", "/etc/x", "", ".", "a//b", "a/."}) {
    EXPECT_FALSE(Download({{"good", 0}, {path, 0}}, {}).ok()) << path;
  }
  EXPECT_FALSE(DestinationOf("/to", absl::string_view("a\0b", 3)).ok());
  EXPECT_EQ(FilesIn(folder_.path()), 0);
}

}  // namespace
}  // namespace tutti::client
