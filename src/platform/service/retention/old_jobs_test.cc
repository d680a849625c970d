// Tests what happens between the look at old results and their removal.
#include "platform/service/retention/old_jobs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "platform/engine/fake/engine_fake.h"

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class OldJobsTest : public ::testing::Test {
 protected:
  OldJobsTest() {
    store::Job job;
    job.id = "j";
    const absl::Time then = clock_.Now() - absl::Hours(1000);
    const auto events = [&](int64_t) {
      return std::vector<store::Event>{{.time = then, .state = store::JobState::kQueued},
                                       {.time = then, .state = store::JobState::kCanceled}};
    };
    EXPECT_TRUE(store_->InsertJob(job, events, store::Durability::kCrash).ok());
    EXPECT_TRUE(base::MakeDirectories(Outputs()).ok());
    EXPECT_TRUE(base::WriteFileAtomic(Outputs() / "model", "0123456789").ok());
    Used(then);
  }

  std::filesystem::path Outputs() const { return state_.files.FolderOf("j") / "outputs"; }
  void Used(absl::Time when) const {
    const timespec times[2] = {absl::ToTimespec(when), absl::ToTimespec(when)};
    EXPECT_EQ(::utimensat(AT_FDCWD, state_.files.FolderOf("j").c_str(), times, 0), 0);
  }
  Kept Listed() {
    const auto list =
        jobs_.List(KeptKind::kResults, {.age = absl::Hours(1)}, WhatIsInUse(state_, table_));
    EXPECT_TRUE(list.ok()) << list.status();
    EXPECT_EQ(list->size(), 1u);
    return list->at(0);
  }
  bool Removed(const Kept& kept) {
    const auto removed = jobs_.Remove(kept);
    EXPECT_TRUE(removed.ok()) << removed.status();
    return removed.value_or(false);
  }

  const base::TemporaryDirectory folder_;
  base::ManualClock clock_{absl::FromUnixSeconds(1'500'000'000)};
  engine::FakeEngine engine_{1};
  std::unique_ptr<store::Store> store_ = store::Store::Open(folder_.path() / "db").value();
  SharedState state_{{.directory = folder_.path()}, store_.get(), &engine_, &clock_};
  JobTable table_{state_};
  const OldJobs jobs_{state_, table_};
};

TEST_F(OldJobsTest, WhatIsDownloadedAfterTheLookStays) {
  const Kept kept = Listed();
  Used(clock_.Now());
  EXPECT_FALSE(Removed(kept));
  EXPECT_TRUE(std::filesystem::exists(Outputs() / "model"));
  StateLock lock(state_);
  EXPECT_THAT(state_.leaving_results, IsEmpty()) << "others may take them";
}

TEST_F(OldJobsTest, WhatAJobOnItsWayTakesStays) {
  const Kept kept = Listed();
  {
    StateLock lock(state_);
    state_.inputs_on_their_way.insert("j");
  }
  EXPECT_FALSE(Removed(kept));
  StateLock lock(state_);
  state_.inputs_on_their_way.clear();
}

TEST_F(OldJobsTest, WhatHasGoneIsKnownToThoseWhoLookedForItBefore) {
  EXPECT_TRUE(Removed(Listed()));
  EXPECT_FALSE(std::filesystem::exists(Outputs()));
  StateLock lock(state_);
  EXPECT_THAT(state_.leaving_results, ElementsAre(Pair("j", clock_.SinceBoot())));
}

TEST_F(OldJobsTest, WhatCannotBeRemovedMayBeTakenByWhoLooksLater) {
  const Kept kept = Listed();
  // In the way of the folder's other name.
  const auto in_the_way = folder_.path() / "jobs/.retired-outputs-j";
  ASSERT_TRUE(base::MakeDirectories(in_the_way).ok());
  ASSERT_TRUE(base::WriteFileAtomic(in_the_way / "file", "").ok());
  EXPECT_FALSE(jobs_.Remove(kept).ok());
  StateLock lock(state_);
  EXPECT_THAT(state_.leaving_results, ElementsAre(Pair("j", clock_.SinceBoot())));
}

TEST_F(OldJobsTest, ADownloadOfAResultIsItsUse) {
  const auto time = [&] { return std::filesystem::last_write_time(state_.files.FolderOf("j")); };
  const auto before = time();
  state_.files.NoteUse("j", "logs/rank-0.stdout.log");
  EXPECT_EQ(time(), before);
  state_.files.NoteUse("j", "outputs/model");
  EXPECT_GT(time(), before);
}

}  // namespace
}  // namespace tutti::service
