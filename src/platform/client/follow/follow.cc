#include "platform/client/follow/follow.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace tutti::client {
namespace {

// Ctrl-C waits at most this long, and the bar's clock moves this often.
constexpr absl::Duration kTick = absl::Milliseconds(100);
// Lines that are shown at once, so that a flood of output cannot delay Ctrl-C or the bar.
constexpr int kBatch = 500;
// A queued job is asked what it waits for this often, at first after this time.
constexpr absl::Duration kAskInterval = absl::Seconds(1);

class Following {
 public:
  Following(const Connect& connect, const std::string& job, const FollowOptions& options,
            JobDisplay& display, Interrupts& interrupts)
      : connect_(connect),
        job_(job),
        options_(options),
        display_(display),
        interrupts_(interrupts),
        reader_(connect, job, options.reader) {
    end_.cursor = options.reader.cursor;
  }

  absl::StatusOr<FollowEnd> Run() {
    while (!done_) {
      if (interrupts_.Take()) OnInterrupt();
      ShowBatch();
      ShowWhatItWaitsFor();
      display_.Refresh(absl::Now());
    }
    display_.End();
    if (!failure_.ok()) return failure_;
    return end_;
  }

 private:
  void ShowBatch() {
    base::Deadline deadline = base::Deadline::After(kTick);
    for (int i = 0; i < kBatch && !done_; ++i) {
      const auto item = reader_.Next(deadline);
      if (!item.has_value()) return;
      Show(*item);
      deadline = base::Deadline::After(absl::ZeroDuration());  // what is there already
    }
  }

  void Show(const FollowItem& item) {
    switch (item.kind) {
      case FollowItem::Kind::kLine:
        display_.Line(item.line, absl::Now());
        end_.cursor = item.line.cursor;
        break;
      case FollowItem::Kind::kLost:
        away_ = true;
        display_.Remark("The service went away; the job goes on. Waiting for it to come back …");
        break;
      case FollowItem::Kind::kBack:
        away_ = false;
        display_.Remark("The service is back.");
        break;
      case FollowItem::Kind::kEnded:
        end_.job = item.job;
        done_ = true;
        break;
      case FollowItem::Kind::kFailed:
        failure_ = item.status;
        done_ = true;
        break;
    }
  }

  // The reasons for waiting change all the time and so are no events of the stream.
  void ShowWhatItWaitsFor() {
    const absl::Time now = absl::Now();
    if (done_ || away_ || !display_.queued() || now < ask_at_) return;
    if (ask_at_ != absl::InfinitePast()) {
      ServiceClient service(connect_());
      const auto text = service.Job(job_, absl::Seconds(2));
      const auto job = text.ok() ? Parse<JobView>(*text) : text.status();
      if (job.ok() && job->state == "Queued") display_.Waiting(*job, now);
    }
    ask_at_ = now + kAskInterval;
  }

  void OnInterrupt() {
    if (cancelling_ || !options_.offer_cancel) return Detach(FollowEnd::Kind::kInterrupted);
    if (options_.cancel_on_interrupt) return Cancel();
    display_.Refresh(absl::Now());
    switch (interrupts_.Ask()) {
      case Answer::kCancel:
        return Cancel();
      case Answer::kGoOn:
        return;
      case Answer::kDetach:
        return Detach(FollowEnd::Kind::kDetached);
      case Answer::kLeave:
        return Detach(FollowEnd::Kind::kInterrupted);
    }
  }

  void Detach(FollowEnd::Kind kind) {
    end_.kind = kind;
    done_ = true;
  }

  void Cancel() {
    ServiceClient service(connect_());
    const absl::Status status = service.Cancel(job_).status();
    cancelling_ = status.ok();
    display_.Remark(status.ok() ? "Cancelling; Ctrl-C again leaves at once."
                                : absl::StrCat("Could not cancel: ", status.message()));
  }

  const Connect& connect_;
  const std::string& job_;
  const FollowOptions& options_;
  JobDisplay& display_;
  Interrupts& interrupts_;
  FollowReader reader_;
  FollowEnd end_;
  absl::Status failure_;
  absl::Time ask_at_ = absl::InfinitePast();
  bool away_ = false;  // the service, as far as the reader has said
  bool cancelling_ = false;
  bool done_ = false;
};

}  // namespace

absl::StatusOr<FollowEnd> FollowJob(const Connect& connect, const std::string& job,
                                    const FollowOptions& options, JobDisplay& display,
                                    Interrupts& interrupts) {
  return Following(connect, job, options, display, interrupts).Run();
}

}  // namespace tutti::client
