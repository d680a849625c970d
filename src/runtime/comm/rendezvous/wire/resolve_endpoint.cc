#include "runtime/comm/rendezvous/wire/resolve_endpoint.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::comm {
namespace {

// What the thread that looks a name up shares with the one that waits for it, or no longer does.
struct Lookup {
  Endpoint endpoint;
  int family = AF_UNSPEC;
  base::UniqueFd done{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::atomic<bool> is_done = false;  // `error` and `found` may be read
  int error = 0;
  std::vector<SocketAddress> found;

  void Run(int flags) {
    addrinfo hints = {};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    addrinfo* list = nullptr;
    error =
        ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &list);
    for (const addrinfo* one = error == 0 ? list : nullptr; one != nullptr; one = one->ai_next) {
      SocketAddress& address = found.emplace_back();
      address.length = one->ai_addrlen;
      std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    }
    if (error == 0) ::freeaddrinfo(list);
  }
  absl::StatusOr<std::vector<SocketAddress>> Result() {
    if (error == 0 && !found.empty()) return std::move(found);
    return absl::UnavailableError(
        absl::StrCat("address \"", endpoint.host, "\": ", ::gai_strerror(error)));
  }
};

bool RunOnAThread(const std::shared_ptr<Lookup>& lookup) {
  try {
    std::thread([lookup] {
      lookup->Run(0);
      lookup->is_done.store(true, std::memory_order_release);
      ::eventfd_write(lookup->done.get(), 1);
    }).detach();
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<SocketAddress>> Resolve(const Endpoint& endpoint,
                                                   const std::string& like,
                                                   const Patience& patience) {
  const auto lookup = std::make_shared<Lookup>();
  lookup->endpoint = endpoint;
  if (!like.empty()) lookup->family = like.find(':') == std::string::npos ? AF_INET : AF_INET6;
  lookup->Run(AI_NUMERICHOST);
  if (lookup->error == 0) return lookup->Result();
  if (!RunOnAThread(lookup)) {
    return absl::ResourceExhaustedError("the system gives no thread to look a name up");
  }
  while (!lookup->is_done.load(std::memory_order_acquire)) {
    const absl::Status waited = WaitFor(lookup->done.get(), POLLIN, patience);
    if (!waited.ok()) {
      return base::Annotate(waited, absl::StrCat("address \"", endpoint.host, "\""));
    }
  }
  return lookup->Result();
}

}  // namespace tutti::comm
