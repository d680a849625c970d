#include "runtime/train/report/metrics_file.h"

#include <fcntl.h>

#include <string>
#include <utility>

#include "base/file.h"
#include "base/status.h"

namespace tutti::train {

absl::StatusOr<MetricsFile> MetricsFile::Open(const std::vector<std::filesystem::path>& paths,
                                              const base::Clock& clock) {
  MetricsFile metrics(clock);
  for (const auto& path : paths) {
    TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, base::Open(path, O_WRONLY | O_CREAT | O_APPEND));
    metrics.files_.push_back({path, std::move(fd)});
  }
  return metrics;
}

absl::Status MetricsFile::Write(absl::string_view event, nlohmann::json fields) {
  fields["event"] = std::string(event);
  fields["time"] = absl::ToDoubleSeconds(clock_->Now() - absl::UnixEpoch());
  const std::string line = fields.dump() + "\n";
  absl::Status written;
  for (const File& file : files_) {
    written.Update(base::AppendWhole(file.fd.get(), line, file.path.string()));
  }
  return written;
}

}  // namespace tutti::train
