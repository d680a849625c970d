// ServiceDelivery delivers over HTTP, by one connection on which exits go before output, so that an
// exit is never queued behind gigabytes of it. Sends as soon as there is something; what comes
// while a call is under way goes with the next. Code and results have a connection for as long as
// they take.
#pragma once

#include <atomic>
#include <deque>
#include <optional>
#include <string>
#include <thread>

#include "platform/launch/delivery/delivery.h"
#include "platform/launch/delivery/service_link.h"

namespace tutti::launch {

class ServiceDelivery final : public Delivery {
 public:
  ServiceDelivery(const spec::LaunchPlan& plan, EventLog* events, Spool* spool, Wakeup* news,
                  Wakeup output_wake);
  ~ServiceDelivery() override;

  void Begin() override;
  void Wake() override { output_wake_.Notify(); }
  bool WantsUsage() const override;
  void OfferUsage(std::string line) override;
  std::vector<spec::Question> OpenQuestions() override;
  void OfferAnswer(const std::string& question, int rank, std::string json) override;
  absl::StatusOr<std::filesystem::path> FetchCode(const std::filesystem::path& file) override;
  absl::Status FetchProgram(const std::string& snapshot,
                            const std::filesystem::path& file) override;
  void AbandonCode() override { code_link_.Abandon(); }
  absl::StatusOr<SecretValues> FetchSecrets() override;
  absl::StatusOr<TrackedRun> FetchRun(base::Deadline deadline) override;
  std::shared_ptr<ServiceLink> NewLink() override { return std::make_shared<ServiceLink>(plan_); }
  absl::Status SendResults(const std::vector<Result>& files, Patience patience) override;

 private:
  absl::Duration put_off(Stream stream) const override;
  void DeliverEvents();
  absl::Status SendEvents(int64_t acknowledged);
  void DeliverOutput();
  // Sends output; true if something was sent.
  absl::StatusOr<bool> SendOutput(SpoolFile& file);
  void AwaitNewOutput(int inotify);
  // Pauses after a failure; false if the thread is to end.
  bool Continue(const absl::Status& status);
  void AwaitGo();
  void DeliverUsage();
  // Returns the samples that wait, as lines, after the pause; nothing at the end.
  std::optional<std::string> TakeUsage(absl::Duration pause);
  void DeliverAnswers();
  // Sends the answers that wait. False, to try again soon, if the service is away; it keeps them as
  // long as their question is open.
  bool SendAnswers();
  // Notes what the service asks now, and drops answers that it does not want.
  void NoteQuestions(std::vector<spec::Question> questions);
  // Asks whether it may go whenever it had nothing else to say for a while, since that is heard.
  void GiveSignsOfLife();

  const spec::LaunchPlan& plan_;
  const absl::Duration beat_;
  ServiceLink link_;
  ServiceLink code_link_;
  Wakeup output_wake_;
  std::atomic<bool> ending_ = false;
  bool prepared_ ABSL_GUARDED_BY(mutex_) = false;          // and the service knows it
  std::deque<std::string> usage_ ABSL_GUARDED_BY(mutex_);  // the newest last
  size_t usage_bytes_ ABSL_GUARDED_BY(mutex_) = 0;         // theirs
  bool usage_begun_ ABSL_GUARDED_BY(mutex_) = false;
  struct Answer {
    std::string question;
    int rank;
    std::string json;
  };
  std::vector<spec::Question> questions_ ABSL_GUARDED_BY(mutex_);  // that are open
  std::deque<Answer> answers_ ABSL_GUARDED_BY(mutex_);
  bool questions_begun_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> usage_is_unknown_ = false;  // to the service, as it said last
  std::thread event_thread_, output_thread_;
  std::thread usage_thread_;     // none before there is something; of who offers it
  std::thread question_thread_;  // none before somebody would answer
  std::thread go_thread_;        // none where there is no other node to wait for, or that waits
};

}  // namespace tutti::launch
