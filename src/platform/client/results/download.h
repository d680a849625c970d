// Downloads a job's files from the service, each whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/connection/views.h"

namespace tutti::client {

// Returns where the file called `path` by the service goes below `directory`. InvalidArgument for a
// path that could lead out of it or name the folder itself: the service is not trusted with our
// disk.
absl::StatusOr<std::filesystem::path> DestinationOf(const std::filesystem::path& directory,
                                                    absl::string_view path);

// Fetches the bytes of a file from the service, piece by piece.
using FetchFile =
    std::function<absl::Status(const std::string& path, http::ChunkCallback on_chunk)>;

// Downloads one file of the job to `target`, whole or not at all: it appears only when all of its
// bytes are on disk and their number is what the service said, unless it changes. `progress` hears
// how many have come.
absl::Status DownloadFile(ServiceClient& service, const std::string& job, const FileView& file,
                          const std::filesystem::path& target,
                          const std::function<void(uint64_t bytes)>& progress);

// Returns whether an error says nothing of other files: the service does not have this one, or its
// name cannot be one of the target's file system, or is that of a folder there.
bool IsOfOneFile(const absl::Status& status);

// Is called after every piece with the bytes so far of this file.
using DownloadProgress = std::function<void(const FileView& file, uint64_t bytes)>;

// Downloads every file below `directory`, each whole or not at all: it appears under its name only
// when all of its bytes are on disk and their number is what the service said. A file that exists
// is replaced. Stops at the first error, which names the file; but an error of one file alone
// (IsOfOneFile) holds up no other: the result has the names of the first five, and the code of the
// first.
absl::Status DownloadFiles(const FetchFile& fetch, const std::vector<FileView>& files,
                           const std::filesystem::path& directory,
                           const DownloadProgress& progress);
// Does the same of a job's files.
absl::Status DownloadFiles(ServiceClient& service, const std::string& job,
                           const std::vector<FileView>& files,
                           const std::filesystem::path& directory,
                           const DownloadProgress& progress);

}  // namespace tutti::client
