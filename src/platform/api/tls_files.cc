#include "platform/api/tls_files.h"

#include <unistd.h>

#include <climits>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::api {
namespace {

std::vector<std::string> NamesOfThisMachine(const std::string& address) {
  std::vector<std::string> names = {address, "localhost"};
  if (address != "127.0.0.1") names.push_back("127.0.0.1");
  char host[HOST_NAME_MAX + 1] = "";
  if (::gethostname(host, HOST_NAME_MAX) == 0 && host[0] != '\0') names.push_back(host);
  return names;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const http::Identity>> IdentityIn(
    const std::filesystem::path& directory, const std::string& address) {
  const std::filesystem::path file = directory / "tls.pem";
  absl::StatusOr<std::string> pem = base::ReadFile(file, 1 << 20);
  if (absl::IsNotFound(pem.status())) {
    pem = http::Identity::MakeSelfSigned(NamesOfThisMachine(address));
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
  TUTTI_RETURN_IF_ERROR(
      base::WriteFileAtomic(directory / "certificate.pem", (*identity)->certificate(), 0644));
  return identity;
}

}  // namespace tutti::api
