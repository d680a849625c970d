#include "platform/service/secrets/storage_access.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "http/client/client.h"
#include "platform/service/results/file_signature.h"
#include "platform/storage/signing/aws_signature.h"
#include "platform/storage/signing/limited_access.h"
#include "platform/storage/signing/session_request.h"
#include "platform/storage/storage_json.h"
#include "spec/data/data_address.h"
#include "spec/data/datastore.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kPatienceWithTokens = absl::Seconds(20);

absl::Status CheckLasts(absl::Duration lasts, absl::Duration shortest, absl::Duration longest) {
  if (lasts >= shortest && lasts <= longest) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("seconds must be from ",
                                                 absl::ToInt64Seconds(shortest), " to ",
                                                 absl::ToInt64Seconds(longest)));
}

// Which credentials a user may bring instead.
absl::Status WithAdvice(const absl::Status& status) {
  return {status.code(),
          absl::StrCat(status.message(),
                       ": set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY where you call, to a key "
                       "of your own")};
}

// Asks the store's token service for keys of the bucket alone.
absl::StatusOr<storage::Credentials> AskForSession(const spec::DataPlace& place,
                                                   const storage::Credentials& key,
                                                   const storage::AccessTerms& terms) {
  TUTTI_ASSIGN_OR_RETURN(storage::SessionRequest request,
                         storage::SessionRequestFor(place, terms.write, terms.lasts));
  http::Client client(absl::StrCat(request.url.scheme, "://", request.url.authority));
  // As the client writes Host.
  if (request.url.authority.find(':') == std::string::npos) {
    absl::StrAppend(&request.url.authority, request.url.scheme == "https" ? ":443" : ":80");
  }
  const auto answer =
      client.Send({.method = "POST",
                   .target = request.url.path,
                   .headers = storage::SignedFormHeaders(request.url, request.form, key,
                                                         {request.region, "sts", terms.now}),
                   .content_type = "application/x-www-form-urlencoded",
                   .body = request.form,
                   .timeout = kPatienceWithTokens});
  TUTTI_RETURN_IF_ERROR(answer.status());
  auto session = storage::SessionFrom(answer->body);
  return session.ok() ? session : WithAdvice(session.status());
}

}  // namespace

absl::StatusOr<StorageAccess::Opened> StorageAccess::Open(const std::string& address) const {
  TUTTI_ASSIGN_OR_RETURN(const spec::Datastores datastores,
                         spec::ReadDatastores(state_.options.directory));
  TUTTI_ASSIGN_OR_RETURN(std::optional<spec::DataPlace> place, spec::PlaceOf(address, datastores));
  if (!place.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", address, "\" is no address of a store: docs/datastores.md has those that are"));
  }
  Opened opened{*std::move(place), {}};
  const std::string& secret = opened.place.secret;
  if (secret.empty()) return opened;
  TUTTI_ASSIGN_OR_RETURN(const SecretValues values, secrets_.ValuesOf({secret}));
  TUTTI_ASSIGN_OR_RETURN(opened.credentials,
                         storage::CredentialsFrom(opened.place.credential, values.at(secret)));
  const std::string store = spec::StoreOf(opened.place);
  if (opened.credentials.store.empty() || opened.credentials.store == store) return opened;
  return absl::FailedPreconditionError(absl::StrCat(
      "the credentials of datastore \"", opened.place.datastore, "\" are for ",
      opened.credentials.store, ", and it is ", store, ": tutti datastore create --file FILE"));
}

absl::StatusOr<StorageGrant> StorageAccess::GrantStorage(const StorageQuestion& question) {
  TUTTI_RETURN_IF_ERROR(CheckLasts(question.lasts, kShortestGrant, kLongestGrant));
  TUTTI_ASSIGN_OR_RETURN(Opened opened, Open(question.address));
  const storage::AccessTerms terms{question.write, state_.clock->Now(), question.lasts};
  TUTTI_ASSIGN_OR_RETURN(std::optional<storage::Credentials> limited,
                         storage::LimitedCredentials(opened.place, opened.credentials, terms));
  if (!limited.has_value()) {
    TUTTI_ASSIGN_OR_RETURN(limited, AskForSession(opened.place, opened.credentials, terms));
  }
  const absl::Time expires = storage::EndOf(*limited, terms);
  return StorageGrant{std::move(opened.place), *std::move(limited), expires};
}

absl::StatusOr<SignedAddress> StorageAccess::SignStorage(const StorageQuestion& question) {
  TUTTI_RETURN_IF_ERROR(CheckLasts(question.lasts, kShortestSignature, kLongestSignature));
  absl::string_view of_job = question.address;
  if (absl::ConsumePrefix(&of_job, "job:")) return SignFile(of_job, question);
  TUTTI_ASSIGN_OR_RETURN(const Opened opened, Open(question.address));
  const storage::AccessTerms terms{question.write, state_.clock->Now(), question.lasts};
  TUTTI_ASSIGN_OR_RETURN(std::string url,
                         storage::SignedUrl(opened.place, opened.credentials, terms));
  return SignedAddress{std::move(url), storage::EndOf(opened.credentials, terms)};
}

absl::StatusOr<SignedAddress> StorageAccess::SignFile(absl::string_view file,
                                                      const StorageQuestion& question) const {
  const size_t slash = file.find('/');
  if (slash == absl::string_view::npos || slash == 0 || slash + 1 == file.size()) {
    return absl::InvalidArgumentError("a job's file is written job:NAME/PATH");
  }
  if (question.write) return absl::InvalidArgumentError("a job's files can be read alone");
  TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record,
                         state_.store->GetJob(file.substr(0, slash)));
  const absl::Time expires = state_.clock->Now() + question.lasts;
  const SignedFile what{record.job.id, record.job.sequence, std::string(file.substr(slash + 1)),
                        absl::ToUnixSeconds(expires)};
  return SignedAddress{SignedFileTarget(state_.options.launcher_key, what), expires};
}

std::string GrantJson(const StorageGrant& grant) {
  return storage::ToJson(
      storage::Grant{grant.place, grant.credentials, absl::ToUnixSeconds(grant.expires)});
}

}  // namespace tutti::service
