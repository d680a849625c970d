#include "platform/file_server/fill_state.h"

#include "base/process/child_process.h"
#include "base/status.h"
#include "platform/file_server/state_file.h"

namespace tutti::file_server {
namespace {

std::filesystem::path FillFile(const std::filesystem::path& folder) { return folder / "fill.json"; }

}  // namespace

nlohmann::json JsonOf(const FillState& state) {
  return {{"from", state.from},         {"state", state.state}, {"files", state.files},
          {"of_files", state.of_files}, {"bytes", state.bytes}, {"of_bytes", state.of_bytes},
          {"updated", state.updated},   {"pid", state.pid},     {"start_time", state.start_time},
          {"error", state.error}};
}

absl::StatusOr<FillState> ReadFillState(const std::filesystem::path& folder) {
  TUTTI_ASSIGN_OR_RETURN(const nlohmann::json document, ReadStateFile(FillFile(folder)));
  FillState state;
  TakeField(document, "from", state.from);
  TakeField(document, "state", state.state);
  TakeField(document, "files", state.files);
  TakeField(document, "of_files", state.of_files);
  TakeField(document, "bytes", state.bytes);
  TakeField(document, "of_bytes", state.of_bytes);
  TakeField(document, "updated", state.updated);
  TakeField(document, "pid", state.pid);
  TakeField(document, "start_time", state.start_time);
  TakeField(document, "error", state.error);
  if (state.state != "filling") return state;
  const auto started = base::ProcessStartTime(state.pid);
  if (!started.ok() || *started != state.start_time) {
    state.state = "cut off";
    state.error = "its process has ended: the same command goes on";
  }
  return state;
}

absl::Status WriteFillState(const std::filesystem::path& folder, const FillState& state) {
  return WriteStateFile(FillFile(folder), JsonOf(state));
}

}  // namespace tutti::file_server
