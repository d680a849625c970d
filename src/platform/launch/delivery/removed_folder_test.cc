// A launcher that delivers by the folder alone ends when that has been removed, and waits where it
// may come back.
// Covers: folder_delivery.cc.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "base/test_patience.h"
#include "platform/launch/delivery/folder_delivery.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

// How long a folder is not there before it counts as removed.
const absl::Duration kGone = base::PatientTimeout(absl::Milliseconds(500));

class RemovedFolder : public ::testing::Test {
 protected:
  RemovedFolder() {
    EXPECT_TRUE(base::MakeDirectories(spool_folder()).ok());
    EXPECT_TRUE(base::WriteFileAtomic(shared() / "id", "1").ok());
    plan_.directory = (job() / "0").string();
    plan_.nodes = {{"n1", "127.77.0.1", 0, 1}};
    events_ = *EventLog::Open(NodeFolders(plan_.directory).events());
    spool_ = *Spool::Open(spool_folder(), 0, 1);
    news_.emplace(*Wakeup::Make());
    delivery_.emplace(plan_, events_.get(), spool_.get(), &*news_, kGone);
    events_->Append("finished", {{"ok", true}});
  }
  fs::path shared() const { return root_.path() / "shared"; }
  fs::path job() const { return shared() / "j.1"; }
  fs::path spool_folder() const { return NodeFolders(job() / "0").spool(); }
  absl::Status AwaitEvents(absl::Duration limit) {
    return delivery_->AwaitEvents(base::Deadline::After(limit));
  }

  const base::TemporaryDirectory root_;
  spec::LaunchPlan plan_;
  std::unique_ptr<EventLog> events_;
  std::unique_ptr<Spool> spool_;
  std::optional<Wakeup> news_;
  std::optional<FolderDelivery> delivery_;
};

TEST_F(RemovedFolder, EndsTheWaitForTheAcknowledgement) {
  fs::rename(job(), shared() / ".released-j.1");
  EXPECT_TRUE(absl::IsAborted(AwaitEvents(base::Patient(absl::Seconds(20)))));
  EXPECT_TRUE(delivery_->gone());
  EXPECT_FALSE(fs::exists(job())) << "and it is not made anew";
}

TEST_F(RemovedFolder, IsAwaitedWhereTheDiskIsNotMounted) {
  fs::rename(shared(), root_.path() / "away");
  EXPECT_TRUE(absl::IsDeadlineExceeded(AwaitEvents(4 * kGone)));
  fs::create_directory(shared());  // the empty folder that it is mounted on
  EXPECT_TRUE(absl::IsDeadlineExceeded(AwaitEvents(4 * kGone)));
  fs::remove(shared());
  fs::rename(root_.path() / "away", shared());
  EXPECT_FALSE(delivery_->gone());
}

TEST_F(RemovedFolder, IsNotGoneWhenItHasComeBackMeanwhile) {
  fs::rename(job(), shared() / "elsewhere");
  EXPECT_TRUE(absl::IsDeadlineExceeded(AwaitEvents(absl::Milliseconds(100))));
  fs::rename(shared() / "elsewhere", job());
  EXPECT_TRUE(absl::IsDeadlineExceeded(AwaitEvents(4 * kGone)));
  EXPECT_FALSE(delivery_->gone());
}

}  // namespace
}  // namespace tutti::launch
