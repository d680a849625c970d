// Reads a model that lies on this machine, and sends its files to the service, which keeps each
// once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/client/connection/service_client.h"

namespace tutti::client {

struct LocalModelFile {
  std::string path;            // in the model
  std::filesystem::path file;  // here
  std::string sha256;          // of its bytes, hexadecimal
  uint64_t bytes = 0;
};

struct LocalModel {
  bool is_file = false;
  std::vector<LocalModelFile> files;  // by path
  uint64_t bytes = 0;
};

// Finds the files of a model, a folder or a file, and reads all of them. Links to files are taken
// as these. InvalidArgument for what cannot be sent: a link to a folder, a socket, a name that is
// not UTF-8; NotFound if there is nothing at `path`.
absl::StatusOr<LocalModel> ReadLocalModel(const std::filesystem::path& path);

// Sends the files that the service does not have; `sent` is told of each, before it goes.
absl::Status SendModel(ServiceClient& service, const LocalModel& model,
                       const std::function<void(const LocalModelFile& file)>& sent);

}  // namespace tutti::client
