#include "platform/launch/output_forwarder.h"

#include <poll.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::launch {
namespace {

constexpr size_t kPipeTurn = 1 << 20;  // bytes of one pipe before the others have theirs
constexpr absl::Duration kRetry = absl::Milliseconds(200);  // of a spool that took no more

}  // namespace

absl::Duration OutputForwarder::UntilNextPump() const {
  return waits_ ? kRetry : absl::InfiniteDuration();
}

absl::Status OutputForwarder::MoveAll(const std::vector<OutputPipe*>& pipes) {
  waits_ = parts_.spool->Backlog() >= options_.spool_limit;
  absl::Status first;
  if (waits_) return first;
  size_t moved = 0;
  for (OutputPipe* pipe : pipes) {
    const absl::StatusOr<size_t> n = pipe->Pump(kPipeTurn);
    first.Update(n.status());
    moved += n.value_or(0);
  }
  waits_ = !first.ok();
  if (moved > 0) parts_.delivery->Wake();
  return first;
}

// What is full may have room again, and costs no job that runs well.
absl::Status OutputForwarder::Pump(const std::vector<OutputPipe*>& pipes) {
  const absl::Status spool = MoveAll(pipes);
  TellOfFullDisk(spool);
  const bool fails = !spool.ok() && !absl::IsResourceExhausted(spool);
  if (!patience_.RunsOut(fails, parts_.spool->Acknowledged())) return absl::OkStatus();
  return base::Annotate(
      spool,
      absl::StrCat("the output of its processes could not be kept on node ", plan_.node().name,
                   " for ", absl::FormatDuration(options_.spool_patience)));
}

void OutputForwarder::TellOfFullDisk(const absl::Status& spool) {
  const bool is_full = absl::IsResourceExhausted(spool);
  if (is_full && !tells_at_) tells_at_ = base::Deadline::After(options_.full_disk_told_after);
  if (!is_full) tells_at_.reset();
  const bool tells = is_full && tells_at_->Expired();
  if (tells == told_ || (is_full && !tells)) return;
  told_ = tells;
  parts_.events->Append(
      "held",
      {{"note", tells ? absl::StrCat("its processes wait in their writes: the disk of node ",
                                     plan_.node().name, " is full (", plan_.directory, ")")
                      : ""}});
}

bool OutputForwarder::MayWait(const absl::Status& spool, bool told_to_end) {
  const bool must_end = told_to_end || Signals::StopIsPending();
  if (absl::IsResourceExhausted(spool) && !must_end) return true;
  return !patience_.RunsOut(true, parts_.spool->Acknowledged());
}

absl::Status OutputForwarder::DrainOne(OutputPipe& pipe, bool told_to_end) {
  absl::StatusOr<size_t> moved = pipe.Pump(kPipeTurn);
  while ((moved.ok() ? *moved > 0 : MayWait(moved.status(), told_to_end)) &&
         !parts_.delivery->gone()) {
    TellOfFullDisk(moved.status());
    pollfd news{parts_.news->fd(), POLLIN, 0};
    if (!moved.ok()) ::poll(&news, 1, static_cast<int>(kRetry / absl::Milliseconds(1)));
    parts_.news->Clear();
    parts_.delivery->Wake();
    moved = pipe.Pump(kPipeTurn);
  }
  TellOfFullDisk(absl::OkStatus());
  return moved.status();
}

absl::Status OutputForwarder::Drain(const std::vector<OutputPipe*>& pipes, bool told_to_end) {
  absl::Status first;
  for (OutputPipe* pipe : pipes) {
    const absl::Status drained = DrainOne(*pipe, told_to_end);
    if (drained.ok() || !first.ok()) continue;
    first = base::Annotate(
        drained, absl::StrCat("the last output of rank ", pipe->rank(), " could not be kept"));
  }
  parts_.delivery->Wake();
  return first;
}

}  // namespace tutti::launch
