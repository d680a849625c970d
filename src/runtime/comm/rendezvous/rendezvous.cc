#include "runtime/comm/rendezvous/rendezvous.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "base/threads/retry_pause.h"
#include "runtime/comm/rendezvous/authenticate.h"
#include "runtime/comm/rendezvous/check_table.h"
#include "runtime/comm/rendezvous/rendezvous_server.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::comm {
namespace {

// An old process on the port, a listener that is just going away: worth another attempt. A proof
// that failed or another version will not become right by waiting.
bool WorthRetrying(const absl::Status& status) {
  return !absl::IsPermissionDenied(status) && !absl::IsFailedPrecondition(status) &&
         !absl::IsCancelled(status);
}

absl::StatusOr<base::UniqueFd> ComeOnce(const GroupOptions& options, const Patience& patience) {
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, Connect({options.master_address, options.master_port},
                                                    options.address, patience));
  TUTTI_RETURN_IF_ERROR(
      Authenticate(fd.get(), Side::kOpener, options.token, kRendezvousPurpose, patience));
  return fd;
}

absl::StatusOr<base::UniqueFd> ComeToMaster(const GroupOptions& options, int interrupt) {
  const auto deadline = base::Deadline::After(options.connect_timeout);
  base::RetryPause pauses(absl::Milliseconds(10), absl::Milliseconds(200));
  while (true) {
    const auto attempt = base::Deadline::Sooner(deadline, base::Deadline::After(kHandshakeTimeout));
    absl::StatusOr<base::UniqueFd> fd = ComeOnce(options, {attempt, interrupt});
    if (fd.ok()) return fd;
    const std::string place = absl::StrCat(
        "rank 0 at ", Endpoint{options.master_address, options.master_port}.ToString());
    if (!WorthRetrying(fd.status())) return base::Annotate(fd.status(), place);
    if (deadline.Expired()) {
      return absl::DeadlineExceededError(absl::StrCat(place, " was not there within ",
                                                      absl::FormatDuration(options.connect_timeout),
                                                      ": ", std::string(fd.status().message())));
    }
    const auto rest = base::Deadline::Sooner(deadline, base::Deadline::After(pauses.Next()));
    pollfd polled = {interrupt, POLLIN, 0};
    ::poll(&polled, 1, rest.RemainingMillis());
  }
}

absl::StatusOr<RendezvousResult> ConnectToServer(const GroupOptions& options, const Hello& self,
                                                 int interrupt) {
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, ComeToMaster(options, interrupt));
  // Rank 0 may have begun to wait only now: its own patience ends before this one.
  const Patience patience{base::Deadline::After(options.connect_timeout + kHandshakeTimeout),
                          interrupt};
  TUTTI_RETURN_IF_ERROR(SendMessage(fd.get(), self, patience));
  absl::StatusOr<Message> answer = ReceiveMessage(fd.get(), kLongestMessage, patience);
  if (!answer.ok()) return base::Annotate(answer.status(), "rank 0 left the rendezvous");
  if (const Refusal* refusal = std::get_if<Refusal>(&*answer)) {
    const bool is_error = refusal->code != absl::StatusCode::kOk;
    return absl::Status(is_error ? refusal->code : absl::StatusCode::kInternal, refusal->text);
  }
  Table* table = std::get_if<Table>(&*answer);
  if (table == nullptr) return absl::InternalError("rank 0 answered with something else");
  const bool whole = table->ranks.size() == static_cast<size_t>(self.size);
  if (!whole || !CheckTable(*table).ok()) {
    return absl::InternalError("rank 0 sent a table that is not whole");
  }
  RendezvousResult rendezvous{std::move(*table), {}};
  rendezvous.controls.push_back(std::move(fd));
  return rendezvous;
}

}  // namespace

absl::StatusOr<RendezvousResult> Rendezvous(const GroupOptions& options, const Hello& self,
                                            base::UniqueFd listener, int interrupt) {
  if (self.rank != 0) return ConnectToServer(options, self, interrupt);
  return RendezvousServer(options, self, interrupt).Receive(std::move(listener));
}

}  // namespace tutti::comm
