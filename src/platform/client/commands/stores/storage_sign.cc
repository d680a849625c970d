#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/find_service.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/storage/storage_session.h"
#include "platform/client/storage/store_credentials.h"
#include "platform/storage/signing/limited_access.h"
#include "platform/storage/storage_json.h"

namespace tutti::client {
namespace {

struct Signed {
  std::string url;
  absl::Time expires;
};

std::string VariableHere(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<Signed> AskService(Context& context, const std::string& address,
                                  const StorageOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string text,
                         service.SignStorage(address, options.write, options.lasts));
  const auto answer = nlohmann::json::parse(text, nullptr, false);
  if (!answer.is_object() || !answer.contains("url") || !answer["url"].is_string() ||
      !answer.contains("expires") || !answer["expires"].is_number_integer()) {
    return absl::InternalError("the service's answer is no address");
  }
  return Signed{answer["url"].get<std::string>(),
                absl::FromUnixSeconds(answer["expires"].get<int64_t>())};
}

// The service knows itself by no name: it is reached as this command reaches it.
absl::StatusOr<Signed> SignFile(Context& context, StorageSide& side,
                                const StorageOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const Listing listing, side.List(/*recursive=*/false));
  if (!listing.is_file) {
    return absl::InvalidArgumentError(
        absl::StrCat(side.address().text, " is a folder: name one file"));
  }
  TUTTI_ASSIGN_OR_RETURN(const spec::Endpoint endpoint, FindService(context.home));
  TUTTI_ASSIGN_OR_RETURN(
      Signed file,
      AskService(context, absl::StrCat("job:", side.holder(), "/", side.address().path), options));
  const bool has_scheme = absl::StrContains(endpoint.address, "://");
  file.url =
      absl::StrCat(has_scheme ? "" : "http://", absl::StripSuffix(endpoint.address, "/"), file.url);
  if (!endpoint.certificate.empty()) {
    context.err << "the service has a certificate of its own: whoever opens the address must take "
                   "it (curl --cacert)\n";
  }
  return file;
}

// Signs with the credentials that are here; without any the address is public.
absl::StatusOr<Signed> SignHere(Context& context, const StorageAddress& address,
                                const StorageOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const FoundCredentials found,
                         FindCredentials(context.connect, address, options.write, VariableHere));
  const storage::AccessTerms terms{options.write, absl::Now(), options.lasts};
  TUTTI_ASSIGN_OR_RETURN(std::string url,
                         storage::SignedUrl(address.place, found.credentials, terms));
  if (found.credentials.kind == spec::CredentialKind::kNone) {
    context.err << "warning: there are no credentials for it: the address has no signature, and "
                   "serves public data alone\n";
  }
  return Signed{std::move(url), terms.now + terms.lasts};
}

}  // namespace

absl::StatusOr<ExitCode> StorageSign(Context& context, const StorageOptions& options) {
  StorageSession session(context.connect, context.home);
  TUTTI_ASSIGN_OR_RETURN(const auto side, session.Open(options.addresses.front()));
  const StorageAddress& address = side->address();
  absl::StatusOr<Signed> made;
  if (address.is_job()) {
    made = SignFile(context, *side, options);
  } else if (!address.place.secret.empty() && address.sas.empty()) {
    made = AskService(context, address.of_store, options);
  } else {
    made = SignHere(context, address, options);
  }
  TUTTI_RETURN_IF_ERROR(base::Annotate(made.status(), address.text));
  if (options.format != Format::kTable) {
    const nlohmann::json document = {{"url", made->url},
                                     {"expires", absl::ToUnixSeconds(made->expires)}};
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, document.dump(), options.format));
    return ExitCode::kOk;
  }
  context.out << made->url << "\n" << std::flush;
  context.err << "until "
              << absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", made->expires, absl::UTCTimeZone()) << "\n";
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> StorageGrant(Context& context, const StorageOptions& options) {
  if (::isatty(STDOUT_FILENO) != 0) {
    return absl::InvalidArgumentError(
        "storage grant prints credentials, for a program that reads them by a pipe: tutti storage "
        "ls, cp and cat ask for them by themselves");
  }
  StorageSession session(context.connect, context.home);
  TUTTI_ASSIGN_OR_RETURN(const auto side, session.Open(options.addresses.front()));
  const StorageAddress& address = side->address();
  if (address.is_job()) {
    return absl::InvalidArgumentError(
        absl::StrCat(address.text, " lies with the service: tutti storage cp brings it"));
  }
  const auto found = FindCredentials(context.connect, address, /*write=*/false, VariableHere);
  TUTTI_RETURN_IF_ERROR(base::Annotate(found.status(), address.text));
  const bool has_end = found->expires != absl::InfiniteFuture();
  context.out << storage::ToJson(storage::Grant{address.place, found->credentials,
                                                has_end ? absl::ToUnixSeconds(found->expires) : 0})
              << "\n"
              << std::flush;
  return ExitCode::kOk;
}

}  // namespace tutti::client
