// FillState is how far the fill of a file server has come, for those who ask how the server stands;
// it is kept in HOME/file-servers/NAME/fill.json. Pure except for reading and writing the file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tutti::file_server {

struct FillState {
  std::string from;   // the source's address
  std::string state;  // "filling", "filled", "cut off"
  // They count what the last fill had to bring; once it is filled, all that the source has.
  int64_t files = 0, of_files = 0;
  int64_t bytes = 0, of_bytes = 0;
  int64_t updated = 0;  // seconds since 1970
  // The process that fills, with the time of its start (base::ProcessStartTime).
  pid_t pid = 0;
  uint64_t start_time = 0;
  std::string error;  // of "cut off": why

  bool operator==(const FillState&) const = default;
};

nlohmann::json JsonOf(const FillState& state);
// NotFound if it was never filled. One whose process has ended, as by a kill, is cut off.
absl::StatusOr<FillState> ReadFillState(const std::filesystem::path& folder);
absl::Status WriteFillState(const std::filesystem::path& folder, const FillState& state);

}  // namespace tutti::file_server
