#include "platform/http/client/resolve.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/threads/start_thread.h"
#include "base/unique_fd.h"

namespace tutti::http {
namespace {

// What the resolver's thread and who asked share; the last of them frees it. `done` becomes
// readable once the rest is filled in.
struct Question {
  explicit Question(const Authority& of) : host(of.host), port(absl::StrCat(of.port)) {}

  void Ask(int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    addrinfo* list = nullptr;
    failure = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
    if (failure == 0) found.reset(list);
  }

  const std::string host, port;
  const base::UniqueFd done{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  int failure = 0;
  Addresses found;
};

absl::Status WaitFor(const Question& question, int cancel_fd, base::Deadline deadline) {
  while (true) {
    pollfd waiting[2] = {{question.done.get(), POLLIN, 0}, {cancel_fd, POLLIN, 0}};
    const int ready = ::poll(waiting, 2, deadline.RemainingMillis());
    if (ready < 0 && errno != EINTR) return base::ErrnoStatus("poll");
    if (ready > 0 && waiting[1].revents != 0) return absl::CancelledError("cancelled");
    if (ready > 0) return absl::OkStatus();
    if (ready == 0) {
      return absl::DeadlineExceededError(
          absl::StrCat("the name of host ", question.host, " was not found in time"));
    }
  }
}

}  // namespace

absl::StatusOr<Addresses> Resolve(const Authority& of, int cancel_fd, base::Deadline deadline) {
  const auto question = std::make_shared<Question>(of);
  question->Ask(AI_NUMERICHOST);  // an address needs no resolver
  if (question->failure == 0) return std::move(question->found);
  std::thread asking = base::StartThread([question] {
    question->Ask(0);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(question->done.get(), &one, sizeof one);
  });
  if (!asking.joinable()) {
    return absl::UnavailableError(
        absl::StrCat("cannot find host ", of.host, ": this machine has no room for a thread"));
  }
  asking.detach();
  TUTTI_RETURN_IF_ERROR(WaitFor(*question, cancel_fd, deadline));
  if (question->failure == 0) return std::move(question->found);
  return absl::UnavailableError(
      absl::StrCat("cannot find host ", of.host, ": ", ::gai_strerror(question->failure)));
}

}  // namespace tutti::http
