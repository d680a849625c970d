// ServiceDelivery delivers over HTTP, by one connection on which exits go before output, so that an
// exit is never queued behind gigabytes of it. Sends as soon as there is something; what comes
// while a call is under way goes with the next. Code and results have a connection for as long as
// they take.
#pragma once

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
  absl::StatusOr<std::filesystem::path> FetchCode(const std::filesystem::path& file) override;
  absl::Status FetchProgram(const std::string& snapshot,
                            const std::filesystem::path& file) override;
  void AbandonCode() override { code_link_.Abandon(); }
  absl::StatusOr<SecretValues> FetchSecrets() override;
  absl::Status SendResults(const std::vector<Result>& files, base::Deadline deadline) override;

 private:
  void DeliverEvents();
  absl::Status SendEvents(int64_t acknowledged);
  void DeliverOutput();
  // Sends output; true if something was sent.
  absl::StatusOr<bool> SendOutput(SpoolFile& file);
  void AwaitNewOutput(int inotify);
  // Pauses after a failure; false if the thread is to end.
  bool Continue(const absl::Status& status);
  void AwaitGo();
  // Asks whether it may go whenever it had nothing else to say for a while, since that is heard.
  void GiveSignsOfLife();

  const spec::LaunchPlan& plan_;
  const absl::Duration beat_;
  ServiceLink link_;
  ServiceLink code_link_;
  Wakeup output_wake_;
  std::atomic<bool> ending_ = false;
  bool prepared_ ABSL_GUARDED_BY(mutex_) = false;  // and the service knows it
  std::thread event_thread_, output_thread_;
  std::thread go_thread_;  // none where there is no other node to wait for, or that waits
};

}  // namespace tutti::launch
