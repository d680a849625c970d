#include "platform/client/models/local_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"
#include "platform/client/connection/connection_fake.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LocalModelTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& bytes) {
    const fs::path path = folder_.path() / name;
    ASSERT_TRUE(base::MakeDirectories(path.parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(path, bytes).ok());
  }
  const base::TemporaryDirectory folder_;
};

TEST_F(LocalModelTest, FindsAllFilesOfAFolder) {
  Write("model/b.bin", "bb");
  Write("model/sub/a.bin", "a");
  Write("elsewhere", "ccc");
  fs::create_symlink(folder_.path() / "elsewhere", folder_.path() / "model/link");
  const auto model = ReadLocalModel(folder_.path() / "model");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_FALSE(model->is_file);
  EXPECT_EQ(model->bytes, 6u);
  ASSERT_EQ(model->files.size(), 3u);
  EXPECT_EQ(model->files[0].path, "b.bin");
  EXPECT_EQ(model->files[1].path, "link");
  EXPECT_EQ(model->files[2].path, "sub/a.bin");
  EXPECT_EQ(model->files[2].sha256,
            "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
}

TEST_F(LocalModelTest, TakesOneFile) {
  Write("net.pt", "xyz");
  const auto model = ReadLocalModel(folder_.path() / "net.pt");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(model->is_file);
  EXPECT_EQ(model->files[0].path, "net.pt");
}

TEST_F(LocalModelTest, RefusesWhatCannotBeSent) {
  EXPECT_TRUE(absl::IsNotFound(ReadLocalModel(folder_.path() / "none").status()));
  Write("model/a", "a");
  fs::create_directory(folder_.path() / "empty");
  EXPECT_THAT(ReadLocalModel(folder_.path() / "empty").status().message(),
              HasSubstr("has no files"));
  fs::create_directory_symlink(folder_.path() / "empty", folder_.path() / "model/link");
  const absl::Status link = ReadLocalModel(folder_.path() / "model").status();
  EXPECT_TRUE(absl::IsInvalidArgument(link));
  EXPECT_THAT(link.message(), HasSubstr("model/link is neither"));
  fs::remove(folder_.path() / "model/link");
  Write("model/\xff", "a");
  EXPECT_THAT(ReadLocalModel(folder_.path() / "model").status().message(),
              HasSubstr("is not UTF-8"));
  ASSERT_EQ(::mkfifo((folder_.path() / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadLocalModel(folder_.path() / "pipe").status()));
}

TEST_F(LocalModelTest, SendsWhatTheServiceDoesNotHaveAndEachOnce) {
  Write("model/a", "a");
  Write("model/same", "a");
  Write("model/b", "b");
  const auto model = ReadLocalModel(folder_.path() / "model");
  ASSERT_TRUE(model.ok());
  const std::string a = model->files[0].sha256, b = model->files[1].sha256;
  FakeService fake([&](const http::ClientRequest& request) -> FakeService::Answer {
    if (request.method == "HEAD" && request.target.ends_with(b)) return {.status = 404};
    return {.status = request.method == "PUT" ? 201 : 200};
  });
  ServiceClient service(fake.connect()());
  std::vector<std::string> sent;
  ASSERT_TRUE(SendModel(service, *model, [&](const LocalModelFile& file) {
                sent.push_back(file.path);
              }).ok());
  EXPECT_THAT(sent, ElementsAre("a", "b"));
  EXPECT_THAT(fake.requests(),
              ElementsAre("HEAD /v1/model-files/sha256:" + a, "HEAD /v1/model-files/sha256:" + b,
                          "PUT /v1/model-files/sha256:" + b));
}

}  // namespace
}  // namespace tutti::client
