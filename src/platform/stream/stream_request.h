// Parses what `tutti-storage stream` is asked: the objects of which place to serve, at which
// socket, out of which cache. Pure functions; thread-safe.
//
//   tutti-storage stream ADDRESS --socket FILE --cache FOLDER [--most-bytes N]
//     [--node NAME --nodes N] [--list FILE]
//
// Credentials come from the variables that the providers' own tools read, or, with "-" for the
// address, in a request on standard input: on no command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/storage/storage_request.h"

namespace tutti::stream {

using Environment = std::map<std::string, std::string>;

struct StreamRequest {
  std::string address;  // "-": the place is on standard input
  std::filesystem::path socket, cache;
  std::optional<uint64_t> most_bytes;  // on the disk; else most of what is free
  // For a cache on a disk that a job's nodes share: this node's name, and how many nodes there are.
  // Each keeps what it reads under a key of its own, and has a part of the limit.
  std::string node;
  uint64_t nodes = 1;
  // A list of the place (storage/transfer/kept_list.h); empty, or a file that cannot be read: the
  // place is listed.
  std::filesystem::path list;
};

// Reads what follows "stream" on the command line. InvalidArgument says what is missing or unknown.
absl::StatusOr<StreamRequest> ParseStreamRequest(const std::vector<std::string>& arguments);

// Returns the place that an address names, a folder or a file, with the credentials that the
// variables have: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; AZURE_STORAGE_KEY,
// AZURE_STORAGE_SAS_TOKEN, or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET; without
// them it is public. The server is that of AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or
// AZURE_STORAGE_SERVICE_ENDPOINT, the region that of AWS_REGION or AWS_DEFAULT_REGION.
// "file:///FOLDER" is a folder of this machine. InvalidArgument: it is no address of a store, or a
// datastore, whose credentials the service alone has; says what to do.
absl::StatusOr<storage::StorageRequest> RequestOfAddress(absl::string_view address,
                                                         const Environment& environment);

}  // namespace tutti::stream
