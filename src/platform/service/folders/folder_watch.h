// FolderWatch knows which file systems do not answer, so that nobody waits for one again and again:
// each that may need a server and has a folder of the service, or one that a call has needed
// lately, is asked once a second, by a thread of its own that may hang.
//
// A file system is away once a question has had no answer for kRounds rounds of kRound each, two
// seconds, and until that question is answered. One that takes less is slow, and nobody is refused
// for that. In each round a canary asks the kernel's own file system by a thread like the others;
// a round that the canary has not come back from does not count. So a machine without processors
// to spare, on which threads and file servers come late, waits for longer, and a process that was
// stopped or asleep takes nothing for away. An error is an answer, but for one that comes after
// all that time, such as that of a mount which gives up.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/machine/mounts.h"
#include "base/threads/work_queues.h"

namespace tutti::service {

// Says what is asked; a function that is not set asks this machine.
struct FolderQuestions {
  std::function<std::shared_ptr<const std::vector<base::Mount>>()> mounts;
  // Returns as soon as the file system that is mounted there has answered, an error if it has one.
  std::function<absl::Status(const std::string& point)> ask;
  std::function<void()> ask_own;  // of the canary
};

struct AwayFolder {
  std::vector<std::string> names;  // of the folders that lie there; none of the service's own: none
  std::string mount;
  absl::Time since;  // when it was asked what it has not answered
};

// Returns a line that says so, with the folders' names.
std::string ShownAway(const AwayFolder& folder);

class FolderWatch {
 public:
  static constexpr int kRounds = 40;
  static constexpr absl::Duration kRound = absl::Milliseconds(50);

  struct Folder {
    std::string name;  // as users read it: "jobs"
    std::filesystem::path path;
  };

  // `folders` returns the service's own, quickly. `probes` has a queue for each mount, `canary` one
  // thread; both are ended before this goes.
  FolderWatch(FolderQuestions questions, std::function<std::vector<Folder>()> folders,
              base::WorkQueues& probes, base::WorkQueues& canary, const base::Clock* clock);
  ~FolderWatch() { Stop(); }

  // Starts the thread that asks; without it Step is the caller's to call.
  void Run();
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns OK, or Unavailable if that absolute path lies where no file system answers, as far as
  // is known. Never waits.
  absl::Status Check(const std::filesystem::path& path) ABSL_LOCKS_EXCLUDED(mutex_);
  // Has the file system of the path asked, and returns OK once it answers; Unavailable once it is
  // known to be away, or after ten seconds. All that wait for one wait for the same question.
  absl::Status Await(const std::filesystem::path& path) ABSL_LOCKS_EXCLUDED(mutex_);
  // Lists those that are away.
  std::vector<AwayFolder> Away() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Does a round. Returns whether it is still to be found out of any whether it is away.
  bool Step() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Key = std::pair<int, std::string>;  // a mount's id and point: one that is made anew is new
  struct Place {
    std::vector<std::string> names;
    int64_t question = 0;  // that is under way; 0: none is
    bool begun = false;    // its thread is at it
    int rounds = 0;        // since then
    absl::Time asked;
    int64_t answers = 0;
    absl::Duration due, wanted;  // since boot: when it is asked again, and when a call needed it
    std::optional<absl::Time> away_since;
  };
  enum class Canary { kIdle, kUnderWay, kBack };

  void Loop();
  std::optional<Key> MountOn(const std::filesystem::path& path) const;
  // Notes where the folders of the service lie now, and forgets what is not mounted any more.
  void FindPlaces() ABSL_LOCKS_EXCLUDED(mutex_);
  void AskDue() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the place of a path that a call needs.
  Place& Wanted(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has it asked, unless it is being asked.
  void Ask(const Key& key) ABSL_LOCKS_EXCLUDED(mutex_);
  // Asks the question, on a thread of its own.
  void Probe(const Key& key, int64_t question) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteAnswer(const Key& key, int64_t question, bool is_error) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts a round of those that are being asked.
  bool Judge() ABSL_LOCKS_EXCLUDED(mutex_);
  Place* Find(const Key& key, int64_t question) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const FolderQuestions questions_;
  const std::function<std::vector<Folder>()> folders_;
  base::WorkQueues& probes_;
  base::WorkQueues& canary_work_;
  const base::Clock* const clock_;
  std::shared_ptr<const std::vector<base::Mount>> known_mounts_;  // of Step
  absl::Duration next_look_;                                      // of Step; since boot

  mutable absl::Mutex mutex_;
  absl::CondVar news_;  // a question, an answer, the end
  std::map<Key, Place> places_ ABSL_GUARDED_BY(mutex_);
  Canary canary_ ABSL_GUARDED_BY(mutex_) = Canary::kIdle;
  int64_t last_question_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_asked_ ABSL_GUARDED_BY(mutex_) = false;  // since the last Step
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tutti::service
