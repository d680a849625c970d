// Who looks at very many jobs under the lock lets others have it in between.
// Covers: job_table.h, shared_state.h, job_views.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "platform/engine/fake/engine_fake.h"
#include "platform/service/jobs/job_views.h"

namespace tutti::service {
namespace {

constexpr int kJobs = 2000;

// A cluster's engine, which is asked about each of its jobs that is shown, under the lock.
class AskedEngine final : public engine::Engine {
 public:
  std::string WhyOutOfReach() const override {
    if (asked) asked();
    return "";
  }
  std::function<void()> asked;

  engine::EngineTraits traits() const override { return {.schedules_itself = true}; }
  absl::StatusOr<std::vector<engine::Node>> ListNodes() override {
    return std::vector<engine::Node>();
  }
  absl::Status Start(const engine::Allocation&) override { return absl::OkStatus(); }
  absl::Status Stop(const std::string&, absl::Duration) override { return absl::OkStatus(); }
  absl::Status Kill(const std::string&, int) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<engine::AllocationState>> Observe() override {
    return std::vector<engine::AllocationState>();
  }
  absl::Status Release(const std::string&) override { return absl::OkStatus(); }
};

class TurnsTest : public ::testing::Test {
 protected:
  TurnsTest() {
    StateLock lock(state_);
    for (int i = 0; i < kJobs; ++i) {
      store::Job job;
      job.id = absl::StrCat("j", i);
      job.spec.compute = "hpc";
      const auto events = [&](int64_t) {
        return std::vector<store::Event>{{.time = clock_.Now()}};
      };
      const auto record = store_->InsertJob(job, events, store::Durability::kCrash);
      EXPECT_TRUE(record.ok()) << record.status();
      table_.Add(*record);
    }
  }
  // Returns whether somebody else gets the lock between the first and the last time that
  // `visit_all` calls what it is given, which it does under the lock.
  bool LetsOthersIn(const std::function<void(std::function<void()>)>& visit_all) {
    std::atomic<bool> wants = false, has_had_it = false;
    int visits = 0;
    bool in_between = false;
    std::thread other;
    visit_all([&] {
      if (++visits == 1) {
        other = std::thread([&] {
          wants = true;
          StateLock lock(state_);
          has_had_it = true;
        });
        base::AwaitPatiently(absl::Seconds(20), [&] { return wants.load(); });
      }
      if (visits == kJobs) in_between = has_had_it;
    });
    other.join();
    EXPECT_EQ(visits, kJobs);
    return in_between;
  }
  // The same of one of several, as the other may be asleep for as long as it likes.
  bool LetOthersIn(const std::function<void(std::function<void()>)>& visit_all) {
    return base::AwaitPatiently(absl::Seconds(20), [&] { return LetsOthersIn(visit_all); });
  }

  const base::TemporaryDirectory folder_;
  const base::ManualClock clock_;
  const std::unique_ptr<store::Store> store_ = *store::Store::Open(folder_.path() / "tutti.db");
  engine::FakeEngine local_{1};
  AskedEngine cluster_;
  SharedState state_{{.directory = folder_.path()}, store_.get(), EnginesOf(), &clock_};
  JobTable table_{state_};
  JobViews views_{state_, table_};

 private:
  Engines EnginesOf() {
    Engines engines(&local_);
    engines.clusters["hpc"] = &cluster_;
    return engines;
  }
};

TEST_F(TurnsTest, OthersGetTheLockWhileAllLiveJobsAreVisited) {
  EXPECT_TRUE(LetOthersIn([&](const std::function<void()>& visited) {
    std::string last;
    table_.VisitLive([&](const LiveJob& job) {
      EXPECT_LT(last, job.record.job.id);
      last = job.record.job.id;
      visited();
    });
  }));
}

TEST_F(TurnsTest, OthersGetTheLockWhileALongListIsMade) {
  EXPECT_TRUE(LetOthersIn([&](const std::function<void()>& visited) {
    cluster_.asked = visited;
    EXPECT_EQ(views_.ListSummaries({.limit = kJobs})->size(), size_t{kJobs});
    cluster_.asked = nullptr;
  }));
}

}  // namespace
}  // namespace tutti::service
