#include "platform/launch/delivery/service_delivery.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/inotify.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/threads/retry_pause.h"
#include "base/threads/start_thread.h"
#include "platform/launch/delivery/beat.h"
#include "platform/launch/delivery/launcher_calls.h"
#include "platform/launch/delivery/upload.h"

namespace tutti::launch {
namespace {

// As much as the service takes in before it has a thread for it.
constexpr size_t kBatch = 256 << 10;
constexpr absl::Duration kLongestWait = absl::Seconds(20);
// At most two minutes of usage are kept.
constexpr size_t kMostSamples = 120, kMostUsageBytes = 256 << 10;
constexpr absl::Duration kUnknownUsagePause = absl::Minutes(10);
constexpr absl::Duration kLongestUsagePause = absl::Seconds(30);
constexpr absl::Duration kQuestionPause = absl::Seconds(1), kLongestQuestionPause = kLongestWait;
constexpr absl::Duration kUnknownQuestionsPause = kUnknownUsagePause;
constexpr absl::Duration kWithoutLimit = absl::Hours(24 * 365);  // the launcher's own ends it

// Hides secrets in what comes of the metrics file, which its process writes. What stands around the
// bytes is looked at too: they may be a part of one. What may be the beginning of one at the end is
// not sent before more has come, or the file `is_whole`.
absl::StatusOr<std::string> BytesToSend(const SpoolFile& file, uint64_t offset, bool is_whole) {
  const base::TextMask* const mask = file.mask();
  if (mask == nullptr || file.stream() != "metrics") return file.Read(offset, kBatch);
  const size_t around = mask->longest();
  const uint64_t before = std::min<uint64_t>(offset, around);
  TUTTI_ASSIGN_OR_RETURN(std::string bytes, file.Read(offset - before, before + kBatch + around));
  const size_t open = mask->HideInPlace(bytes);
  if (!is_whole) bytes.resize(bytes.size() - open);
  return bytes.size() <= before ? "" : bytes.substr(before, kBatch);
}

bool TellsPrepared(const std::string& lines) {
  const std::vector<std::string> each = absl::StrSplit(lines, '\n', absl::SkipEmpty());
  return std::any_of(each.begin(), each.end(), [](const std::string& line) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    return event.is_object() && event.value("kind", "") == "prepared";
  });
}

}  // namespace

ServiceDelivery::ServiceDelivery(const spec::LaunchPlan& plan, EventLog* events, Spool* spool,
                                 Wakeup* news, Wakeup output_wake)
    : Delivery(events, spool, news),
      plan_(plan),
      beat_(BeatOf(plan)),
      link_(plan),
      code_link_(plan),
      output_wake_(std::move(output_wake)) {}

void ServiceDelivery::Begin() {
  if (event_thread_.joinable()) return;
  event_thread_ = std::thread([this] { DeliverEvents(); });
  output_thread_ = std::thread([this] { DeliverOutput(); });
  if (plan_.nodes.size() < 2) return;
  go_thread_ = std::thread([this] {
    AwaitGo();
    GiveSignsOfLife();
  });
}

ServiceDelivery::~ServiceDelivery() {
  {
    absl::MutexLock lock(&mutex_);  // AwaitGo looks again when it is released
    ending_ = true;
  }
  events_->Interrupt();
  link_.Abandon();
  output_wake_.Notify();
  for (std::thread* thread :
       {&event_thread_, &output_thread_, &go_thread_, &usage_thread_, &question_thread_}) {
    if (thread->joinable()) thread->join();
  }
}

bool ServiceDelivery::Continue(const absl::Status& status) {
  if (ending_ || absl::IsCancelled(status)) return false;
  if (absl::IsAborted(status)) {
    absl::MutexLock lock(&mutex_);
    gone_ = true;
    news_->Notify();
    return false;
  }
  if (!status.ok()) {
    link_.SayOnce(status);
    link_.PauseAfterFailure();
  }
  return true;
}

void ServiceDelivery::DeliverEvents() {
  int64_t acknowledged = 0;
  while (events_->AwaitMoreThan(acknowledged)) {
    if (!Continue(SendEvents(acknowledged))) return;
    absl::MutexLock lock(&mutex_);
    acknowledged = events_acknowledged_;
  }
}

absl::Status ServiceDelivery::SendEvents(int64_t acknowledged) {
  const std::string lines = events_->From(acknowledged + 1);
  TUTTI_ASSIGN_OR_RETURN(const EventsAnswer answer,
                         PostEvents(link_, plan_.node_index, acknowledged + 1, lines,
                                    base::Deadline::After(kWithoutLimit)));
  if (answer.go) go_ = true;
  served_ = answer.served;
  {
    absl::MutexLock lock(&mutex_);
    events_acknowledged_ = answer.acknowledged;
    prepared_ |= TellsPrepared(lines);
  }
  news_->Notify();
  return answer.acknowledged > acknowledged
             ? absl::OkStatus()
             : absl::InternalError("the service took none of the events");
}

// Before it is prepared the launcher only asks now and then whether its allocation is over: each of
// its reports would break a wait off.
void ServiceDelivery::AwaitGo() {
  const bool beats = beat_ > absl::ZeroDuration();
  const absl::Duration longest = beats ? std::min(beat_, kLongestWait) : kLongestWait;
  while (!go_ && !gone_) {
    bool waits;
    {
      absl::MutexLock lock(&mutex_);
      const auto is_prepared = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return prepared_ || ending_;
      };
      waits = mutex_.AwaitWithTimeout(absl::Condition(&is_prepared), longest);
    }
    if (go_ || ending_) break;
    const auto go = AskForGo(link_, plan_.node_index, waits ? longest : absl::ZeroDuration(),
                             base::Deadline::After(kWithoutLimit));
    if (!Continue(go.status())) return;
    if (!go.ok()) continue;
    if (*go) go_ = true;
    // A service that answers "no" at once, since the job is to be stopped, is not asked all the
    // time.
    if (!go_) link_.Pause(absl::Milliseconds(100));
  }
  news_->Notify();
}

void ServiceDelivery::GiveSignsOfLife() {
  if (beat_ == absl::ZeroDuration()) return;
  base::RetryPause pauses(beat_, beat_);  // by chance, so that not all launchers come at once
  absl::Duration pause = pauses.Next();
  while (!ending_ && !gone_) {
    const absl::Duration rest = link_.last_answer() + pause - base::SteadyNow();
    if (rest > absl::ZeroDuration()) {
      absl::MutexLock lock(&mutex_);
      const auto ends = [this] { return ending_.load(); };
      mutex_.AwaitWithTimeout(absl::Condition(&ends), rest);
      continue;  // something else may have been said meanwhile
    }
    const auto asked = AskForGo(link_, plan_.node_index, absl::ZeroDuration(),
                                base::Deadline::After(kWithoutLimit));
    if (!Continue(asked.status())) return;
    pause = pauses.Next();
  }
}

void ServiceDelivery::OfferUsage(std::string line) {
  absl::MutexLock lock(&mutex_);
  if (ending_ || gone_) return;
  usage_bytes_ += line.size();
  usage_.push_back(std::move(line));
  while (usage_.size() > kMostSamples || usage_bytes_ > kMostUsageBytes) {
    usage_bytes_ -= usage_.front().size();
    usage_.pop_front();
  }
  if (std::exchange(usage_begun_, true)) return;
  usage_thread_ = base::StartThread([this] {
    try {
      DeliverUsage();
    } catch (const std::exception& error) {
      spdlog::warn("what the processes use is delivered no more: {}", error.what());
    }
    usage_is_unknown_ = true;
  });
  if (!usage_thread_.joinable()) usage_is_unknown_ = true;
}

bool ServiceDelivery::WantsUsage() const { return !usage_is_unknown_ && !gone_; }

std::optional<std::string> ServiceDelivery::TakeUsage(absl::Duration pause) {
  absl::MutexLock lock(&mutex_);
  const auto ends = [this] { return ending_ || gone_; };
  const auto has_news = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ending_ || gone_ || !usage_.empty();
  };
  if (mutex_.AwaitWithTimeout(absl::Condition(&ends), pause)) return std::nullopt;
  usage_is_unknown_ = false;
  mutex_.Await(absl::Condition(&has_news));
  if (ends()) return std::nullopt;
  std::string lines = absl::StrJoin(usage_, "\n");
  usage_.clear();
  usage_bytes_ = 0;
  return lines;
}

// Where many launchers tell it, the service asks for several samples together.
void ServiceDelivery::DeliverUsage() {
  absl::Duration pause = absl::ZeroDuration();
  while (auto lines = TakeUsage(pause)) {
    const auto asked = PostUsage(link_, plan_.node_index, *std::move(lines));
    if (asked.ok()) {
      pause = std::clamp(*asked, absl::ZeroDuration(), kLongestUsagePause);
    } else if (absl::IsAborted(asked.status())) {
      return;  // the allocation is over: others say so to the launcher
    } else if (absl::IsNotFound(asked.status())) {
      usage_is_unknown_ = true;  // of before this call, or it is told not to measure
      pause = kUnknownUsagePause;
    } else {
      pause = std::clamp(2 * pause, absl::Seconds(1), kLongestUsagePause);
    }
  }
}

std::vector<spec::Question> ServiceDelivery::OpenQuestions() {
  absl::MutexLock lock(&mutex_);
  if (!ending_ && !std::exchange(questions_begun_, true)) {
    // Where the job has taken all threads that there may be, nobody asks.
    question_thread_ = base::StartThread([this] {
      try {
        DeliverAnswers();
      } catch (const std::exception& error) {
        spdlog::warn("the service's questions are answered no more: {}", error.what());
      }
    });
  }
  return questions_;
}

void ServiceDelivery::OfferAnswer(const std::string& question, int rank, std::string json) {
  absl::MutexLock lock(&mutex_);
  if (!ending_ && !gone_) answers_.push_back({question, rank, std::move(json)});
}

void ServiceDelivery::NoteQuestions(std::vector<spec::Question> questions) {
  {
    absl::MutexLock lock(&mutex_);
    if (questions.empty() && questions_.empty() && answers_.empty()) return;
    questions_ = std::move(questions);
    std::erase_if(answers_, [this](const Answer& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return std::none_of(
          questions_.begin(), questions_.end(),
          [&](const spec::Question& question) { return question.id == answer.question; });
    });
  }
  news_->Notify();
}

bool ServiceDelivery::SendAnswers() {
  while (true) {
    Answer answer;
    {
      absl::MutexLock lock(&mutex_);
      if (answers_.empty()) return true;
      answer = answers_.front();
    }
    const absl::Status sent =
        PostAnswer(link_, plan_.node_index, answer.question, answer.rank, answer.json);
    if (absl::IsUnavailable(sent) || absl::IsAborted(sent) || absl::IsCancelled(sent)) return false;
    absl::MutexLock lock(&mutex_);  // only this thread takes any away
    answers_.pop_front();
  }
}

// The answer to a question goes before the next look at what is asked.
void ServiceDelivery::DeliverAnswers() {
  absl::Duration pause = absl::ZeroDuration();
  const auto is_due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ending_ || gone_ || !answers_.empty();
  };
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.AwaitWithTimeout(absl::Condition(&is_due), pause);
      if (ending_ || gone_) return;
    }
    if (!SendAnswers()) link_.Pause(kQuestionPause);
    auto asked = AskForQuestions(link_, plan_.node_index);
    if (asked.ok()) {
      pause = std::clamp(asked->pause, kQuestionPause, kLongestQuestionPause);
      NoteQuestions(std::move(asked->questions));
    } else if (absl::IsAborted(asked.status())) {
      return;  // the allocation is over: others say so to the launcher
    } else if (absl::IsNotFound(asked.status())) {
      pause = kUnknownQuestionsPause;  // by a service of before this call
      NoteQuestions({});
    } else {
      pause = std::clamp(2 * pause, kQuestionPause, kLongestQuestionPause);
    }
  }
}

void ServiceDelivery::DeliverOutput() {
  // Tells of the metrics files, which the processes write by themselves.
  const base::UniqueFd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  for (const auto& file : spool_->files()) {
    if (file->stream() == "metrics") {
      ::inotify_add_watch(inotify.get(), file->path().c_str(), IN_MODIFY);
    }
  }
  absl::Duration saved = base::SteadyNow();
  while (!ending_) {
    if (link_.NobodyWaits()) {
      Continue(absl::AbortedError(kNobodyWaits));
      return;
    }
    bool sent_any = false;
    for (const auto& file : spool_->files()) {
      const absl::StatusOr<bool> sent = SendOutput(*file);
      if (!Continue(sent.status())) return;
      sent_any |= !sent.ok() || *sent;
    }
    if (base::SteadyNow() - saved > absl::Seconds(1)) {
      absl::MutexLock lock(&mutex_);
      spool_->SaveAcknowledged(events_acknowledged_);
      saved = base::SteadyNow();
    }
    if (!sent_any) AwaitNewOutput(inotify.get());
  }
}

absl::StatusOr<bool> ServiceDelivery::SendOutput(SpoolFile& file) {
  const uint64_t offset = file.acknowledged();
  if (file.Backlog() == 0) return false;
  TUTTI_ASSIGN_OR_RETURN(std::string bytes, BytesToSend(file, offset, is_whole_));
  if (bytes.empty()) return false;
  TUTTI_ASSIGN_OR_RETURN(const uint64_t now,
                         PostOutput(link_, plan_.node_index, file.rank(), file.stream(), offset,
                                    std::move(bytes), base::Deadline::After(kWithoutLimit)));
  {
    absl::MutexLock lock(&mutex_);  // AwaitOutput looks again when it is released
    file.Acknowledge(std::min(now, file.Size()));
  }
  news_->Notify();
  if (now == offset) return absl::InternalError("the service took none of the output");
  return true;
}

void ServiceDelivery::AwaitNewOutput(int inotify) {
  pollfd waiting[2] = {{output_wake_.fd(), POLLIN, 0}, {inotify, POLLIN, 0}};
  ::poll(waiting, 2, 1000);  // once a second also without a sign: a metrics file on a network disk
  output_wake_.Clear();
  alignas(inotify_event) char events[4096];
  while (::read(inotify, events, sizeof events) > 0) {
  }
}

absl::StatusOr<std::filesystem::path> ServiceDelivery::FetchCode(
    const std::filesystem::path& file) {
  const absl::Status fetched = Download(code_link_, plan_.snapshot, file);
  code_link_.Disconnect();
  TUTTI_RETURN_IF_ERROR(fetched);
  return file;
}

absl::Status ServiceDelivery::FetchProgram(const std::string& snapshot,
                                           const std::filesystem::path& file) {
  const absl::Status fetched = Download(code_link_, snapshot, file);
  code_link_.Disconnect();
  return fetched;
}

absl::StatusOr<SecretValues> ServiceDelivery::FetchSecrets() {
  auto values = GetSecrets(code_link_, plan_.node_index, base::Deadline::After(kWithoutLimit));
  code_link_.Disconnect();
  return values;
}

absl::StatusOr<TrackedRun> ServiceDelivery::FetchRun(base::Deadline deadline) {
  auto run = PostRun(code_link_, plan_.node_index, deadline);
  code_link_.Disconnect();
  return run;
}

absl::Status ServiceDelivery::SendResults(const std::vector<Result>& files, Patience patience) {
  ServiceLink link(plan_);
  return UploadResults(files, plan_.node_index, &link, patience);
}

// Results have a link of their own.
absl::Duration ServiceDelivery::put_off(Stream stream) const {
  return link_.put_off(stream == Stream::kEvents ? Urgency::kEvents : Urgency::kOutput);
}

}  // namespace tutti::launch
