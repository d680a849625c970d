#include "platform/client/connection/find_service.h"

#include <cstdlib>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/connection/outage.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

constexpr char kDatabase[] = "tutti.db";  // of a home that has had a service

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// What the environment says of it.
absl::StatusOr<spec::Endpoint> FromEnvironment() {
  spec::Endpoint service{Variable("TUTTI_ADDRESS"), Variable("TUTTI_TOKEN"), ""};
  const std::string file = Variable("TUTTI_CERTIFICATE");
  if (file.empty()) return service;
  const auto text = base::ReadFile(file, 1 << 20);
  if (!text.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("TUTTI_CERTIFICATE: ", text.status().message()));
  }
  service.certificate = *text;
  return service;
}

// The token of a home's service is for that service alone, which another address does not prove.
absl::Status TokenIsNotFor(const spec::Endpoint& elsewhere, const fs::path& file,
                           const spec::Endpoint& running) {
  return absl::InvalidArgumentError(
      absl::StrCat("TUTTI_ADDRESS is ", elsewhere.address, ", and the service of ", file.native(),
                   " is at ", running.address,
                   ", without a certificate to know it by: its token is not sent elsewhere; set "
                   "TUTTI_TOKEN to the other service's, or unset TUTTI_ADDRESS"));
}

// What is known by a certificate is not spoken to readably, whatever the address says.
absl::StatusOr<spec::Endpoint> CheckedSecured(const spec::Endpoint& service) {
  if (service.certificate.empty() || absl::StartsWith(service.address, "https://")) return service;
  return absl::InvalidArgumentError(absl::StrCat(
      "TUTTI_ADDRESS is ", service.address,
      ", and the service is known by a certificate: write https://HOST:PORT, so that its token is "
      "not sent readably"));
}

}  // namespace

fs::path HomeFolder(const std::string& flag) {
  if (!flag.empty()) return fs::absolute(flag).lexically_normal();
  if (const std::string set = Variable("TUTTI_HOME"); !set.empty()) return fs::absolute(set);
  if (const std::string data = Variable("XDG_DATA_HOME"); !data.empty()) {
    return fs::path(data) / "tutti";
  }
  const std::string user = Variable("HOME");
  return fs::path(user.empty() ? "/root" : user) / ".local/share/tutti";
}

absl::StatusOr<spec::Endpoint> FindService(const fs::path& home) {
  TUTTI_ASSIGN_OR_RETURN(spec::Endpoint given, FromEnvironment());
  const fs::path file = home / "service.json";
  const absl::StatusOr<spec::Endpoint> running = spec::ReadEndpoint(file);
  // An address without a token may be meant: the service says what it wants.
  const bool said =
      !given.address.empty() && (!given.token.empty() || absl::IsNotFound(running.status()));
  if (!running.ok() && said) return CheckedSecured(given);
  if (absl::IsNotFound(running.status())) {
    absl::Status none = absl::UnavailableError(
        absl::StrCat("no service runs with ", home.string(),
                     " as its home: start one with `tutti serve`, or say where one is with "
                     "--home or TUTTI_ADDRESS"));
    std::error_code ignored;
    return fs::exists(home / kDatabase, ignored) ? none : NeverThere(std::move(none));
  }
  if (absl::IsDataLoss(running.status())) {
    return absl::UnavailableError(
        absl::StrCat(file.string(), " is not readable: restart the service"));
  }
  TUTTI_RETURN_IF_ERROR(running.status());
  const bool elsewhere = !given.address.empty() && given.address != running->address;
  if (elsewhere && given.token.empty() && running->certificate.empty()) {
    return TokenIsNotFor(given, file, *running);
  }
  const bool of_this_service = given.token.empty() || given.token == running->token ||
                               given.address.empty() || given.address == running->address;
  spec::Endpoint service = *running;
  if (!given.token.empty()) service.token = given.token;
  if (!given.address.empty()) service.address = given.address;
  if (!of_this_service || !given.certificate.empty()) service.certificate = given.certificate;
  return CheckedSecured(service);
}

}  // namespace tutti::client
