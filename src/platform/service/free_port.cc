#include "platform/service/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/unique_fd.h"

namespace tutti::service {
namespace {

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
  if (::bind(fd.get(), generic, size) != 0 || ::listen(fd.get(), 1) != 0) return 0;
  if (::getsockname(fd.get(), generic, &size) != 0) return 0;
  return ntohs(where.sin_port);
}

}  // namespace

int FindFreePort(const std::string& address, int preferred) {
  if (TryPort(address, preferred) != 0 || errno == EADDRNOTAVAIL) return preferred;
  const int other = TryPort(address, 0);
  return other != 0 ? other : preferred;
}

}  // namespace tutti::service
