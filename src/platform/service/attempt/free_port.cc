#include "platform/service/attempt/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tutti::service {
namespace {

constexpr int kAttempts = 32, kByChance = 24;
// docs/slurm/private-networks.md names them. The system gives them to no connection by itself
// (ip_local_port_range), which one could be before the job's first rank listens there.
constexpr int kFirst = 10000, kLast = 31999;

// Binds and lets go again. The port, or 0 with errno.
int TryPort(const std::string& address, int port) {
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(port));
  if (::inet_pton(AF_INET, address.c_str(), &where.sin_addr) != 1) {
    errno = EADDRNOTAVAIL;
    return 0;
  }
  const base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;  // a port whose last job has just ended (TIME_WAIT) is free
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  auto* const generic = reinterpret_cast<sockaddr*>(&where);
  socklen_t size = sizeof(where);
  if (::bind(fd.get(), generic, size) != 0) return 0;  // somebody listens there, for one
  if (::getsockname(fd.get(), generic, &size) != 0) return 0;
  return ntohs(where.sin_port);
}

// A name of the machine's that one socket can have, and that is gone with it.
std::shared_ptr<const base::UniqueFd> Claim(const std::string& address, int port) {
  auto claim = std::make_shared<base::UniqueFd>(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const std::string name = absl::StrCat("tutti-port-", address, ":", port);
  sockaddr_un where = {};
  where.sun_family = AF_UNIX;
  name.copy(where.sun_path + 1, sizeof(where.sun_path) - 1);  // after a zero byte: not a file's
  const size_t size = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  if (::bind(claim->get(), reinterpret_cast<sockaddr*>(&where), static_cast<socklen_t>(size)) !=
      0) {
    return nullptr;
  }
  return claim;
}

}  // namespace

FreePort FindFreePort(const std::string& address, int preferred) {
  std::random_device chance;
  std::uniform_int_distribution<int> any(kFirst, kLast);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const int other = attempt <= kByChance ? any(chance) : 0;
    const int port = TryPort(address, attempt == 0 ? preferred : other);
    if (port == 0 && errno == EADDRNOTAVAIL) return {preferred};
    if (port == 0) continue;
    auto claim = Claim(address, port);
    if (claim != nullptr) return {port, std::move(claim)};
  }
  return {preferred};
}

}  // namespace tutti::service
