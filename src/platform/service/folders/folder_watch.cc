#include "platform/service/folders/folder_watch.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/status.h"
#include "base/threads/start_thread.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kPace = absl::Seconds(1);
constexpr absl::Duration kPaceOfErrors = absl::Milliseconds(250);  // of one that is away
constexpr absl::Duration kPaceOfLooks = absl::Seconds(10);         // where folders lie
constexpr absl::Duration kWanted = absl::Minutes(1);               // after a call has needed it
constexpr absl::Duration kPatienceWithAnswer = absl::Seconds(10);  // of who waits for one
constexpr char kOwnFileSystem[] = "/proc";

// Both questions go to the server: what is known of a name is not asked again for a while.
absl::Status AskFileSystem(const std::string& point) {
  struct statvfs room = {};
  if (::statvfs(point.c_str(), &room) != 0) return base::ErrnoStatus(point, errno);
  return base::Open(point, O_RDONLY | O_DIRECTORY).status();
}

FolderQuestions WithDefaults(FolderQuestions questions) {
  if (!questions.mounts) {
    questions.mounts = [watched = std::make_shared<base::WatchedMounts>()] {
      return watched->Now();
    };
  }
  if (!questions.ask) questions.ask = AskFileSystem;
  if (!questions.ask_own) questions.ask_own = [] { AskFileSystem(kOwnFileSystem).IgnoreError(); };
  return questions;
}

std::string Since(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

std::string NameOfQueue(int mount, const std::string& point) {
  return absl::StrCat(point, "#", mount);  // who hangs at a former mount holds no question
}

}  // namespace

std::string ShownAway(const AwayFolder& folder) {
  const std::string names =
      folder.names.empty() ? "" : absl::StrCat(" (", absl::StrJoin(folder.names, ", "), ")");
  return absl::StrCat(folder.mount, names, " has not answered since ", Since(folder.since),
                      ": is its server away?");
}

FolderWatch::FolderWatch(FolderQuestions questions, std::function<std::vector<Folder>()> folders,
                         base::WorkQueues& probes, base::WorkQueues& canary,
                         const base::Clock* clock)
    : questions_(WithDefaults(std::move(questions))),
      folders_(std::move(folders)),
      probes_(probes),
      canary_work_(canary),
      clock_(clock) {}

void FolderWatch::Run() {
  thread_ = base::StartThread([this] { Loop(); });
}

void FolderWatch::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    news_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

// A round is not cut short by what is asked in it.
void FolderWatch::Loop() {
  while (true) {
    const bool is_awaited = Step();
    const base::Deadline next = base::Deadline::After(is_awaited ? kRound : kPace);
    absl::MutexLock lock(&mutex_);
    while (!stopping_ && !next.Expired() && (is_awaited || !is_asked_)) {
      news_.WaitWithTimeout(&mutex_, next.Remaining());
    }
    is_asked_ = false;
    if (stopping_) return;
  }
}

std::optional<FolderWatch::Key> FolderWatch::MountOn(const std::filesystem::path& path) const {
  const auto mounts = questions_.mounts();
  const std::string point = base::RemoteMountOf(path, *mounts);
  if (point.empty()) return std::nullopt;
  const base::Mount* const mount = base::MountOf(point, *mounts);
  return Key(mount == nullptr ? 0 : mount->id, point);
}

FolderWatch::Place& FolderWatch::Wanted(const Key& key) {
  Place& place = places_[key];
  place.wanted = clock_->SinceBoot();
  return place;
}

absl::Status FolderWatch::Check(const std::filesystem::path& path) {
  const auto key = MountOn(path);
  if (!key) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  const Place& place = Wanted(*key);
  if (!place.away_since) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(ShownAway({{}, key->second, *place.away_since}), " Try again later"));
}

absl::Status FolderWatch::Await(const std::filesystem::path& path) {
  const auto key = MountOn(path);
  if (!key) return absl::OkStatus();
  int64_t seen = 0;
  {
    absl::MutexLock lock(&mutex_);
    seen = Wanted(*key).answers;
  }
  Ask(*key);
  const base::Deadline deadline = base::Deadline::After(kPatienceWithAnswer);
  {
    absl::MutexLock lock(&mutex_);
    while (!stopping_ && !deadline.Expired()) {
      const auto place = places_.find(*key);
      if (place == places_.end() || place->second.answers > seen) return absl::OkStatus();
      if (place->second.away_since) break;
      news_.WaitWithTimeout(&mutex_, deadline.Remaining());
    }
  }
  if (absl::Status known = Check(path); !known.ok()) return known;
  return absl::UnavailableError(
      absl::StrCat(key->second, " does not answer: is its server away? Try again later"));
}

std::vector<AwayFolder> FolderWatch::Away() const {
  std::vector<AwayFolder> away;
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, place] : places_) {
    if (place.away_since) away.push_back({place.names, key.second, *place.away_since});
  }
  return away;
}

bool FolderWatch::Step() {
  FindPlaces();
  AskDue();
  return Judge();
}

void FolderWatch::FindPlaces() {
  const absl::Duration now = clock_->SinceBoot();
  auto mounts = questions_.mounts();
  if (mounts == known_mounts_ && now < next_look_) return;
  known_mounts_ = std::move(mounts);
  next_look_ = now + kPaceOfLooks;
  std::map<Key, std::vector<std::string>> own;
  for (const Folder& folder : folders_()) {
    if (const auto key = MountOn(folder.path)) own[*key].push_back(folder.name);
  }
  std::set<Key> mounted;
  for (const base::Mount& mount : *known_mounts_) mounted.emplace(mount.id, mount.point);
  absl::MutexLock lock(&mutex_);
  for (auto& [key, place] : places_) place.names.clear();
  for (auto& [key, names] : own) places_[key].names = std::move(names);
  std::erase_if(places_, [&](const auto& entry) {
    const Place& place = entry.second;
    const bool is_idle = place.names.empty() && place.question == 0 && now - place.wanted > kWanted;
    return is_idle || !mounted.contains(entry.first);
  });
  news_.SignalAll();
}

void FolderWatch::AskDue() {
  const absl::Duration now = clock_->SinceBoot();
  std::vector<Key> due;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [key, place] : places_) {
      const bool is_needed =
          !place.names.empty() || place.away_since || now - place.wanted <= kWanted;
      if (place.question == 0 && is_needed && now >= place.due) due.push_back(key);
    }
  }
  for (const Key& key : due) Ask(key);
}

void FolderWatch::Ask(const Key& key) {
  int64_t question = 0;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = places_.find(key);
    if (stopping_ || found == places_.end() || found->second.question != 0) return;
    Place& place = found->second;
    question = place.question = ++last_question_;
    place.begun = false;
    place.rounds = 0;
    is_asked_ = true;
    news_.SignalAll();
  }
  probes_.Do(NameOfQueue(key.first, key.second), [this, key, question] { Probe(key, question); });
}

FolderWatch::Place* FolderWatch::Find(const Key& key, int64_t question) {
  const auto found = places_.find(key);
  const bool is_this = found != places_.end() && found->second.question == question;
  return is_this ? &found->second : nullptr;
}

void FolderWatch::Probe(const Key& key, int64_t question) {
  {
    absl::MutexLock lock(&mutex_);
    Place* const place = Find(key, question);
    if (place == nullptr) return;
    place->asked = clock_->Now();
    place->begun = true;
  }
  NoteAnswer(key, question, !questions_.ask(key.second).ok());
}

void FolderWatch::NoteAnswer(const Key& key, int64_t question, bool is_error) {
  std::optional<absl::Time> was_away;
  {
    absl::MutexLock lock(&mutex_);
    Place* const place = Find(key, question);
    if (place == nullptr) return;
    place->question = 0;
    const bool gave_up = is_error && place->rounds >= kRounds;
    place->due = clock_->SinceBoot() + (gave_up ? kPaceOfErrors : kPace);
    if (!gave_up) {
      was_away = std::exchange(place->away_since, std::nullopt);
      ++place->answers;
    }
    news_.SignalAll();
  }
  if (was_away)
    spdlog::info("{} answers again, which it had not since {}", key.second, Since(*was_away));
}

bool FolderWatch::Judge() {
  bool is_awaited = false, send = false;
  std::vector<AwayFolder> found;
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [key, place] : places_) {
      if (place.question == 0 || (place.away_since && place.rounds >= kRounds)) continue;
      if (place.begun && canary_ == Canary::kBack) ++place.rounds;
      if (place.rounds < kRounds) {
        is_awaited = true;
      } else if (!place.away_since) {
        place.away_since = place.asked;
        found.push_back({place.names, key.second, place.asked});
      }
    }
    send = is_awaited && canary_ != Canary::kUnderWay;
    if (send) {
      canary_ = Canary::kUnderWay;
    } else if (canary_ == Canary::kBack) {
      canary_ = Canary::kIdle;
    }
    if (!found.empty()) news_.SignalAll();
  }
  for (const AwayFolder& folder : found) spdlog::warn("{}", ShownAway(folder));
  if (send) {
    canary_work_.Do("canary", [this] {
      questions_.ask_own();
      absl::MutexLock lock(&mutex_);
      canary_ = Canary::kBack;
    });
  }
  return is_awaited;
}

}  // namespace tutti::service
