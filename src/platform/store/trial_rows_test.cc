#include "platform/store/trial_rows.h"

#include <SQLiteCpp/Database.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "platform/store/schema.h"

namespace tutti::store {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using enum JobState;
using Order = TrialFilter::Order;

Event EventOf(JobState state) { return {0, absl::UnixEpoch(), state, "", "{}"}; }

class TrialRowsTest : public ::testing::Test {
 protected:
  void Open() {
    store_.reset();
    auto store = Store::Open(path_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  void InsertSweep(const std::string& id, int trials) {
    Job sweep;
    sweep.id = id;
    ASSERT_TRUE(store_->InsertJob(sweep, EventOf(kQueued)).ok());
    for (int number = 1; number <= trials; ++number) {
      Job trial;
      trial.step = absl::StrCat("trial-", number);
      trial.id = absl::StrCat(id, ".", trial.step);
      trial.parent = id;
      trial.spec.command = "true";
      trial.file_text = "command: true";
      trial.trial_values = {absl::StrCat(number), "a \"b\"\n"};
      ASSERT_TRUE(store_->InsertJob(trial, std::vector{EventOf(kQueued)}).ok());
    }
  }
  void End(const std::string& id, JobState state) {
    const int64_t last = store_->GetJob(id)->last.sequence;
    if (state == kCompleted) {
      const auto event = store_->AppendEvent(id, last, EventOf(kFinalizing), Durability::kCrash);
      ASSERT_TRUE(store_->AppendEvent(id, event->sequence, EventOf(state)).ok());
    } else {
      ASSERT_TRUE(store_->AppendEvent(id, last, EventOf(state)).ok());
    }
  }
  std::vector<std::string> Steps(const TrialFilter& filter) {
    std::vector<std::string> steps;
    const auto trials = store_->TrialsOf(filter);
    EXPECT_TRUE(trials.ok()) << trials.status();
    for (const TrialRecord& trial : *trials) steps.push_back(trial.job.job.step);
    return steps;
  }
  std::vector<std::string> Unread(int64_t after = 0, int limit = 100) {
    std::vector<std::string> jobs;
    const auto trials = store_->UnreadTrials(after, limit);
    EXPECT_TRUE(trials.ok()) << trials.status();
    for (const UnreadTrial& trial : *trials) {
      jobs.push_back(absl::StrCat(trial.sweep, ">", trial.job));
    }
    return jobs;
  }

  base::TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "store.db";
  std::unique_ptr<Store> store_;
};

TEST_F(TrialRowsTest, AreReadByNumberAndByState) {
  Open();
  InsertSweep("s", 5);
  InsertSweep("other", 2);
  End("s.trial-2", kFailed);
  End("s.trial-4", kFailed);
  EXPECT_THAT(Steps({.sweep = "s", .limit = 3}), ElementsAre("trial-1", "trial-2", "trial-3"));
  const int64_t third = store_->GetJob("s.trial-3")->job.sequence;
  EXPECT_THAT(Steps({.sweep = "s", .after = third}), ElementsAre("trial-4", "trial-5"));
  EXPECT_THAT(Steps({.sweep = "s", .states = {kFailed}}), ElementsAre("trial-2", "trial-4"));
  EXPECT_THAT(Steps({.sweep = "s", .states = {kFailed, kQueued}, .limit = 2, .after = third}),
              ElementsAre("trial-4", "trial-5"));
  EXPECT_THAT(Steps({.sweep = "s", .states = {kRunning}}), IsEmpty());
  EXPECT_THAT(Steps({.sweep = "none"}), IsEmpty());
  EXPECT_THAT(Steps({.sweep = ""}), IsEmpty()) << "not what has no parent";
  EXPECT_THAT(*store_->CountChildren("s"), ElementsAre(Pair(kQueued, 3), Pair(kFailed, 2)));
  EXPECT_THAT(*store_->CountChildren("none"), IsEmpty());
}

TEST_F(TrialRowsTest, HaveTheirValuesAndNoSpec) {
  Open();
  InsertSweep("s", 2);
  Open();
  const auto trials = store_->TrialsOf({.sweep = "s"});
  ASSERT_EQ(trials->size(), 2u);
  EXPECT_THAT((*trials)[1].values, ElementsAre("2", "a \"b\"\n"));
  EXPECT_EQ((*trials)[1].job.job.id, "s.trial-2");
  EXPECT_EQ((*trials)[1].job.last.state, kQueued);
  EXPECT_EQ((*trials)[1].cost, std::nullopt);
  EXPECT_THAT((*trials)[1].job.job.spec.command, IsEmpty());
  EXPECT_THAT((*trials)[1].job.job.file_text, IsEmpty());
}

// Trials of equal cost come in their order, also over pages, and only completed ones count.
TEST_F(TrialRowsTest, AreRankedByWhatTheyHaveReported) {
  Open();
  std::minstd_rand random(5);
  InsertSweep("other", 3);
  InsertSweep("s", 40);
  std::vector<std::pair<double, int>> ranked;
  for (int number = 1; number <= 40; ++number) {
    const std::string id = absl::StrCat("s.trial-", number);
    const JobState state = number % 5 == 0 ? kFailed : kCompleted;
    const std::optional<double> cost =
        number % 7 == 0 ? std::nullopt : std::optional(static_cast<double>(random() % 6) / 3 - 1);
    End(id, state);
    ASSERT_TRUE(store_->NoteTrials({{id, cost}, {"gone", 1}}, Durability::kCrash).ok());
    if (state == kCompleted && cost) ranked.emplace_back(*cost, number);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> expected, found;
  for (const auto& [cost, number] : ranked) expected.push_back(absl::StrCat("trial-", number));
  TrialFilter filter{.sweep = "s", .order = Order::kBest, .limit = 7};
  while (true) {
    const auto page = store_->TrialsOf(filter);
    ASSERT_TRUE(page.ok()) << page.status();
    if (page->empty()) break;
    for (const TrialRecord& trial : *page) found.push_back(trial.job.job.step);
    filter.after = page->back().job.job.sequence;
    filter.after_cost = *page->back().cost;
  }
  EXPECT_EQ(found, expected);
  EXPECT_THAT(store_->TrialsOf({.sweep = "s", .limit = 5})->back().cost, Optional(testing::_))
      << "a failed one shows what it has reported";
  End("s", kCanceled);
  ASSERT_TRUE(store_->DeleteJob("s").ok());
  EXPECT_EQ(SQLite::Database(path_.string()).execAndGet("SELECT count(*) FROM trials").getInt(), 3);
}

TEST_F(TrialRowsTest, AreToBeReadOnceTheirSweepHasEndedAndNobodyHasNotedThem) {
  Open();
  for (const char* sweep : {"a", "b"}) InsertSweep(sweep, 3);
  for (const char* sweep : {"a", "b"}) {
    for (int i = 1; i <= 3; ++i) End(absl::StrCat(sweep, ".trial-", i), kCanceled);
  }
  EXPECT_THAT(Unread(), IsEmpty());
  End("b", kCanceled);
  EXPECT_THAT(Unread(), ElementsAre("b>b.trial-1", "b>b.trial-2", "b>b.trial-3"));
  ASSERT_TRUE(store_->NoteTrials({{"b.trial-2", std::nullopt}}, Durability::kPowerLoss).ok());
  EXPECT_THAT(Unread(0, 1), ElementsAre("b>b.trial-1"));
  EXPECT_THAT(Unread(store_->GetJob("b.trial-1")->job.sequence), ElementsAre("b>b.trial-3"));
}

// As a layout without them had it: what trials were given stands in their specs alone.
TEST_F(TrialRowsTest, FollowFromTheSpecsOfAnEarlierLayout) {
  constexpr int kOldLayout = 9;
  {
    const Migrations old(AllMigrations().begin(), AllMigrations().begin() + kOldLayout);
    auto database = Database::Open(path_, old, {absl::Seconds(5), nullptr, nullptr, nullptr});
    ASSERT_TRUE(database.ok()) << database.status();
    const absl::Status written = (*database)->Write([&](SqliteConnection& sqlite) {
      sqlite.exec(R"sql(
        INSERT INTO jobs (sequence, id, created_us, spec, file_text, snapshot, job_token, warnings,
                          parent, step) VALUES
          (1, 's', 1, '{"kind":"sweep","sweep":{"parameters":[{"name":"lr"},{"name":"a.b"}]}}',
           '', '', '', '[]', '', ''),
          (2, 's.trial-1', 1,
           '{"command":"x","inputs":{"a.b":{"literal":"2"},"data":{"literal":"d"},"lr":{"literal":"0.1"}}}',
           '', '', '', '[]', 's', 'trial-1'),
          (3, 's.trial-2', 1, '{"command":"x","inputs":{"lr":{"literal":"it''s"}}}', '', '', '',
           '[]', 's', 'trial-2'),
          (4, 'p', 1, '{"kind":"pipeline"}', '', '', '', '[]', '', ''),
          (5, 'p.a', 1, '{"command":"x"}', '', '', '', '[]', 'p', 'a'),
          (6, 'damaged', 1, 'no JSON', '', '', '', '[]', '', ''),
          (7, 'damaged.a', 1, 'neither', '', '', '', '[]', 'damaged', 'a');
        INSERT INTO events SELECT sequence, id, 1, 'Canceled', '', '{}' FROM jobs;
        INSERT INTO job_states SELECT sequence, parent, 'Canceled', sequence, NULL FROM jobs;
      )sql");
      return absl::OkStatus();
    });
    ASSERT_TRUE(written.ok()) << written;
  }
  Open();
  const auto trials = store_->TrialsOf({.sweep = "s"});
  ASSERT_TRUE(trials.ok()) << trials.status();
  ASSERT_EQ(trials->size(), 2u);
  EXPECT_THAT((*trials)[0].values, ElementsAre("0.1", "2")) << "in the order of the parameters";
  EXPECT_THAT((*trials)[1].values, ElementsAre("it's", ""));
  EXPECT_THAT(Unread(), ElementsAre("s>s.trial-1", "s>s.trial-2"));
  EXPECT_EQ(SQLite::Database(path_.string()).execAndGet("SELECT count(*) FROM trials").getInt(), 2);
}

}  // namespace
}  // namespace tutti::store
