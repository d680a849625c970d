#include "platform/storage/input_request.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/types/identifier.h"

namespace tutti::storage {

PlaceType PlaceTypeOf(const spec::Input& input) {
  if (input.type == "uri_file") return PlaceType::kFile;
  return input.type == "uri_folder" || input.type == "mltable" ? PlaceType::kFolder
                                                               : PlaceType::kAny;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash == std::string::npos ? 0 : slash);
}

namespace {

// The line of a job whose datastore was created anew after the job had been accepted.
std::string Replaced(const spec::DataPlace& place, absl::string_view what) {
  return absl::StrCat("datastore \"", place.datastore,
                      "\" was replaced after the job was submitted: ", what,
                      "; submit the job again");
}

// `use`: "read" or "write to".
absl::Status CheckStore(const spec::DataPlace& place, const Credentials& credentials,
                        absl::string_view use) {
  const std::string store = spec::StoreOf(place);
  if (credentials.store.empty() || credentials.store == store) return absl::OkStatus();
  return absl::FailedPreconditionError(Replaced(
      place,
      absl::StrCat("it is ", credentials.store, " now, and the job is to ", use, " ", store)));
}

// The request with the credentials of its place.
absl::StatusOr<StorageRequest> WithCredentials(StorageRequest request, absl::string_view use,
                                               const std::map<std::string, std::string>& secrets) {
  const spec::DataPlace& place = request.place;
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
  TUTTI_RETURN_IF_ERROR(CheckStore(place, *credentials, use));
  request.credentials = *std::move(credentials);
  return request;
}

// What to do where the store does not let the job; `what`: "read it", "write to it".
std::string AdviceOnCredentials(const std::string& datastore, absl::string_view what) {
  if (!datastore.empty()) {
    return absl::StrCat("; give datastore ", datastore, " credentials that may ", what,
                        ": tutti datastore create --file FILE");
  }
  return "; it was asked for without credentials: make a datastore of it that has them "
         "(tutti datastore create --file FILE)";
}

}  // namespace

absl::StatusOr<StorageRequest> RequestFor(Operation operation, const spec::Input& input,
                                          const std::map<std::string, std::string>& secrets) {
  return WithCredentials(
      {.operation = operation, .place = *input.place, .type = PlaceTypeOf(input)}, "read", secrets);
}

absl::StatusOr<StorageRequest> RequestFor(Operation operation, const spec::Output& output,
                                          absl::string_view job,
                                          const std::map<std::string, std::string>& secrets) {
  StorageRequest request{
      .operation = operation, .place = *output.place, .type = PlaceType::kFolder};
  if (!job.empty()) request.place = spec::PlaceOfJob(std::move(request.place), job);
  if (output.type == "uri_file") request.place.path = FolderOf(request.place.path);
  return WithCredentials(std::move(request), "write to", secrets);
}

std::string InputFault(const spec::Input& input, const absl::Status& status) {
  const std::string& datastore = input.place->datastore;
  std::string advice;
  if (absl::IsPermissionDenied(status)) {
    advice = AdviceOnCredentials(datastore, "read it");
  } else if (absl::IsResourceExhausted(status)) {
    advice = "; delete files there, or have the node keep its data on a larger disk";
  } else if (absl::IsAborted(status)) {
    advice = "; let what writes there end first, then submit the job again";
  }
  return absl::StrCat(status.message(), advice);
}

std::string OutputFault(const spec::Output& output, const absl::Status& status) {
  std::string advice;
  if (absl::IsPermissionDenied(status)) {
    advice = AdviceOnCredentials(output.place->datastore, "write to it");
  } else if (absl::IsNotFound(status)) {
    advice = "; make the container first, or correct the output's path";
  } else if (absl::IsResourceExhausted(status)) {
    advice = "; make room there";
  }
  return absl::StrCat(status.message(), advice);
}

}  // namespace tutti::storage
