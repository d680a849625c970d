#include "platform/container/registry_answer.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "platform/container/podman.h"
#include "spec/types/registry_secret.h"

namespace tutti::container {
namespace {

using Kind = RegistryAnswer::Kind;

constexpr size_t kLongestError = 300;

template <size_t n>
bool HasOneOf(absl::string_view text, const std::array<absl::string_view, n>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](absl::string_view word) { return absl::StrContains(text, word); });
}

// What another attempt may not meet.
constexpr std::array<absl::string_view, 10> kPassing = {
    "i/o timeout",        "deadline exceeded", "Client.Timeout",  "TLS handshake timeout",
    "server misbehaving", "Temporary failure", "toomanyrequests", "Too Many Requests",
    "status 5",           "unexpected EOF"};
constexpr std::array<absl::string_view, 3> kAbsent = {"manifest unknown", "name unknown",
                                                      "repository not found"};
constexpr std::array<absl::string_view, 4> kClosed = {
    "unauthorized", "authentication required", "access to the resource is denied", "status 403"};
constexpr std::array<absl::string_view, 4> kUnreachable = {
    "connection refused", "no route to host", "network is unreachable", "connection reset"};
constexpr std::array<absl::string_view, 2> kNotTrusted = {"x509:", "HTTP response to HTTPS"};

// Returns the last error of podman's chain of errors, with its cause.
std::string Shortly(absl::string_view words) {
  const std::string error = ErrorIn(words);
  const size_t at = error.rfind("\": ");
  const std::string end = at == std::string::npos ? error : error.substr(at + 3);
  return end.substr(0, kLongestError);
}

// When mirrors have failed, what the registry itself said follows what they said.
absl::string_view OwnWords(absl::string_view words) {
  if (!absl::StrContains(words, "Mirrors also failed")) return words;
  const size_t end = words.rfind("]): ");
  return end == absl::string_view::npos ? words : words.substr(end + 4);
}

}  // namespace

RegistryAnswer AnswerOf(absl::string_view words, absl::string_view full, bool has_login) {
  const std::string host(full.substr(0, full.find('/')));
  if (HasOneOf(words, kPassing)) return {Kind::kNoAnswer, Shortly(words)};
  const absl::string_view own = OwnWords(words);
  if (HasOneOf(own, kAbsent)) return {Kind::kAbsent, "its registry does not have it"};
  if (absl::StrContains(own, "no such host")) {
    return {Kind::kCannot,
            absl::StrCat("there is no host ", host, ": ", Shortly(own),
                         "; correct the name, or say in site.yml which image stands for it")};
  }
  if (HasOneOf(own, kUnreachable)) {
    return {Kind::kCannot, absl::StrCat("registry ", host, " cannot be reached: ", Shortly(own))};
  }
  if (HasOneOf(own, kClosed) && has_login) {
    const std::string secret = spec::SecretOfRegistry(host);
    return {Kind::kRefused,
            absl::StrCat("registry ", host, " does not take the login of secret \"", secret,
                         "\", or has no such image for it: tutti secret set ", secret)};
  }
  if (HasOneOf(own, kClosed)) {
    return {Kind::kCannot,
            absl::StrCat("registry ", host, " does not have it or asks for a login: podman login ",
                         host, ", as the user of the service, or tutti secret set ",
                         spec::SecretOfRegistry(host))};
  }
  if (HasOneOf(own, kNotTrusted)) {
    return {Kind::kCannot, absl::StrCat("registry ", host, " is not trusted: ", Shortly(own))};
  }
  return {};
}

}  // namespace tutti::container
