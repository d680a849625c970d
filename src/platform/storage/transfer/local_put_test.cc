#include "platform/storage/transfer/local_put.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

#include "base/file.h"

namespace tutti::storage {
namespace {

namespace fs = std::filesystem;

class LocalPut : public ::testing::Test {
 protected:
  absl::Status Put(const std::vector<std::string>& blocks, const SentListener& sent) {
    return PutLocalFile(
        to_, root_,
        [&](const TakeBlock& take) {
          for (const std::string& block : blocks) {
            absl::Status taken = take(block);
            if (!taken.ok()) return taken;
          }
          return absl::OkStatus();
        },
        sent);
  }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(to_.parent_path())) {
      names.insert(entry.path().filename());
    }
    return names;
  }
  const base::TemporaryDirectory folder_;
  const fs::path to_ = folder_.path() / "deep/er/model.pt";
  fs::path root_;
};

TEST_F(LocalPut, AppearsWholeUnderItsName) {
  int64_t sent = 0;
  ASSERT_TRUE(Put({"old"}, [&](int64_t) { return absl::OkStatus(); }).ok());
  ASSERT_TRUE(Put({"new ", "one"}, [&](int64_t bytes) {
                sent += bytes;
                EXPECT_EQ(base::ReadFile(to_).value_or(""), "old") << "until it is whole";
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(sent, 7);
  EXPECT_EQ(base::ReadFile(to_).value_or(""), "new one");
  EXPECT_THAT(Names(), ::testing::ElementsAre("model.pt"));
}

TEST_F(LocalPut, MakesFoldersBelowItsRootAndNeverThat) {
  const auto sent = [](int64_t) { return absl::OkStatus(); };
  root_ = folder_.path() / "deep";  // as a mount that is missing
  const absl::Status missing = Put({"new"}, sent);
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), ::testing::HasSubstr(root_.native()));
  EXPECT_FALSE(fs::exists(root_));
  fs::create_directory(root_);
  ASSERT_TRUE(Put({"new"}, sent).ok());
  EXPECT_EQ(base::ReadFile(to_).value_or(""), "new");
}

TEST_F(LocalPut, LeavesWhatWasThereAfterAnError) {
  ASSERT_TRUE(Put({"old"}, [](int64_t) { return absl::OkStatus(); }).ok());
  const absl::Status cancelled =
      Put({"new"}, [](int64_t) { return absl::CancelledError("told to end"); });
  EXPECT_TRUE(absl::IsCancelled(cancelled)) << cancelled;
  EXPECT_EQ(base::ReadFile(to_).value_or(""), "old");
  EXPECT_THAT(Names(), ::testing::ElementsAre("model.pt"));
}

}  // namespace
}  // namespace tutti::storage
