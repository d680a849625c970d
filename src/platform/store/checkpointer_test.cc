// Where the log's pages go, and who waits for that. The system's syncs are counted and held by
// functions that stand in for the C library's, for SQLite too.
// Covers: database.cc.
#include "platform/store/checkpointer.h"

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "platform/store/store.h"

namespace tutti::store {
namespace {

std::atomic<pid_t> steps_by = 0;  // the thread that takes steps; 0: nothing is counted or held
std::atomic<int> syncs_of_steps = 0, syncs_of_others = 0;
std::function<void()>* hold =
    nullptr;  // called before each sync of another thread, if there is one

int CountAndSync(int fd, long call) {
  if (steps_by == ::gettid()) ++syncs_of_steps;
  if (steps_by != 0 && steps_by != ::gettid()) {
    ++syncs_of_others;
    if (hold != nullptr) (*hold)();
  }
  return static_cast<int>(::syscall(call, fd));
}

}  // namespace
}  // namespace tutti::store

extern "C" {
int fsync(int fd) { return tutti::store::CountAndSync(fd, SYS_fsync); }
int fdatasync(int fd) { return tutti::store::CountAndSync(fd, SYS_fdatasync); }
}

namespace tutti::store {
namespace {

constexpr uintmax_t kMiB = 1 << 20;

class CheckpointerTest : public ::testing::Test {
 protected:
  ~CheckpointerTest() override { steps_by = 0; }

  void Open() {
    auto store = Store::Open(path_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    Job job;
    job.id = "j";
    job.spec.command = "true";
    store_->InsertJob(job, EventOf("{}")).status().IgnoreError();
    last_ = store_->GetJob("j")->last.sequence;
    syncs_of_steps = syncs_of_others = 0;
    steps_by = ::gettid();
  }

  static Event EventOf(std::string detail) {
    return {0, absl::UnixEpoch(), JobState::kQueued, "", std::move(detail)};
  }

  // Takes steps, at least one, whose events fill that much of the log.
  void Step(uintmax_t bytes) {
    const Event event = EventOf("\"" + std::string(kMiB / 16, 'x') + "\"");
    for (uintmax_t written = 0; written < bytes; written += event.detail.size()) {
      const auto appended = store_->AppendEvent("j", last_, event, Durability::kDeferred);
      ASSERT_TRUE(appended.ok()) << appended.status();
      last_ = appended->sequence;
    }
  }

  // Returns which log it is: SQLite counts them in the header.
  uint32_t NumberOfLog() const {
    std::ifstream log(path_.string() + "-wal", std::ios::binary);
    unsigned char bytes[4] = {};
    log.seekg(12).read(reinterpret_cast<char*>(bytes), sizeof bytes);
    return bytes[0] << 24U | bytes[1] << 16U | bytes[2] << 8U | bytes[3];
  }
  uintmax_t SizeOfLog() const { return std::filesystem::file_size(path_.string() + "-wal"); }

  static bool Becomes(const std::function<bool()>& condition) {
    const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(20)));
    while (!condition() && !deadline.Expired()) ::usleep(1000);
    return condition();
  }

  base::TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "store.db";
  std::unique_ptr<Store> store_;
  int64_t last_ = 0;
};

TEST_F(CheckpointerTest, StepsWaitForNoSyncHoweverOftenTheLogBeginsAnew) {
  Open();
  for (int i = 0; i < 5; ++i) {
    const uint32_t before = NumberOfLog();
    Step(6 * kMiB);
    EXPECT_TRUE(Becomes([&] { return NumberOfLog() > before; }));
    EXPECT_GT(syncs_of_others, 0);
  }
  EXPECT_EQ(syncs_of_steps, 0);
  EXPECT_LT(SizeOfLog(), 17 * kMiB);
}

TEST_F(CheckpointerTest, StepsAndReadsGoOnWhileTheDiskHangsAndTheLogBeginsAnewLater) {
  std::atomic<bool> hangs = true;
  std::function<void()> until_it_answers = [&] {
    while (hangs) ::usleep(1000);
  };
  hold = &until_it_answers;
  Open();
  const uint32_t before = NumberOfLog();
  Step(80 * kMiB);
  EXPECT_EQ(store_->GetJob("j")->last.sequence, last_);
  EXPECT_TRUE(Becomes([&] { return syncs_of_others > 0; }));
  EXPECT_EQ(NumberOfLog(), before);
  EXPECT_EQ(syncs_of_steps, 0);
  hangs = false;
  EXPECT_TRUE(Becomes([&] { return NumberOfLog() > before; }));
  Step(1);
  EXPECT_LT(SizeOfLog(), 17 * kMiB);
  store_.reset();
  hold = nullptr;
}

TEST_F(CheckpointerTest, TheLogBeginsAnewOnceAReadThatKeptItFromThatHasEnded) {
  std::atomic<bool> hangs = true;
  std::function<void()> until_it_answers = [&] {
    while (hangs) ::usleep(1000);
  };
  hold = &until_it_answers;
  Open();
  const uint32_t before = NumberOfLog();
  Step(6 * kMiB);
  EXPECT_TRUE(Becomes([&] { return syncs_of_others > 0; }));
  SQLite::Database reader(path_.string(), SQLite::OPEN_READONLY);
  reader.exec("BEGIN");
  reader.execAndGet("SELECT count(*) FROM sqlite_schema");
  const uintmax_t size = SizeOfLog();
  hangs = false;
  // All pages are moved, and one is written, which the read keeps from beginning a log.
  EXPECT_TRUE(Becomes([&] { return SizeOfLog() > size; }));
  EXPECT_EQ(NumberOfLog(), before);
  reader.exec("COMMIT");
  EXPECT_TRUE(Becomes([&] { return NumberOfLog() > before; }));
  store_.reset();
  hold = nullptr;
}

// As whoever holds the service's lock takes them.
TEST_F(CheckpointerTest, StepsWaitForNoChangeThatTheDiskHoldsUp) {
  std::atomic<bool> hangs = false;
  std::function<void()> until_it_answers = [&] {
    while (hangs) ::usleep(1000);
  };
  hold = &until_it_answers;
  Open();
  const absl::Time now = absl::UnixEpoch();
  const std::vector<std::pair<const char*, std::function<absl::Status()>>> changes = {
      {"AddCordon",
       [&] {
         return store_->AddCordon({"n1", "its disk hangs", now});
       }},
      {"RemoveCordon", [&] { return store_->RemoveCordon("n1"); }},
      {"PutSecrets",
       [&] {
         return store_->PutSecrets({{"hub", "k1", "sealed", now, now}});
       }},
      {"RemoveSecret", [&] { return store_->RemoveSecret("hub"); }},
      {"NoteRemoved", [&] {
         return store_->NoteRemoved({"j"}, {"logs", now});
       }}};
  for (const auto& [name, change] : changes) {
    hangs = true;
    steps_by = ::gettid();  // which does none
    syncs_of_steps = syncs_of_others = 0;
    std::atomic<bool> has_stepped = false, has_changed = false;
    std::thread changing([&, &change = change] {
      EXPECT_EQ(change(), absl::OkStatus());
      has_changed = true;
    });
    EXPECT_TRUE(Becomes([&] { return syncs_of_others > 0; })) << name;
    std::thread stepping([&] {
      steps_by = ::gettid();
      Step(1);
      has_stepped = true;
    });
    EXPECT_TRUE(Becomes([&] { return has_stepped.load(); })) << name;
    EXPECT_FALSE(has_changed) << name << " is on the disk once it has returned";
    EXPECT_EQ(syncs_of_steps, 0) << name;
    hangs = false;
    changing.join();
    stepping.join();
  }
  store_.reset();
  hold = nullptr;
}

TEST_F(CheckpointerTest, TheFirstStepOfAProcessWaitsForNoDisk) {
  Open();
  Step(1);
  EXPECT_EQ(syncs_of_steps, 0) << "of a new file";
  steps_by = 0;
  store_.reset();
  auto store = Store::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  store_ = *std::move(store);
  const int64_t before = last_;
  steps_by = ::gettid();
  Step(1);
  EXPECT_EQ(syncs_of_steps, 0) << "of one that was closed";
  EXPECT_GT(last_, before + 1) << "what a loss of power may have taken is skipped all the same";
}

TEST_F(CheckpointerTest, TheLogIsBoundedAlsoWhereStepsNeverPause) {
  std::atomic<int64_t> steps = 0;
  std::atomic<bool> over = false;
  std::function<void()> until_another_step = [&] {
    const int64_t before = steps;
    // Once the log is that long none is let in.
    std::optional<base::Deadline> deadline;
    while (steps == before && !over && !(deadline && deadline->Expired())) {
      if (!deadline && SizeOfLog() > 64 * kMiB) {
        deadline = base::Deadline::After(absl::Milliseconds(100));
      }
      ::usleep(100);
    }
  };
  hold = &until_another_step;
  Open();
  const uint32_t before = NumberOfLog();
  uintmax_t largest = 0;
  const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(60)));
  while (NumberOfLog() == before && !deadline.Expired()) {
    Step(1);
    ++steps;
    largest = std::max(largest, SizeOfLog());
  }
  over = true;
  EXPECT_GT(NumberOfLog(), before);
  EXPECT_GT(largest, 64 * kMiB);
  EXPECT_EQ(syncs_of_steps, 0);
  store_.reset();
  hold = nullptr;
}

// A sweep has many trials, and steps are taken beside it.
TEST_F(CheckpointerTest, ADeletionOfManyJobsWaitsForTheDiskBeforeTheLogIsLong) {
  Open();
  Event end = EventOf("{}");
  end.state = JobState::kCanceled;
  ASSERT_TRUE(store_->AppendEvent("j", last_, end).ok());
  Job child;
  child.parent = "j";
  child.spec.command = std::string(kMiB / 512, 'x');
  for (int i = 0; i < 4000; ++i) {
    child.id = absl::StrCat("j.", i);
    const auto events = [&](int64_t) { return std::vector<Event>{EventOf("{}"), end}; };
    ASSERT_TRUE(store_->InsertJob(child, events, Durability::kCrash).ok());
  }
  ASSERT_TRUE(store_->BeginDeletion("j").ok());
  store_.reset();
  std::atomic<bool> hangs = true, is_over = false;
  std::function<void()> until_it_answers = [&] {
    while (hangs) ::usleep(1000);
  };
  auto store = Store::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  store_ = *std::move(store);
  hold = &until_it_answers;
  steps_by = ::gettid();
  std::thread deleting([&] {
    EXPECT_EQ(store_->FinishDeletion("j"), absl::OkStatus());
    is_over = true;
  });
  EXPECT_TRUE(Becomes([&] { return SizeOfLog() > 7 * kMiB; }));
  const auto deadline = base::Deadline::After(absl::Seconds(1));  // in which it would be over
  while (!is_over && !deadline.Expired()) ::usleep(1000);
  EXPECT_FALSE(is_over);
  EXPECT_LT(SizeOfLog(), 16 * kMiB);
  hangs = false;
  deleting.join();
  EXPECT_TRUE(absl::IsNotFound(store_->GetJob("j.0").status()));
  EXPECT_LT(SizeOfLog(), 16 * kMiB);
  store_.reset();
  hold = nullptr;
}

TEST_F(CheckpointerTest, ARoundThatStepsKeptFromItsEndIsFinishedOnceTheyPause) {
  std::atomic<int64_t> steps = 0, wanted = 0;
  std::atomic<bool> pause = false;
  // If two steps have ended since, the second has begun since.
  std::function<void()> until_another_step = [&] {
    wanted = steps + 2;
    const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(60)));
    while (steps < wanted && !pause && !deadline.Expired()) ::usleep(100);
  };
  const auto take_wanted = [&] {
    for (; steps < wanted; ++steps) Step(1);
  };
  hold = &until_another_step;
  Open();
  const uint32_t before = NumberOfLog();
  Step(5 * kMiB);
  // A round tries three times, with one sync at least, so that these are of more than one round.
  // No step comes that is not awaited: a log of 64 MiB would have steps wait for the round's end.
  const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(60)));
  while (syncs_of_others < 8 && !deadline.Expired()) {
    take_wanted();
    ::usleep(100);
  }
  EXPECT_GE(syncs_of_others, 8);
  EXPECT_EQ(NumberOfLog(), before);
  pause = true;
  EXPECT_TRUE(Becomes([&] { return NumberOfLog() > before; }));
  EXPECT_EQ(syncs_of_steps, 0);
  store_.reset();
  hold = nullptr;
}

TEST_F(CheckpointerTest, ALogThatWasLeftBehindIsShortAfterTheNextStartAndGoneAtAnOrderlyEnd) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::function<void()> forever = [] { ::pause(); };
    hold = &forever;
    Open();
    Step(40 * kMiB);
    ::_exit(SizeOfLog() > 40 * kMiB ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  ASSERT_EQ(status, 0);
  Open();
  EXPECT_LT(SizeOfLog(), 17 * kMiB);
  EXPECT_GT(store_->EventsOf("j")->size(), 640u);
  store_.reset();
  EXPECT_FALSE(std::filesystem::exists(path_.string() + "-wal"));
}

}  // namespace
}  // namespace tutti::store
