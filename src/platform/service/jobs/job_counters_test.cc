#include "platform/service/jobs/job_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/base/thread_annotations.h"
#include "platform/service/jobs/live_job.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// No lock is needed where nobody else is.
class JobCountersTest : public testing::Test {
 protected:
  void Tell(int64_t sequence, JobState state, absl::Duration after,
            const EventDetail& detail = {}) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    store::Job job = job_;
    job.sequence = sequence;
    job.created = absl::UnixEpoch();
    counters_.OnEvent(job, {.time = absl::UnixEpoch() + after, .state = state}, detail);
  }
  JobCounters::Counts Counts() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return counters_.counts(); }

  JobCounters counters_;
  store::Job job_;  // but for its sequence and its time
};

TEST_F(JobCountersTest, CountsStatesAndHowLongJobsWaitAndRun) {
  Tell(1, JobState::kQueued, absl::ZeroDuration());
  Tell(1, JobState::kQueued, absl::Seconds(1));  // another reason
  Tell(1, JobState::kRunning, absl::Seconds(2));
  Tell(1, JobState::kCompleted, absl::Seconds(92));
  Tell(2, JobState::kQueued, absl::ZeroDuration());
  Tell(2, JobState::kCanceled, absl::Seconds(5));
  const auto counts = Counts();
  EXPECT_THAT(counts.entered,
              UnorderedElementsAre(Pair(JobState::kQueued, 2), Pair(JobState::kRunning, 1),
                                   Pair(JobState::kCompleted, 1), Pair(JobState::kCanceled, 1)));
  EXPECT_EQ(counts.waits.sum(), absl::Seconds(2));
  EXPECT_EQ(counts.waits.counts()[3], 1) << "at most 10 s";
  EXPECT_EQ(counts.runs.sum(), absl::Seconds(90));
  EXPECT_EQ(counts.runs.counts()[5], 1) << "at most 10 min";
}

TEST_F(JobCountersTest, AJobThatBeginsAgainWaitsOnceAndRunsAsLongAsItsLastAttempt) {
  Tell(1, JobState::kQueued, absl::ZeroDuration());
  Tell(1, JobState::kRunning, absl::Milliseconds(10));
  Tell(1, JobState::kQueued, absl::Seconds(50), {.begun_before = 1});
  Tell(1, JobState::kRunning, absl::Seconds(60));
  Tell(1, JobState::kFailed, absl::Seconds(61));
  const auto counts = Counts();
  EXPECT_EQ(counts.entered.at(JobState::kQueued), 2);
  EXPECT_EQ(counts.waits.sum(), absl::Milliseconds(10));
  EXPECT_EQ(counts.waits.counts()[0], 1) << "a bound is among what it bounds";
  EXPECT_EQ(counts.runs.sum(), absl::Seconds(1));
}

TEST_F(JobCountersTest, OfAJobOfAnEarlierServiceOnlyTheRestIsKnown) {
  Tell(1, JobState::kRunning, absl::Hours(5));
  Tell(1, JobState::kCompleted, absl::Hours(200));
  Tell(2, JobState::kFinalizing, absl::Hours(1));
  Tell(2, JobState::kCompleted, absl::Hours(1));
  const auto counts = Counts();
  EXPECT_EQ(counts.waits.sum(), absl::ZeroDuration());
  EXPECT_EQ(counts.runs.counts().back(), 1) << "longer than a week";
  EXPECT_EQ(counts.entered.at(JobState::kCompleted), 2);
}

TEST_F(JobCountersTest, CountsWhatIsSubmittedByItsKind) {
  Tell(1, JobState::kQueued, absl::ZeroDuration());
  job_.spec.kind = spec::JobKind::kSweep;
  Tell(2, JobState::kQueued, absl::ZeroDuration());
  job_.parent = "sweep";
  job_.spec.kind = spec::JobKind::kCommand;
  Tell(3, JobState::kQueued, absl::ZeroDuration());
  Tell(3, JobState::kRunning, absl::Seconds(1));
  Tell(3, JobState::kQueued, absl::Seconds(2), {.begun_before = 1});
  Tell(4, JobState::kFinalizing, absl::ZeroDuration());  // an earlier service took it in
  EXPECT_THAT(Counts().submitted, UnorderedElementsAre(Pair(SubmissionKind::kCommand, 1),
                                                       Pair(SubmissionKind::kSweep, 1),
                                                       Pair(SubmissionKind::kChild, 1)));
  EXPECT_EQ(Counts().restarts, 1);
}

TEST_F(JobCountersTest, AJobOfAnEarlierServiceThatBeginsAgainIsARestartAndNoSubmission) {
  Tell(1, JobState::kQueued, absl::Hours(5), {.begun_before = 1});
  Tell(1, JobState::kRunning, absl::Hours(6));
  const auto counts = Counts();
  EXPECT_EQ(counts.restarts, 1);
  EXPECT_THAT(counts.submitted, ::testing::IsEmpty());
  EXPECT_EQ(counts.waits.sum(), absl::ZeroDuration());
}

TEST_F(JobCountersTest, CountsFailuresByWhatFailed) {
  const EventDetail of_rank{
      .failures = {{.rank = 1, .node = "n1", .kind = FailureKind::kExitCode}}};
  const EventDetail of_node{.failures = {{.node = "n1", .kind = FailureKind::kNode}}};
  const EventDetail of_files{.failures = {{.node = "n1", .kind = FailureKind::kOther}}};
  Tell(1, JobState::kRunning, absl::ZeroDuration());
  Tell(1, JobState::kFailed, absl::Seconds(1), of_rank);
  Tell(2, JobState::kPreparing, absl::ZeroDuration());
  Tell(2, JobState::kFinalizing, absl::ZeroDuration());
  Tell(2, JobState::kFailed, absl::Seconds(1), of_files);
  Tell(3, JobState::kRunning, absl::ZeroDuration());
  Tell(3, JobState::kFinalizing, absl::ZeroDuration());
  Tell(3, JobState::kFailed, absl::Seconds(1), of_node);
  Tell(4, JobState::kRunning, absl::ZeroDuration());
  Tell(4, JobState::kFailed, absl::Seconds(1), {.cause = Cause::kTimedOut});
  Tell(5, JobState::kQueued, absl::ZeroDuration());
  Tell(5, JobState::kFailed, absl::Seconds(1));
  Tell(7, JobState::kRunning, absl::ZeroDuration());
  Tell(7, JobState::kFailed, absl::Seconds(1), of_files);
  job_.spec.kind = spec::JobKind::kPipeline;
  Tell(6, JobState::kRunning, absl::ZeroDuration());
  Tell(6, JobState::kFailed, absl::Seconds(1));
  EXPECT_THAT(
      Counts().failures,
      UnorderedElementsAre(Pair(FailureKind::kExitCode, 1), Pair(FailureKind::kNode, 1),
                           Pair(FailureKind::kPreparation, 2), Pair(FailureKind::kTimeLimit, 1),
                           Pair(FailureKind::kOther, 1), Pair(FailureKind::kChild, 1)));
}

}  // namespace
}  // namespace tutti::service
