// What is wrong with a file, gathered as it is read, so that a user mends all of it at once. Inside
// the room spec only. Not thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tutti::spec {

class Diagnostics {
 public:
  explicit Diagnostics(absl::string_view file_name) : file_name_(file_name) {}

  void Error(int line, absl::string_view message);
  void Warning(int line, absl::string_view message);

  // "FILE:LINE: message" of each, by line; the first 20 and how many more there are.
  absl::Status status(absl::StatusCode code = absl::StatusCode::kInvalidArgument) const;
  std::vector<std::string> warnings() const;

 private:
  using Messages = std::vector<std::pair<int, std::string>>;
  std::vector<std::string> Sorted(Messages messages) const;

  const std::string file_name_;
  Messages errors_;
  Messages warnings_;
};

}  // namespace tutti::spec
