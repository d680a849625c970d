#include "platform/storage/input_request.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/storage/storage_fault.h"
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

// Returns the line of a job whose datastore was created anew after the job had been accepted.
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

// Returns the request with the credentials of its place.
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

// Returns what to do where the store does not permit `what`: "read it", "write to it".
std::string AdviceOnCredentials(const std::string& datastore, absl::string_view what) {
  if (!datastore.empty()) {
    return absl::StrCat("; give datastore ", datastore, " credentials that may ", what,
                        ": tutti datastore create --file FILE");
  }
  return "; it was asked for without credentials: make a datastore of it that has them "
         "(tutti datastore create --file FILE)";
}

// Returns what to do about a file of the node that could not be put.
std::string AdviceOnFile(const absl::Status& status) {
  if (absl::IsPermissionDenied(status)) return "; let the job keep its files readable";
  if (absl::IsAborted(status))
    return "; end what writes to it, or write another file and rename it";
  return "";
}

// Returns advice by the source of the error: only an error of the store can be fixed at the store.
std::string AdviceOnOutput(const spec::Output& output, const absl::Status& status) {
  const FaultSource source = SourceOf(status);
  if (source == FaultSource::kNone) return "";
  if (source == FaultSource::kDisk) return AdviceOnFile(status);
  if (absl::IsInvalidArgument(status) && !ObjectOf(status).empty()) {
    return "; have the job write it under another name";
  }
  const bool is_folder = output.place->kind == spec::StoreKind::kLocal;
  if (absl::IsPermissionDenied(status) && is_folder) {
    return "; let the user that runs the job write to that folder, on every node";
  }
  if (absl::IsPermissionDenied(status)) {
    return AdviceOnCredentials(output.place->datastore, "write to it");
  }
  if (absl::IsNotFound(status) && is_folder) return "; mount the folder on every node, or make it";
  if (absl::IsNotFound(status)) return "; make the container first, or correct the output's path";
  if (absl::IsResourceExhausted(status)) return "; make room there";
  return "";
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

std::string EarlierFault(const spec::Output& output, const absl::Status& status) {
  if (absl::IsNotFound(status)) return OutputFault(output, status);
  std::string advice;
  if (absl::IsPermissionDenied(status)) {
    advice = AdviceOnCredentials(output.place->datastore, "read it");
  } else if (absl::IsResourceExhausted(status)) {
    advice = "; make room on the node";
  } else if (absl::IsAborted(status)) {
    advice = "; let what writes there end first";
  } else if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    advice = "; submit the job again once it can be reached";
  }
  return absl::StrCat(status.message(), advice, advice.empty() ? "; " : ", or ",
                      "give the output mode: upload, which begins empty");
}

std::string OutputFault(const spec::Output& output, const absl::Status& status) {
  return absl::StrCat(status.message(), AdviceOnOutput(output, status));
}

}  // namespace tutti::storage
