#include "platform/service/usage/job_usage.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/file.h"

namespace tutti::service {
namespace {

const absl::Time kJobBegin = absl::FromUnixSeconds(1'800'000'000);

spec::UsageSample At(int second, int rank, float cpu) {
  spec::UsageSample sample{.time = kJobBegin + absl::Seconds(second)};
  sample.cpu = cpu;
  sample.memory = 10;
  sample.memory_left = 90 - static_cast<float>(rank);
  sample.ranks = {{.rank = rank, .cpu = cpu}};
  return sample;
}

bool Take(JobUsage& usage, int node, std::vector<spec::UsageSample> samples,
          absl::Duration since_boot) {
  return usage.Take(node, std::move(samples), kJobBegin + absl::Minutes(10), since_boot);
}

class JobUsageTest : public ::testing::Test {
 protected:
  std::unique_ptr<JobUsage> Make() const {
    return std::make_unique<JobUsage>(folder_.path() / kUsageFolder,
                                      std::vector<JobUsage::NodePlace>{{"n1", 0, 1}, {"n2", 1, 1}});
  }
  const base::TemporaryDirectory folder_;
};

TEST_F(JobUsageTest, SaysWhatEachNodeUses) {
  const auto usage = Make();
  Take(*usage, 0, {At(0, 0, 1)}, absl::ZeroDuration());
  EXPECT_EQ(usage->View({}, kJobBegin)->nodes.at(0).recent.size(), 0) << "before it is loaded";
  usage->Load();
  Take(*usage, 0, {At(1, 0, 1), At(2, 0, 2)}, absl::Seconds(1));
  Take(*usage, 1, {At(2, 1, 4)}, absl::Seconds(1));
  Take(*usage, 2, {At(2, 2, 4)}, absl::Seconds(1));  // there is none
  const auto view = usage->View({}, kJobBegin + absl::Seconds(2));
  ASSERT_TRUE(view.ok());
  ASSERT_EQ(view->nodes.size(), 2);
  EXPECT_TRUE(view->live);
  EXPECT_EQ(view->nodes[1].name, "n2");
  EXPECT_EQ(view->nodes[0].recent.size(), 2);
  const UsageNow now = usage->Now(kJobBegin + absl::Seconds(3));
  EXPECT_EQ(now.nodes, 2);
  EXPECT_EQ(now.cpu, 6);
  EXPECT_EQ(now.memory, 20);
  EXPECT_EQ(now.memory_left, 89);
  EXPECT_EQ(usage->Now(kJobBegin + absl::Minutes(2)).nodes, 0);
}

TEST_F(JobUsageTest, AddsUpGpusWhereThereAreAny) {
  const auto usage = Make();
  usage->Begin();
  Take(*usage, 0, {At(1, 0, 1)}, absl::Seconds(1));
  EXPECT_EQ(usage->Now(kJobBegin).gpu_use, std::nullopt);
  EXPECT_EQ(usage->Now(kJobBegin).gpu_memory, std::nullopt);
  spec::UsageSample with = At(2, 1, 4);
  with.gpus = {{.gpu = "0", .use = 0.5, .memory = 100}, {.gpu = "1", .use = 1, .memory = 7}};
  Take(*usage, 1, {with}, absl::Seconds(1));
  with.time += absl::Seconds(1);
  with.gpus.pop_back();
  Take(*usage, 0, {with}, absl::Seconds(1));
  EXPECT_EQ(usage->Now(kJobBegin).gpu_use, 2);
  EXPECT_EQ(usage->Now(kJobBegin).gpu_memory, 207);
}

TEST_F(JobUsageTest, SaysThatOfOneRank) {
  const auto usage = Make();
  const auto view = usage->View({.rank = 1}, kJobBegin);
  ASSERT_TRUE(view.ok());
  ASSERT_EQ(view->nodes.size(), 1);
  EXPECT_EQ(view->nodes[0].name, "n2");
  EXPECT_TRUE(absl::IsNotFound(usage->View({.rank = 2}, kJobBegin).status()));
}

TEST_F(JobUsageTest, RefusesAnswersThatAreTooLargeAndHasFewerPointsWhereNoneAreAskedFor) {
  JobUsage usage(folder_.path(), std::vector<JobUsage::NodePlace>(1000, {"n", 0, 8}));
  usage.Begin();
  std::vector<spec::UsageSample> samples;
  for (int i = 0; i < 60; ++i) samples.push_back(At(i, 0, 1));
  Take(usage, 0, samples, absl::ZeroDuration());
  EXPECT_TRUE(absl::IsInvalidArgument(usage.View({.points = 1440}, kJobBegin).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(usage.View({.points = 60}, kJobBegin).status()));
  EXPECT_EQ(usage.View({.points = 10}, kJobBegin)->nodes[0].recent.size(), 10);
  const size_t points = usage.View({}, kJobBegin)->nodes[0].recent.size();
  EXPECT_GT(points, 20);
  EXPECT_LT(points, 60);
}

TEST_F(JobUsageTest, KeepsLessOfLargeGangsAndOfManyJobs) {
  const auto memory = std::make_shared<UsageMemory>();
  constexpr int64_t kBytes = sizeof(float), kMiB = 1 << 20;
  {
    const JobUsage large("none", std::vector<JobUsage::NodePlace>(1000, {"n", 0, 8}), memory);
    EXPECT_LE(memory->values * kBytes, 96 * kMiB);
    EXPECT_EQ(memory->nodes, 1000);
    std::vector<std::unique_ptr<JobUsage>> jobs;
    for (int i = 0; i < 20'000; ++i) {
      jobs.push_back(std::make_unique<JobUsage>(
          "none", std::vector<JobUsage::NodePlace>{{"n", 0, 1}}, memory));
    }
    EXPECT_LE(memory->values * kBytes, 640 * kMiB);
    EXPECT_EQ(memory->nodes, 21'000);
  }
  EXPECT_EQ(memory->values, 0);
  EXPECT_EQ(memory->nodes, 0);
}

TEST_F(JobUsageTest, BelievesNoTimeThatCannotBe) {
  const auto usage = Make();
  usage->Begin();
  const auto take = [&](absl::Time time, absl::Time now) {
    spec::UsageSample sample = At(0, 0, 1);
    sample.time = time;
    usage->Take(0, {sample}, now, absl::ZeroDuration());
  };
  const auto last = [&] {
    const UsageTable recent = usage->View({}, kJobBegin)->nodes.at(0).recent;
    return recent.size() == 0 ? absl::InfinitePast()
                              : absl::FromUnixMillis(recent.time(recent.size() - 1));
  };
  take(kJobBegin - absl::Hours(2), kJobBegin);
  take(absl::InfinitePast(), kJobBegin);
  EXPECT_EQ(last(), absl::InfinitePast()) << "too old";
  take(absl::InfiniteFuture(), kJobBegin);
  EXPECT_EQ(last(), kJobBegin);
  take(kJobBegin + absl::Seconds(1), kJobBegin + absl::Seconds(1));
  EXPECT_EQ(last(), kJobBegin + absl::Seconds(1));
  // The service's clock is put back.
  const absl::Time back = kJobBegin - absl::Hours(5);
  take(back, back);
  EXPECT_EQ(last(), back);
}

TEST_F(JobUsageTest, SavesOnceHoweverLongItTakes) {
  const auto usage = Make();
  usage->Begin();
  EXPECT_FALSE(Take(*usage, 0, {At(0, 0, 1)}, absl::ZeroDuration()));
  EXPECT_TRUE(Take(*usage, 0, {At(31, 0, 1)}, absl::Seconds(31)));
  EXPECT_FALSE(Take(*usage, 0, {At(62, 0, 1)}, absl::Seconds(62))) << "it is under way";
  usage->Save(/*has_room=*/false);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / kUsageFolder));
  EXPECT_TRUE(Take(*usage, 0, {At(93, 0, 1)}, absl::Seconds(93)));
}

TEST_F(JobUsageTest, AnAttemptOnOtherNodesHasNothingOfTheFormer) {
  {
    JobUsage former(folder_.path() / kUsageFolder, {{"n1", 0, 1}, {"n2", 1, 1}, {"n3", 2, 1}});
    former.Begin();
    for (int node = 0; node < 3; ++node) {
      former.Take(node, {At(0, node, 1)}, kJobBegin, absl::ZeroDuration());
    }
    former.Close(/*has_room=*/true);
  }
  JobUsage next(folder_.path() / kUsageFolder, {{"n1", 0, 1}, {"n2", 1, 2}});
  next.Load();
  next.Close(/*has_room=*/true);
  const auto view = JobUsage::Read(folder_.path() / kUsageFolder, {});
  ASSERT_TRUE(view.ok());
  ASSERT_EQ(view->nodes.size(), 1);
  EXPECT_EQ(view->nodes[0].first_rank, 0);
}

TEST_F(JobUsageTest, ANextServiceAndWhoAsksAfterTheEndHaveIt) {
  {
    const auto usage = Make();
    usage->Load();
    EXPECT_FALSE(Take(*usage, 0, {At(0, 0, 1)}, absl::ZeroDuration()));
    EXPECT_FALSE(Take(*usage, 0, {At(29, 0, 1)}, absl::Seconds(29)));
    EXPECT_TRUE(Take(*usage, 0, {At(31, 0, 1)}, absl::Seconds(31))) << "Save is due";
    usage->Save(/*has_room=*/true);
  }
  const auto next = Make();
  next->Load();
  ASSERT_EQ(next->View({}, kJobBegin)->nodes.at(0).whole.size(), 1) << "of the service before";
  Take(*next, 0, {At(65, 0, 3)}, absl::ZeroDuration());
  EXPECT_EQ(next->View({}, kJobBegin)->nodes.at(0).whole.size(), 2);
  next->Close(/*has_room=*/true);
  Take(*next, 0, {At(100, 0, 3)}, absl::ZeroDuration());
  const auto view = JobUsage::Read(folder_.path() / kUsageFolder, {});
  ASSERT_TRUE(view.ok());
  EXPECT_FALSE(view->live);
  ASSERT_EQ(view->nodes.size(), 1);
  EXPECT_EQ(view->nodes[0].whole.size(), 2);
  EXPECT_EQ(view->nodes[0].recent.size(), 1);
}

TEST_F(JobUsageTest, WritesNothingOfAJobThatHasNone) {
  const auto usage = Make();
  usage->Begin();
  usage->Close(/*has_room=*/true);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / kUsageFolder));
  EXPECT_TRUE(JobUsage::Read(folder_.path() / kUsageFolder, {})->nodes.empty());
}

}  // namespace
}  // namespace tutti::service
