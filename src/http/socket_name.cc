#include "http/socket_name.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tutti::http {
namespace {

sockaddr_in& V4(SocketName& name) { return reinterpret_cast<sockaddr_in&>(name.storage); }
sockaddr_in6& V6(SocketName& name) { return reinterpret_cast<sockaddr_in6&>(name.storage); }
const sockaddr_in& V4(const SocketName& name) {
  return reinterpret_cast<const sockaddr_in&>(name.storage);
}
const sockaddr_in6& V6(const SocketName& name) {
  return reinterpret_cast<const sockaddr_in6&>(name.storage);
}

}  // namespace

std::optional<SocketName> SocketNameOf(const std::string& address, int port) {
  SocketName name;
  if (::inet_pton(AF_INET, address.c_str(), &V4(name).sin_addr) == 1) {
    V4(name).sin_family = AF_INET;
    V4(name).sin_port = htons(static_cast<uint16_t>(port));
    name.size = sizeof(sockaddr_in);
    return name;
  }
  if (::inet_pton(AF_INET6, address.c_str(), &V6(name).sin6_addr) == 1) {
    V6(name).sin6_family = AF_INET6;
    V6(name).sin6_port = htons(static_cast<uint16_t>(port));
    name.size = sizeof(sockaddr_in6);
    return name;
  }
  return std::nullopt;
}

std::optional<SocketName> SocketNameOf(absl::string_view text) {
  const size_t colon = text.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port)) {
    return std::nullopt;
  }
  absl::string_view address = text.substr(0, colon);
  const bool brackets = absl::ConsumePrefix(&address, "[") && absl::ConsumeSuffix(&address, "]");
  if (address.empty() || absl::StrContains(address, ':') != brackets) return std::nullopt;
  return SocketNameOf(std::string(address), port);
}

bool IsOfThisMachine(const std::string& address) {
  if (absl::StartsWith(address, "127.") && SocketNameOf(address, 0)) return true;  // all of them
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return false;
  bool found = false;
  for (const ifaddrs* one = all; one != nullptr && !found; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    SocketName name;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    std::memcpy(&name.storage, one->ifa_addr,
                family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    found = AddressOf(name) == address;
  }
  ::freeifaddrs(all);
  return found;
}

SocketName OwnName(int fd) {
  SocketName name;
  if (::getsockname(fd, name.address(), &name.size) != 0) return {};
  return name;
}

std::string AddressOf(const SocketName& name) {
  char text[INET6_ADDRSTRLEN] = "";
  if (name.storage.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &V4(name).sin_addr, text, sizeof text);
  } else if (name.storage.ss_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &V6(name).sin6_addr, text, sizeof text);
  }
  return text;
}

int PortOf(const SocketName& name) {
  return ntohs(name.storage.ss_family == AF_INET6 ? V6(name).sin6_port : V4(name).sin_port);
}

std::string TextOf(const SocketName& name) {
  const bool v6 = name.storage.ss_family == AF_INET6;
  return absl::StrCat(v6 ? "[" : "", AddressOf(name), v6 ? "]:" : ":", PortOf(name));
}

}  // namespace tutti::http
