// LiveJob is a job that has not ended, as the service holds it in memory. What the store does not
// know of it may be forgotten: Open rebuilds the rest, and doing it again is safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "platform/service/attempt/gang.h"
#include "platform/service/attempt/hearing.h"
#include "platform/service/attempt/job_placement.h"
#include "platform/service/attempt/next_step.h"
#include "platform/service/jobs/live_flow.h"
#include "platform/service/jobs/notifier.h"
#include "platform/service/logs/job_logs.h"
#include "platform/service/results/sent_results.h"
#include "platform/service/usage/job_usage.h"
#include "platform/store/store.h"

namespace tutti::service {

// Times since boot: the wall's clock may be set.
struct LiveNode {
  absl::Duration last_word;  // of its launcher
  // When a launcher was started to deliver a dead one's spool.
  absl::Duration last_drain = -absl::InfiniteDuration();
  int drains = 0;
  bool listens = false;  // its launcher has asked what the service wants to know
};

// A job from its Provisioning event on.
struct PlacedJob {
  explicit PlacedJob(Placement where) : placement(std::move(where)), gang(placement) {}

  const Placement placement;
  Gang gang;
  std::vector<LiveNode> nodes;                        // as many as placement has
  Hearing hearing;                                    // of any of its launchers
  absl::Duration rested = -absl::InfiniteDuration();  // when it was last seen to be suspended
  std::shared_ptr<JobLogs> logs;
  const std::shared_ptr<SentResults> sent = std::make_shared<SentResults>();
  std::shared_ptr<JobUsage> usage;  // opened and closed with them
  bool started = false;       // Engine::Start has answered OK, to this service or to the one before
  absl::Duration started_at;  // since boot, as the next
  bool stopped = false;       // Engine::Stop has answered OK, to this service
  absl::Duration stopped_at;
  std::string verdict;     // how the cluster ended it, if that has a reason of its own
  bool lost = false;       // and that is the loss of a node
  bool disk_full = false;  // or rather that the disk of all its nodes was full, so that none began
  std::string left;        // AllocationState::left
  std::string held_up;     // what of its launchers was refused for a full disk, and when last
  absl::Duration held_up_at = -absl::InfiniteDuration();  // since boot
  bool is_looked_into = false;  // whether a node is at fault for its failure
  bool judged = false;          // the engine has said that it is over, with a reason or without
  // The state of `logs`, which are opened and closed by a task, so that nobody waits for a disk.
  enum class Output { kToOpen, kOpening, kOpen, kClosing, kClosed };
  Output output = Output::kToOpen;
  absl::Status output_status;  // of the last attempt to open or to close them
  bool must_open = false;      // it has just begun, and fails if they cannot be opened
  // Since boot; so long its steps wait for them to be opened, where the clock may have been set
  // back: they know what was printed last to the service before, and what happens now comes after.
  absl::Duration wait_for_logs_until = -absl::InfiniteDuration();
};

// When a job began to run, by the clock of a machine's boot.
struct BegunAt {
  std::string boot_id;
  absl::Duration since_boot;
};

struct LiveJob {
  store::JobRecord record;
  std::shared_ptr<Notifier> news = std::make_shared<Notifier>();   // for its followers
  std::shared_ptr<Notifier> steps = std::make_shared<Notifier>();  // the same, without its output
  Cause cause = Cause::kNone;
  std::unique_ptr<PlacedJob> placed;  // null while it is queued
  std::unique_ptr<LiveFlow> flow;     // of a pipeline or a sweep, which is never placed
  std::optional<Placement> former;    // of the last attempt that had taken over what was there
  int begun_before = 0;               // attempts
  int begun_free = 0;                 // of these, those that cost no retry, as a disk was full
  absl::Duration not_before = -absl::InfiniteDuration();  // since boot, that it is handed over
  std::vector<std::string> avoid;   // nodes on which they failed, not by the job's own fault
  std::optional<BegunAt> begun_at;  // with record.started, which tells it by the wall's clock
  bool handed_over = false;         // to a cluster's queue, by this service
  bool being_handed = false;        // its engine has been called, and has not answered
  std::string waits_for;            // of a job that a cluster has, or that begins again
  std::optional<absl::Time> expected_start;

  int attempt() const { return begun_before + 1; }  // which time it is begun
};

// The detail of a job's events, for programs: {"allocation": …, "cause": …, "failures": […]}.
struct EventDetail {
  std::optional<Placement> placement;
  std::optional<Placement> former;  // as in LiveJob
  int begun_before = 0, begun_free = 0;
  std::vector<std::string> avoid;
  Cause cause = Cause::kNone;
  std::vector<Failure> failures;
  std::string reused_from;  // of a step: the job whose results it took
  std::optional<BegunAt> begun_at;
};
std::string ToJson(const EventDetail& detail);
// Leaves out what is missing or damaged.
EventDetail EventDetailFromJson(absl::string_view text);

// One of those that a job comes with.
struct FirstEvent {
  // Gives the event its detail as text, too.
  FirstEvent(store::Event of, EventDetail says) : event(std::move(of)), detail(std::move(says)) {
    event.detail = ToJson(detail);
  }
  store::Event event;
  EventDetail detail;
};
std::vector<store::Event> EventsOf(const std::vector<FirstEvent>& events);

}  // namespace tutti::service
