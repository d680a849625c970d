#include "platform/launch/output_forwarder.h"

#include <poll.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::launch {
namespace {

constexpr size_t kTurn = 1 << 20;  // bytes of one pipe before the others have theirs
constexpr absl::Duration kRetry = absl::Milliseconds(200);  // of a spool that took no more

}  // namespace

absl::Duration OutputForwarder::UntilNextPump() const {
  return waits_ ? kRetry : absl::InfiniteDuration();
}

bool OutputForwarder::MoveAll(const std::vector<OutputPipe*>& pipes) {
  waits_ = spool_->Backlog() >= options_.spool_limit;
  if (waits_) return false;
  size_t moved = 0;
  for (OutputPipe* pipe : pipes) {
    const absl::StatusOr<size_t> n = pipe->Pump(kTurn);
    waits_ |= !n.ok();
    moved += n.value_or(0);
  }
  if (moved > 0) delivery_->Wake();
  return waits_;
}

absl::Status OutputForwarder::Pump(const std::vector<OutputPipe*>& pipes) {
  const bool disk_full = MoveAll(pipes);
  if (!patience_.RunsOut(waits_, spool_->Acknowledged())) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the output of its processes could not be kept: the ",
                   disk_full ? "disk" : "spool", " of node ", plan_.node().name, " is full (",
                   spool_->Backlog() >> 20, " MiB wait for the service, which took nothing for ",
                   absl::FormatDuration(options_.spool_patience), ")"));
}

absl::Status OutputForwarder::DrainOne(OutputPipe& pipe) {
  absl::StatusOr<size_t> moved = pipe.Pump(kTurn);
  while ((moved.ok() ? *moved > 0 : !patience_.RunsOut(true, spool_->Acknowledged())) &&
         !delivery_->gone()) {
    pollfd news{news_->fd(), POLLIN, 0};
    if (!moved.ok()) ::poll(&news, 1, static_cast<int>(kRetry / absl::Milliseconds(1)));
    news_->Clear();
    delivery_->Wake();
    moved = pipe.Pump(kTurn);
  }
  return moved.status();
}

absl::Status OutputForwarder::Drain(const std::vector<OutputPipe*>& pipes) {
  absl::Status first;
  for (OutputPipe* pipe : pipes) {
    const absl::Status drained = DrainOne(*pipe);
    if (drained.ok() || !first.ok()) continue;
    first = base::Annotate(
        drained, absl::StrCat("the last output of rank ", pipe->rank(), " could not be kept"));
  }
  delivery_->Wake();
  return first;
}

}  // namespace tutti::launch
