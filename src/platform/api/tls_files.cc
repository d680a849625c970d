#include "platform/api/tls_files.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::api {
namespace {

// Its host name, and the IPv4 addresses of its network interfaces.
std::vector<std::string> NamesOfThisMachine() {
  std::vector<std::string> names = {"localhost"};
  char text[HOST_NAME_MAX + 1] = "";
  if (::gethostname(text, HOST_NAME_MAX) == 0 && text[0] != '\0') names.emplace_back(text);
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return names;
  const absl::Cleanup free = [first] { ::freeifaddrs(first); };
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    char address[INET_ADDRSTRLEN] = "";
    const auto* const name = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
    ::inet_ntop(AF_INET, &name->sin_addr, address, sizeof address);
    if (std::find(names.begin(), names.end(), address) == names.end()) names.emplace_back(address);
  }
  return names;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const http::Identity>> IdentityIn(
    const std::filesystem::path& directory, const std::string& address) {
  const std::filesystem::path file = directory / "tls.pem";
  absl::StatusOr<std::string> pem = base::ReadFile(file, 1 << 20);
  std::error_code error;
  if (absl::IsNotFound(pem.status()) && std::filesystem::is_symlink(file, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat(file.native(), " is a link to a file that is not there"));
  }
  if (absl::IsNotFound(pem.status())) {
    pem = http::Identity::MakeSelfSigned(NamesOfThisMachine());
    TUTTI_RETURN_IF_ERROR(pem.status());
    TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(file, *pem, 0600));
  }
  TUTTI_RETURN_IF_ERROR(pem.status());
  auto identity = http::Identity::FromPem(*pem);
  if (!identity.ok()) {
    return absl::Status(identity.status().code(),
                        absl::StrCat(file.native(), ": ", identity.status().message(),
                                     "; put a key and its certificate there, or remove it: "
                                     "then a new one is made"));
  }
  for (const std::string& remark : (*identity)->Remarks(address, absl::Now())) {
    spdlog::warn("the certificate in {} {}: programs other than tutti will not take it",
                 file.native(), remark);
  }
  TUTTI_RETURN_IF_ERROR(
      base::UpdateFile(directory / "certificate.pem", (*identity)->certificate(), 0644));
  return identity;
}

}  // namespace tutti::api
