#include "platform/storage/signing/limited_access.h"

#include <algorithm>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "platform/storage/signing/aws_signature.h"
#include "platform/storage/signing/azure_sas.h"
#include "platform/storage/signing/object_url.h"

namespace tutti::storage {
namespace {

absl::Status OfPrincipal() {
  return absl::FailedPreconditionError(
      "what a service principal may do cannot be given away for a limited time: set "
      "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET here, or give the datastore an "
      "account_key or a sas_token");
}

// Returns the value of a field, as it is written; "" if the signature has none.
absl::string_view FieldOf(absl::string_view sas, absl::string_view name) {
  absl::ConsumePrefix(&sas, "?");
  for (absl::string_view field : absl::StrSplit(sas, '&')) {
    if (absl::ConsumePrefix(&field, name) && absl::ConsumePrefix(&field, "=")) return field;
  }
  return "";
}

}  // namespace

absl::Time EndOf(const Credentials& credentials, const AccessTerms& terms) {
  const absl::Time asked = terms.now + terms.lasts;
  if (credentials.kind != spec::CredentialKind::kSas) return asked;
  const std::string end =
      absl::StrReplaceAll(FieldOf(credentials.sas, "se"), {{"%3A", ":"}, {"%3a", ":"}});
  for (const char* format : {absl::RFC3339_full, "%Y-%m-%dT%H:%MZ", "%Y-%m-%d"}) {
    absl::Time time;
    if (absl::ParseTime(format, end, &time, nullptr)) return std::min(asked, time);
  }
  return asked;
}

absl::StatusOr<std::optional<Credentials>> LimitedCredentials(const spec::DataPlace& place,
                                                              const Credentials& credentials,
                                                              const AccessTerms& terms) {
  Credentials limited;
  switch (credentials.kind) {
    case spec::CredentialKind::kNone:
      return limited;
    case spec::CredentialKind::kSas:
      limited = credentials;
      limited.store.clear();
      return limited;
    case spec::CredentialKind::kAccountKey: {
      limited.kind = spec::CredentialKind::kSas;
      TUTTI_ASSIGN_OR_RETURN(limited.sas,
                             AzureSas(place, credentials.account_key,
                                      {.write = terms.write, .expires = terms.now + terms.lasts}));
      return limited;
    }
    case spec::CredentialKind::kAccessKey:
      if (place.kind != spec::StoreKind::kGcs) return std::nullopt;
      return absl::FailedPreconditionError(
          "Google's storage makes no keys for a limited time of an HMAC key: set GS_ACCESS_KEY_ID "
          "and GS_SECRET_ACCESS_KEY here");
    case spec::CredentialKind::kServicePrincipal:
      break;
  }
  return OfPrincipal();
}

absl::StatusOr<std::string> SignedUrl(const spec::DataPlace& place, const Credentials& credentials,
                                      const AccessTerms& terms) {
  if (place.path.empty()) {
    return absl::InvalidArgumentError("it is a whole container: name one object");
  }
  TUTTI_ASSIGN_OR_RETURN(const ObjectUrl url, UrlOf(place));
  switch (credentials.kind) {
    case spec::CredentialKind::kNone:
      return url.WithQuery("");
    case spec::CredentialKind::kSas:
      if (FieldOf(credentials.sas, "sr") != "b") {
        return absl::FailedPreconditionError(
            "the shared access signature opens more than this object, and whoever got the address "
            "would have all of it: give the datastore an account_key, of which a signature of one "
            "object is made");
      }
      return url.WithQuery(absl::StripPrefix(credentials.sas, "?"));
    case spec::CredentialKind::kAccountKey: {
      TUTTI_ASSIGN_OR_RETURN(
          const std::string sas,
          AzureSas(place, credentials.account_key,
                   {.write = terms.write, .one_object = true, .expires = terms.now + terms.lasts}));
      return url.WithQuery(sas);
    }
    case spec::CredentialKind::kAccessKey: {
      const std::string usual = place.kind == spec::StoreKind::kGcs ? "auto" : "us-east-1";
      const AwsScope scope{place.region.empty() ? usual : place.region, "s3", terms.now};
      return PresignedUrl(terms.write ? "PUT" : "GET", url, credentials, scope, terms.lasts);
    }
    case spec::CredentialKind::kServicePrincipal:
      break;
  }
  return OfPrincipal();
}

}  // namespace tutti::storage
