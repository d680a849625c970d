// Covers: rows.cc, log_rows.cc, site_rows.cc, schema.cc, reader_pool.cc, shared_database.cc.
#include "platform/store/store.h"

#include <SQLiteCpp/Database.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "platform/store/held_reads_for_tests.h"

namespace tutti::store {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using enum JobState;

Job AJob(absl::string_view id) {
  Job job;
  job.id = std::string(id);
  job.created = absl::FromUnixMicros(1'700'000'000'123'456);
  job.spec.command = "python train.py";
  job.spec.timeout = absl::Hours(2);
  job.spec.tags = {{"a", "b"}};
  job.file_text = "command: python train.py\n";
  job.snapshot = "sha256:00";
  job.job_token = "secret";
  job.warnings = {"job.yml:3: \"services\" has no effect"};
  return job;
}

Event AnEvent(JobState state, absl::string_view reason = "", int64_t micros = 1) {
  return {0, absl::FromUnixMicros(micros), state, std::string(reason), R"({"a":1})"};
}

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() { Reopen(); }

  void Reopen() {
    store_.reset();
    auto store = Store::Open(path_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  JobRecord Insert(absl::string_view id) {
    auto record = store_->InsertJob(AJob(id), AnEvent(kQueued));
    EXPECT_TRUE(record.ok()) << record.status();
    return *record;
  }

  // Moves a job on from its last event.
  absl::StatusOr<Event> Move(absl::string_view id, JobState state, int64_t micros = 1,
                             Reader reader = Reader::kAnyone) {
    return store_->AppendEvent(id, store_->GetJob(id, reader)->last.sequence,
                               AnEvent(state, "", micros));
  }

  std::vector<std::string> Ids(const JobFilter& filter) {
    std::vector<std::string> ids;
    const auto records = store_->ListJobs(filter);
    for (const JobRecord& record : *records) ids.push_back(record.job.id);
    return ids;
  }

  base::TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "store.db";
  std::unique_ptr<Store> store_;
};

TEST_F(StoreTest, GivesBackWhatItWasGivenAlsoAfterItWasOpenedAgain) {
  Insert("one");
  Reopen();
  const auto record = store_->GetJob("one");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->job.sequence, 1);
  EXPECT_EQ(record->job.created, AJob("one").created);
  EXPECT_EQ(record->job.spec.command, "python train.py");
  EXPECT_EQ(record->job.spec.timeout, absl::Hours(2));
  EXPECT_EQ(record->job.file_text, AJob("one").file_text);
  EXPECT_EQ(record->job.snapshot, "sha256:00");
  EXPECT_EQ(record->job.job_token, "secret");
  EXPECT_EQ(record->job.warnings, AJob("one").warnings);
  EXPECT_EQ(record->last.state, kQueued);
  EXPECT_EQ(record->last.detail, R"({"a":1})");
  EXPECT_EQ(record->started, std::nullopt);
}

TEST_F(StoreTest, ASubmissionIsKnownByItsNonceAndMakesOneJob) {
  const auto of_nonce = [](const std::string& id, const std::string& nonce) {
    Job job = AJob(id);
    job.nonce = nonce;
    return job;
  };
  ASSERT_TRUE(store_->InsertJob(of_nonce("one", "n1"), AnEvent(kQueued)).ok());
  Reopen();
  EXPECT_EQ(store_->JobOfNonce("n1")->job.id, "one");
  EXPECT_EQ(store_->JobOfNonce("n1")->job.nonce, "n1");
  const auto again = store_->InsertJob(of_nonce("two", "n1"), AnEvent(kQueued));
  EXPECT_EQ(again.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_FALSE(store_->GetJob("two").ok());
  Insert("three");
  Insert("four");  // without one
  EXPECT_EQ(store_->JobOfNonce("").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StoreTest, AJobsStateIsWhatItsLastEventSays) {
  Insert("one");
  Insert("two");
  ASSERT_TRUE(Move("one", kProvisioning).ok());
  ASSERT_TRUE(Move("one", kRunning, 20).ok());
  ASSERT_TRUE(Move("one", kRunning, 30).ok());
  EXPECT_EQ(store_->GetJob("one")->last.state, kRunning);
  EXPECT_EQ(store_->GetJob("one")->started, absl::FromUnixMicros(20));
  EXPECT_EQ(store_->GetJob("one")->ended(), std::nullopt);
  EXPECT_EQ(store_->GetJob("two")->last.state, kQueued);
  ASSERT_TRUE(Move("one", kFailed, 40).ok());
  EXPECT_EQ(store_->GetJob("one")->ended(), absl::FromUnixMicros(40));
}

TEST_F(StoreTest, AJobThatGoesBackToTheQueueHasNotStarted) {
  Insert("one");
  ASSERT_TRUE(Move("one", kRunning, 20).ok());
  ASSERT_TRUE(Move("one", kQueued, 30).ok());
  EXPECT_EQ(store_->GetJob("one")->started, std::nullopt);
  ASSERT_TRUE(Move("one", kRunning, 40).ok());
  EXPECT_EQ(store_->GetJob("one")->started, absl::FromUnixMicros(40));
}

TEST_F(StoreTest, WhatIsKeptOfStatesIsWhatTheEventsSay) {
  std::minstd_rand random(7);
  for (int i = 0; i < 20; ++i) Insert(absl::StrCat("j", i));
  for (int i = 0; i < 400; ++i) {
    Move(absl::StrCat("j", random() % 20), kJobStates[random() % kJobStates.size()], i)
        .status()
        .IgnoreError();
  }
  const int wrong = SQLite::Database(path_.string())
                        .execAndGet(R"sql(
    SELECT count(*) FROM job_states s JOIN jobs j ON j.sequence = s.job WHERE
      s.last_event != (SELECT max(sequence) FROM events WHERE job_id = j.id) OR
      s.state != (SELECT state FROM events WHERE sequence = s.last_event) OR
      s.started_us IS NOT (
        SELECT time_us FROM events r WHERE r.job_id = j.id AND r.state = 'Running' AND r.sequence >
          (SELECT max(sequence) FROM events WHERE job_id = j.id AND state = 'Queued')
        ORDER BY r.sequence LIMIT 1))sql")
                        .getInt();
  EXPECT_EQ(wrong, 0);
}

TEST_F(StoreTest, RefusesASecondJobOfTheSameId) {
  Insert("one");
  const auto again = store_->InsertJob(AJob("one"), AnEvent(kQueued));
  EXPECT_EQ(again.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(again.status().message()), HasSubstr("\"one\""));
  EXPECT_EQ(store_->EventsOf("one")->size(), 1u);
}

TEST_F(StoreTest, AFirstEventThatIsNotQueuedLeavesNoJob) {
  EXPECT_FALSE(store_->InsertJob(AJob("one"), AnEvent(kRunning)).ok());
  EXPECT_EQ(store_->GetJob("one").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StoreTest, OfTwoWritersThatSawTheSameEventOneIsTurnedAway) {
  const JobRecord seen = Insert("one");
  auto other = Store::Open(path_);  // another process, as far as SQLite can tell
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE(store_->AppendEvent("one", seen.last.sequence, AnEvent(kRunning)).ok());
  const auto late = (*other)->AppendEvent("one", seen.last.sequence, AnEvent(kCanceled));
  EXPECT_EQ(late.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(late.status().message()), HasSubstr("moved on to Running"));
  EXPECT_EQ(store_->GetJob("one")->last.state, kRunning);
}

TEST_F(StoreTest, RefusesAStepThatAJobCannotTake) {
  Insert("one");
  ASSERT_TRUE(Move("one", kCanceled).ok());
  const auto after_the_end = Move("one", kRunning);
  EXPECT_EQ(after_the_end.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(after_the_end.status().message(), "job one is Canceled and cannot become Running");
  EXPECT_EQ(store_->AppendEvent("none", 1, AnEvent(kRunning)).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(StoreTest, ThreadsThatRetryLoseNoEvent) {
  Insert("one");
  constexpr int kThreads = 4;
  constexpr int kEach = 20;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int done = 0; done < kEach;) {
        const auto appended = Move("one", kQueued);
        if (appended.ok()) ++done;
        ASSERT_TRUE(appended.ok() || absl::IsAborted(appended.status())) << appended.status();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store_->EventsOf("one")->size(), 1u + kThreads * kEach);
}

TEST_F(StoreTest, ListsNewestFirstByPageAndState) {
  for (int i = 1; i <= 5; ++i) Insert(absl::StrCat("j", i));
  ASSERT_TRUE(Move("j2", kRunning).ok());
  ASSERT_TRUE(Move("j4", kFailed).ok());
  EXPECT_THAT(Ids({}), ElementsAre("j5", "j4", "j3", "j2", "j1"));
  EXPECT_THAT(Ids({{}, 2, 0}), ElementsAre("j5", "j4"));
  EXPECT_THAT(Ids({{}, 2, 4}), ElementsAre("j3", "j2"));
  EXPECT_THAT(Ids({{kRunning, kFailed}, 10, 0}), ElementsAre("j4", "j2"));
  EXPECT_THAT(Ids({{kRunning, kQueued, kRunning}, 3, 5}), ElementsAre("j3", "j2", "j1"));
  EXPECT_THAT(Ids({{kRunning, kQueued}, 2, 0}), ElementsAre("j5", "j3"));
  EXPECT_THAT(Ids({{kCompleted}, 10, 0}), IsEmpty());
}

TEST_F(StoreTest, NamesTheJobsThatHaveNotEndedOldestFirst) {
  for (int i = 1; i <= 4; ++i) Insert(absl::StrCat("j", i));
  ASSERT_TRUE(Move("j1", kRunning).ok());
  ASSERT_TRUE(Move("j2", kCanceled).ok());
  std::vector<std::string> ids;
  const auto records = store_->NonTerminalJobs();
  for (const JobRecord& record : *records) ids.push_back(record.job.id);
  EXPECT_THAT(ids, ElementsAre("j1", "j3", "j4"));
}

TEST_F(StoreTest, EventsAreReadFromAnyPointOn) {
  const int64_t first = Insert("one").last.sequence;
  Insert("two");
  const int64_t second = Move("one", kRunning)->sequence;
  ASSERT_GT(second, first);
  EXPECT_EQ(store_->EventsOf("one")->size(), 2u);
  const auto after = store_->EventsOf("one", first);
  ASSERT_EQ(after->size(), 1u);
  EXPECT_EQ((*after)[0].state, kRunning);
  EXPECT_EQ(store_->EventsOf("none").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StoreTest, EventsAreReadByPageFromTheNewestOn) {
  const int64_t first = Insert("one").last.sequence;
  Insert("two");
  for (int i = 1; i <= 4; ++i) ASSERT_TRUE(Move("one", kRunning, i).ok());
  const auto times = [&](int64_t before, int limit) {
    std::vector<int64_t> found;
    const auto events = store_->EventsBefore("one", before, limit);
    for (const Event& event : *events) found.push_back(absl::ToUnixMicros(event.time));
    return found;
  };
  EXPECT_THAT(times(0, 2), ElementsAre(3, 4));
  const int64_t before = store_->EventsBefore("one", 0, 2)->front().sequence;
  EXPECT_THAT(times(before, 10), ElementsAre(1, 1, 2));
  EXPECT_THAT(times(first, 10), IsEmpty());
  EXPECT_EQ(store_->EventsBefore("none", 0, 2).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StoreTest, DeletesAnEndedJobWithAllThatBelongsToIt) {
  Insert("one");
  ASSERT_TRUE(store_->AddLauncherEvents("one", "a", 0, 1, {"x"}).ok());
  EXPECT_EQ(store_->DeleteJob("one").code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Move("one", kCanceled).ok());
  ASSERT_TRUE(store_->DeleteJob("one").ok());
  EXPECT_EQ(store_->GetJob("one").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(*store_->LauncherEvents("a", 0), IsEmpty());
  EXPECT_EQ(store_->DeleteJob("one").code(), absl::StatusCode::kNotFound);
  // A new job of that name is another job, later in the order of submission.
  EXPECT_EQ(Insert("one").job.sequence, 2);
  EXPECT_EQ(store_->EventsOf("one")->size(), 1u);
}

TEST_F(StoreTest, KeepsEachLauncherEventOnceWhateverIsSentAgain) {
  Insert("one");
  EXPECT_EQ(*store_->AddLauncherEvents("one", "a", 0, 1, {"e1", "e2"}), 2);
  EXPECT_EQ(*store_->AddLauncherEvents("one", "a", 0, 1, {"e1", "e2", "e3"}), 3);
  EXPECT_EQ(*store_->AddLauncherEvents("one", "a", 0, 2, {"e2"}), 3);
  EXPECT_EQ(*store_->AddLauncherEvents("one", "a", 0, 4, {"e4"}), 4);
  EXPECT_EQ(*store_->AddLauncherEvents("one", "a", 1, 1, {"f1"}), 1);
  EXPECT_EQ(*store_->AddLauncherEvents("one", "a", 0, 1, {}), 4);
  EXPECT_THAT(*store_->LauncherEvents("a", 0), ElementsAre("e1", "e2", "e3", "e4"));
  EXPECT_THAT(*store_->LauncherEvents("a", 0, 3), ElementsAre("e4"));
  EXPECT_THAT(*store_->LauncherEvents("a", 1), ElementsAre("f1"));
}

TEST_F(StoreTest, AGapInLauncherEventsIsAnsweredWithWhereToGoOn) {
  Insert("one");
  EXPECT_EQ(*store_->AddLauncherEvents("one", "a", 0, 5, {"e5"}), 0);
  EXPECT_EQ(*store_->AddLauncherEvents("one", "a", 0, 1, {"e1"}), 1);
  EXPECT_EQ(*store_->AddLauncherEvents("one", "a", 0, 3, {"e3"}), 1);
  EXPECT_THAT(*store_->LauncherEvents("a", 0), ElementsAre("e1"));
  EXPECT_FALSE(store_->AddLauncherEvents("one", "a", 0, 0, {"x"}).ok());
  EXPECT_EQ(store_->AddLauncherEvents("none", "a", 0, 1, {"x"}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(StoreTest, NoReadWaitsForACommit) {
  Insert("one");
  std::atomic<bool> read_all = false;
  store_.reset();
  StoreOptions options;
  std::thread reader;
  options.on_commit = [&](int64_t) {
    if (store_ == nullptr || reader.joinable()) return;
    reader = std::thread([&] {
      EXPECT_EQ(store_->GetJob("one")->last.state, kQueued);  // the commit is yet to come
      EXPECT_EQ(store_->ListJobs({})->size(), 1u);
      EXPECT_EQ(store_->EventsOf("one")->size(), 1u);
      EXPECT_EQ(store_->ChildrenOf("one")->size(), 0u);
      EXPECT_EQ(store_->NonTerminalJobs()->size(), 1u);
      read_all = true;
    });
    base::AwaitPatiently(absl::Seconds(20), [&] { return read_all.load(); });
  };
  store_ = Store::Open(path_, options).value();
  EXPECT_TRUE(Move("one", kRunning).ok());
  reader.join();
  EXPECT_EQ(store_->GetJob("one")->last.state, kRunning);
}

TEST_F(StoreTest, MoreReadersThanConnectionsTakeTurns) {
  Insert("one");
  std::vector<std::thread> readers;
  std::atomic<int> failed = 0;
  for (int i = 0; i < 32; ++i) {
    readers.emplace_back([&] {
      for (int n = 0; n < 50; ++n) failed += store_->GetJob("one").ok() ? 0 : 1;
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(failed, 0);
}

TEST_F(StoreTest, WhoReadsLongHoldsNoShortReadAndNobodyHoldsTheLockHolders) {
  Insert("one");
  ASSERT_TRUE(store_->PutSecrets({{"hub", "k1", "", absl::UnixEpoch(), absl::UnixEpoch()}}).ok());
  store_.reset();
  HeldReads reads;
  store_ = Store::Open(path_, {.busy_timeout = base::PatientTimeout(absl::Milliseconds(500)),
                               .on_read = [&] { reads.Hold(); }})
               .value();
  // More than there are connections.
  for (int i = 0; i < 12; ++i) reads.Begin([&] { store_->ChildrenOf("one").IgnoreError(); });
  base::AwaitPatiently(absl::Seconds(20), [&] { return reads.held() >= 6; });
  EXPECT_TRUE(store_->GetJob("one").ok());
  EXPECT_TRUE(store_->ListJobs({}).ok());
  EXPECT_TRUE(store_->LauncherEvents("one.1", 0).ok());
  for (int i = 0; i < 2; ++i) reads.Begin([&] { store_->GetJob("one").IgnoreError(); });
  base::AwaitPatiently(absl::Seconds(20), [&] { return reads.held() >= 8; });
  EXPECT_TRUE(store_->GetJob("one", Reader::kLockHolder).ok());
  EXPECT_EQ(store_->SecretNames(Reader::kLockHolder)->size(), 1u);
  EXPECT_TRUE(Move("one", kRunning, 1, Reader::kLockHolder).ok());
  EXPECT_TRUE(absl::IsUnavailable(store_->GetJob("one").status())) << "all others are in use";
  EXPECT_EQ(reads.held(), 8);
  reads.End();
}

TEST_F(StoreTest, TextIsDataAndNeverSql) {
  Insert("x'; DROP TABLE jobs; --");
  EXPECT_EQ(store_->GetJob("x'; DROP TABLE jobs; --")->job.sequence, 1);
}

TEST_F(StoreTest, OnlyItsOwnerMayReadTheFile) {
  Insert("one");
  for (const char* suffix : {"", "-wal", "-shm"}) {
    struct stat info;
    ASSERT_EQ(::stat(absl::StrCat(path_.string(), suffix).c_str(), &info), 0) << suffix;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << suffix;
  }
}

TEST(StoreAtScale, TenThousandJobsAreListedInNoTime) {
  // In memory-backed storage, so that writing them does not wait for ten thousand fsyncs.
  const std::filesystem::path memory = "/dev/shm";
  if (!std::filesystem::exists(memory)) GTEST_SKIP() << "no /dev/shm";
  const auto path = memory / absl::StrCat("tutti-store-test-", ::getpid(), ".db");
  auto store = Store::Open(path);
  ASSERT_TRUE(store.ok()) << store.status();
  for (int i = 0; i < 10'000; ++i) {
    auto record = (*store)->InsertJob(AJob(absl::StrCat("j", i)), AnEvent(kQueued));
    ASSERT_TRUE(record.ok());
    if (i % 1000 != 0) {
      ASSERT_TRUE(
          (*store)->AppendEvent(record->job.id, record->last.sequence, AnEvent(kCanceled)).ok());
    }
  }
  const absl::Time begin = absl::Now();
  EXPECT_EQ((*store)->ListJobs({{}, 100, 0})->size(), 100u);
  EXPECT_EQ((*store)->NonTerminalJobs()->size(), 10u);
  EXPECT_EQ((*store)->ListJobs({{kQueued}, 100, 0})->size(), 10u);
  EXPECT_LT(absl::Now() - begin,
            base::Patient(absl::Seconds(1)));  // takes some tens of milliseconds
  store->reset();
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::filesystem::remove(absl::StrCat(path.string(), suffix));
  }
}

TEST_F(StoreTest, ChildrenAreListedWithTheirParentOnly) {
  Job child = AJob("p.a");
  child.parent = "p";
  child.step = "a";
  child.step_key = "k1";
  ASSERT_TRUE(store_->InsertJob(AJob("p"), AnEvent(kQueued)).ok());
  ASSERT_TRUE(store_->InsertJob(child, AnEvent(kQueued)).ok());
  EXPECT_EQ(store_->ListJobs({})->size(), 1u);
  EXPECT_EQ(store_->ListJobs({.parent = "p"})->at(0).job.id, "p.a");
  const auto children = *store_->ChildrenOf("p");
  ASSERT_EQ(children.size(), 1u);
  EXPECT_EQ(children[0].job.step, "a");
  EXPECT_EQ(children[0].job.step_key, "k1");
  EXPECT_EQ(children[0].job.spec.command, "python train.py");
  EXPECT_TRUE(store_->ChildrenOf("")->empty());
}

TEST_F(StoreTest, KnowsOfWhichEndedJobsFilesAreStillThere) {
  for (const char* id : {"a", "b", "c"}) Insert(id);
  Job child = AJob("b.step");
  child.parent = "b";
  ASSERT_TRUE(store_->InsertJob(child, AnEvent(kQueued)).ok());
  for (const char* id : {"b.step", "b", "c"}) ASSERT_TRUE(Move(id, kCanceled, 7).ok());
  const auto ids = [&](absl::string_view kind, int64_t after = 0) {
    std::vector<std::string> found;
    const auto jobs = store_->EndedWith(kind, after, 10);
    for (const EndedJob& job : *jobs) {
      EXPECT_EQ(job.ended, absl::FromUnixMicros(7));
      found.push_back(absl::StrCat(job.id, job.sequence));
    }
    return found;
  };
  EXPECT_THAT(ids("logs"), ElementsAre("b2", "c3"));
  EXPECT_THAT(ids("logs", 2), ElementsAre("c3"));
  ASSERT_TRUE(store_->NoteRemoved({"b", "b.step", "gone"}, {"logs", absl::FromUnixMicros(9)}).ok());
  ASSERT_TRUE(store_->NoteRemoved({"b"}, {"logs", absl::FromUnixMicros(11)}).ok());
  EXPECT_THAT(ids("logs"), ElementsAre("c3"));
  EXPECT_THAT(ids("results"), ElementsAre("b2", "c3"));
  Reopen();
  const auto removed = store_->RemovedOf("b").value();
  ASSERT_EQ(removed.size(), 1u);
  EXPECT_EQ(removed[0].kind, "logs");
  EXPECT_EQ(removed[0].time, absl::FromUnixMicros(9)) << "as it was noted first";
  EXPECT_EQ(store_->RemovedOf("b.step")->size(), 1u);
  EXPECT_THAT(*store_->RemovedOf("c"), IsEmpty());
  EXPECT_TRUE(store_->DeleteJob("b").ok());
  EXPECT_THAT(*store_->RemovedOf("b"), IsEmpty());
}

TEST_F(StoreTest, KnowsOfWhichEndedJobsTheLogsAreToBeBrought) {
  const auto pending = [&] {
    std::vector<std::string> ids;
    const auto jobs = store_->EndedWithPendingLogs();
    for (const EndedJob& job : *jobs) ids.push_back(job.id);
    return ids;
  };
  for (const char* id : {"a", "b", "plain"}) {
    Job job = AJob(id);
    if (job.id != "plain") job.spec.logs_place.emplace();
    ASSERT_TRUE(store_->InsertJob(job, AnEvent(kQueued)).ok());
  }
  Job sweep = AJob("sweep");
  sweep.spec.kind = spec::JobKind::kSweep;
  sweep.spec.logs_place.emplace();
  ASSERT_TRUE(store_->InsertJob(sweep, AnEvent(kQueued)).ok());
  EXPECT_THAT(pending(), IsEmpty()) << "none has ended";
  for (const char* id : {"sweep", "plain", "b", "a"}) ASSERT_TRUE(Move(id, kCanceled, 7).ok());
  EXPECT_THAT(pending(), ElementsAre("a", "b"));
  EXPECT_EQ(store_->EndedWithPendingLogs()->front().ended, absl::FromUnixMicros(7));
  EXPECT_EQ((*store_->LogsNoteOf("a"))->state, LogsNote::State::kPending);
  EXPECT_EQ(*store_->LogsNoteOf("plain"), std::nullopt);
  EXPECT_EQ(*store_->LogsNoteOf("sweep"), std::nullopt) << "its trials have logs";

  const auto sequence_of = [&](const char* id) { return store_->GetJob(id)->job.sequence; };
  LogsNote note{LogsNote::State::kPending, "no connection", absl::FromUnixMicros(8)};
  ASSERT_TRUE(store_->NoteLogs(sequence_of("a"), note).ok());
  EXPECT_THAT(pending(), ElementsAre("a", "b"));
  note.state = LogsNote::State::kGivenUp;
  ASSERT_TRUE(store_->NoteLogs(sequence_of("a"), note).ok());
  Reopen();
  EXPECT_THAT(pending(), ElementsAre("b"));
  EXPECT_EQ(**store_->LogsNoteOf("a"), note);
  EXPECT_TRUE(absl::IsNotFound(store_->NoteLogs(sequence_of("plain"), note)));
  LogsNote other = note;
  other.reason = "another";
  ASSERT_TRUE(store_->NoteLogsOf({{sequence_of("a"), other}, {sequence_of("plain"), other}}).ok());
  EXPECT_EQ(**store_->LogsNoteOf("a"), other);
  EXPECT_EQ(*store_->LogsNoteOf("plain"), std::nullopt);
  ASSERT_TRUE(store_->BeginDeletion("b").ok());
  EXPECT_THAT(pending(), IsEmpty()) << "it is being deleted";
}

TEST_F(StoreTest, OtherWritesGoOnWhileAJobIsDeletedWithAllThatDescendFromIt) {
  constexpr int kChildren = 10'000;
  Insert("p");
  for (int i = 0; i < kChildren; ++i) {
    Job child = AJob(absl::StrCat("p.", i));
    child.parent = i % 100 == 1 ? "p.0" : "p";
    const auto past = [](int64_t) { return std::vector{AnEvent(kQueued), AnEvent(kCanceled)}; };
    ASSERT_TRUE(store_->InsertJob(child, past, Durability::kCrash).ok());
  }
  EXPECT_THAT(std::string(store_->DeleteJob("p").message()), HasSubstr("job p is Queued; cancel"));
  ASSERT_TRUE(Move("p", kCanceled).ok());
  EXPECT_EQ(store_->TreeOf("p")->size(), 1u + kChildren);
  int64_t last = Insert("other").last.sequence;
  std::atomic<bool> deleting = true;
  int meanwhile = 0;
  std::thread other([&] {
    for (; deleting; ++meanwhile) {
      const auto event = store_->AppendEvent("other", last, AnEvent(kQueued), Durability::kCrash);
      ASSERT_TRUE(event.ok()) << event.status();
      last = event->sequence;
    }
  });
  EXPECT_TRUE(store_->DeleteJob("p").ok());
  deleting = false;
  other.join();
  EXPECT_GT(meanwhile, 50);
  EXPECT_TRUE(absl::IsNotFound(store_->TreeOf("p").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->GetJob("p.1").status()));
  EXPECT_THAT(Ids({}), ElementsAre("other"));
}

TEST_F(StoreTest, ADeletionThatHasBegunHidesTheJobAndIsFinishedAfterAnyStart) {
  Insert("other");
  Job parent = AJob("p");
  parent.nonce = "n";
  const auto past = [](int64_t) {
    return std::vector{AnEvent(kQueued), AnEvent(kRunning), AnEvent(kFinalizing),
                       AnEvent(kCompleted)};
  };
  ASSERT_TRUE(store_->InsertJob(parent, past).ok());
  Job child = AJob("p.a");
  child.parent = "p";
  child.step_key = "key";
  ASSERT_TRUE(store_->InsertJob(child, past).ok());
  ASSERT_TRUE(store_->CompletedWithKey("key").ok());
  ASSERT_TRUE(store_->BeginDeletion("p").ok());
  for (int i = 0; i < 2; ++i, Reopen()) {
    EXPECT_TRUE(absl::IsNotFound(store_->GetJob("p").status()));
    EXPECT_TRUE(absl::IsNotFound(store_->EventsOf("p").status()));
    EXPECT_TRUE(absl::IsNotFound(store_->JobOfNonce("n").status()));
    EXPECT_TRUE(absl::IsNotFound(store_->CompletedWithKey("key").status())) << "its child's";
    EXPECT_TRUE(absl::IsNotFound(store_->BeginDeletion("p")));
    EXPECT_TRUE(absl::IsAlreadyExists(store_->InsertJob(AJob("p"), AnEvent(kQueued)).status()));
    EXPECT_THAT(Ids({}), ElementsAre("other"));
    EXPECT_THAT(*store_->UnfinishedDeletions(), ElementsAre("p"));
  }
  EXPECT_TRUE(store_->FinishDeletion("p").ok());
  EXPECT_THAT(*store_->UnfinishedDeletions(), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(store_->GetJob("p.a").status()));
  EXPECT_TRUE(store_->FinishDeletion("p").ok()) << "nothing is left";
  EXPECT_TRUE(store_->InsertJob(AJob("p"), AnEvent(kQueued)).ok());
}

TEST_F(StoreTest, AJobWhoseChildHasNotEndedIsNotDeleted) {
  Insert("p");
  Job child = AJob("p.a");
  child.parent = "p";
  ASSERT_TRUE(store_->InsertJob(child, AnEvent(kQueued)).ok());
  ASSERT_TRUE(Move("p", kCanceled).ok());
  EXPECT_EQ(store_->DeleteJob("p").message(), "job p.a is Queued; cancel it before it is deleted");
  EXPECT_TRUE(store_->GetJob("p").ok());
}

TEST_F(StoreTest, KeepsCordonsOfNodes) {
  const absl::Time time = absl::FromUnixMicros(1'700'000'000'000'001);
  ASSERT_TRUE(store_->AddCordon({"n2", "a fan is loud", time}).ok());
  ASSERT_TRUE(store_->AddCordon({"n1", "ECC errors", time, CordonAuthor::kCheck}).ok());
  ASSERT_TRUE(store_->AddCordon({"n2", "a new fan", time}).ok());
  Reopen();
  const auto cordons = *store_->Cordons();
  ASSERT_EQ(cordons.size(), 2u);
  EXPECT_EQ(cordons[0].reason, "ECC errors");
  EXPECT_EQ(cordons[0].author, CordonAuthor::kCheck);
  EXPECT_EQ(cordons[1].author, CordonAuthor::kUser);
  EXPECT_EQ(cordons[1].reason, "a new fan");
  EXPECT_EQ(cordons[1].time, time);
  EXPECT_TRUE(store_->RemoveCordon("n1").ok());
  EXPECT_EQ(store_->RemoveCordon("n1").message(), "node n1 is not cordoned");
  EXPECT_EQ(store_->Cordons()->size(), 1u);
}

TEST_F(StoreTest, KeepsSealedSecrets) {
  const absl::Time first = absl::FromUnixMicros(1'700'000'000'000'001);
  const absl::Time second = first + absl::Hours(1);
  const std::string bytes("\0\xff'\n", 4);
  ASSERT_TRUE(
      store_->PutSecrets({{"b", "k1", bytes, first, first}, {"a", "k1", "", first, first}}).ok());
  ASSERT_TRUE(store_->PutSecrets({{"b", "k2", bytes + "2", second, second}}).ok());
  Reopen();
  const auto secrets = *store_->Secrets();
  ASSERT_EQ(secrets.size(), 2u);
  EXPECT_EQ(secrets[0].name, "a");
  EXPECT_EQ(secrets[0].sealed, "");
  EXPECT_EQ(secrets[1].key, "k2");
  EXPECT_EQ(secrets[1].sealed, bytes + "2");
  EXPECT_EQ(secrets[1].created, first);
  EXPECT_EQ(secrets[1].set, second);
  EXPECT_TRUE(store_->RemoveSecret("b").ok());
  EXPECT_EQ(store_->RemoveSecret("b").message(), "there is no secret \"b\"");
  EXPECT_EQ(store_->Secrets()->size(), 1u);
}

TEST_F(StoreTest, TheNewestCompletedJobOfAKeyIsFound) {
  EXPECT_TRUE(absl::IsNotFound(store_->CompletedWithKey("k").status()));
  for (const char* id : {"one", "two", "three"}) {
    Job job = AJob(id);
    job.step_key = "k";
    const bool ends = job.id != "three";
    std::vector<Event> events = {AnEvent(kQueued)};
    if (ends) events.insert(events.end(), {AnEvent(kFinalizing), AnEvent(kCompleted)});
    const auto record = store_->InsertJob(job, events);
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ(record->last.state, ends ? kCompleted : kQueued);
  }
  EXPECT_EQ(store_->CompletedWithKey("k")->job.id, "two");
  EXPECT_TRUE(absl::IsNotFound(store_->CompletedWithKey("").status()));
  EXPECT_FALSE(store_->InsertJob(AJob("x"), {AnEvent(kQueued), AnEvent(kCompleted)}).ok());
}

}  // namespace
}  // namespace tutti::store
