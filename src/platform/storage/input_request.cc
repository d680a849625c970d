#include "platform/storage/input_request.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/types/identifier.h"

namespace tutti::storage {

PlaceType PlaceTypeOf(const spec::Input& input) {
  if (input.type == "uri_file") return PlaceType::kFile;
  return input.type == "uri_folder" || input.type == "mltable" ? PlaceType::kFolder
                                                               : PlaceType::kAny;
}

namespace {

// The line of a job whose datastore was created anew after the job had been accepted.
std::string Replaced(const spec::DataPlace& place, absl::string_view what) {
  return absl::StrCat("datastore \"", place.datastore,
                      "\" was replaced after the job was submitted: ", what,
                      "; submit the job again");
}

absl::Status CheckStore(const spec::DataPlace& place, const Credentials& credentials) {
  const std::string store = spec::StoreOf(place);
  if (credentials.store.empty() || credentials.store == store) return absl::OkStatus();
  return absl::FailedPreconditionError(Replaced(
      place, absl::StrCat("it is ", credentials.store, " now, and the job is to read ", store)));
}

}  // namespace

absl::StatusOr<StorageRequest> RequestFor(Operation operation, const spec::Input& input,
                                          const std::map<std::string, std::string>& secrets) {
  const spec::DataPlace& place = *input.place;
  StorageRequest request{.operation = operation, .place = place, .type = PlaceTypeOf(input)};
  if (place.secret.empty()) return request;
  const auto value = secrets.find(place.secret);
  if (value == secrets.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the service has not sent secret \"", place.secret, "\""));
  }
  auto credentials = CredentialsFrom(place.credential, value->second);
  if (!credentials.ok()) {
    const std::string why =
        absl::StrCat("secret \"", place.secret, "\": ", credentials.status().message());
    return absl::FailedPreconditionError(
        spec::IsDatastoreSecret(place.secret) ? Replaced(place, why) : why);
  }
  TUTTI_RETURN_IF_ERROR(CheckStore(place, *credentials));
  request.credentials = *std::move(credentials);
  return request;
}

std::string InputFault(const spec::Input& input, const absl::Status& status) {
  const std::string& datastore = input.place->datastore;
  std::string advice;
  if (absl::IsPermissionDenied(status)) {
    advice =
        datastore.empty()
            ? "; it was asked for without credentials: make a datastore of it that has them "
              "(tutti datastore create --file FILE)"
            : absl::StrCat("; give datastore ", datastore,
                           " credentials that may read it: tutti datastore create --file FILE");
  } else if (absl::IsResourceExhausted(status)) {
    advice = "; delete files there, or have the node keep its data on a larger disk";
  } else if (absl::IsAborted(status)) {
    advice = "; let what writes there end first, then submit the job again";
  }
  return absl::StrCat(status.message(), advice);
}

}  // namespace tutti::storage
