#include "base/threads/janitor.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "base/deadline.h"
#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::base {
namespace {

namespace fs = std::filesystem;

class JanitorTest : public ::testing::Test {
 protected:
  fs::path Make(const std::string& name) {
    fs::create_directories(folder_.path() / name / "below");
    std::ofstream(folder_.path() / name / "below/file") << "x";
    return folder_.path() / name;
  }
  bool IsIdleSoon() {
    const Deadline deadline = Deadline::After(Patient(absl::Seconds(10)));
    while (janitor_.waiting() > 0 && !deadline.Expired()) std::this_thread::yield();
    return janitor_.waiting() == 0;
  }
  TemporaryDirectory folder_;
  Janitor janitor_;
};

TEST_F(JanitorTest, RemovesWhatItIsGiven) {
  const fs::path a = Make("a"), b = Make("b");
  janitor_.Remove(a);
  janitor_.Remove(b);
  ASSERT_TRUE(IsIdleSoon());
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(JanitorTest, TakesAFolderAwayAtOnceAndRemovesItLater) {
  const fs::path a = Make("a");
  EXPECT_EQ(janitor_.RenameAndRemove(a, ".gone-"), absl::OkStatus());
  EXPECT_FALSE(fs::exists(a));
  EXPECT_EQ(janitor_.RenameAndRemove(a, ".gone-"), absl::OkStatus()) << "there is none";
  ASSERT_TRUE(IsIdleSoon());
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(JanitorTest, TakesAFolderAwayBesideOneOfItsNameThatIsStillThere) {
  Make(".gone-a");
  EXPECT_EQ(janitor_.RenameAndRemove(Make("a"), ".gone-"), absl::OkStatus());
  EXPECT_FALSE(fs::exists(folder_.path() / "a"));
  ASSERT_TRUE(IsIdleSoon());
  EXPECT_TRUE(fs::exists(folder_.path() / ".gone-a")) << "of that it was not told";
  EXPECT_FALSE(fs::exists(folder_.path() / ".gone-a.2"));
}

}  // namespace
}  // namespace tutti::base
