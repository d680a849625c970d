#include "runtime/train/checkpoint_saver.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/checkpoint/checkpoint_folder.h"

namespace tutti::train {

absl::Status CheckpointSaver::Save(const checkpoint::CheckpointSources& sources, Need need,
                                   RunReport& report, Timeline& timeline) {
  timeline.Lap();
  checkpoint::CheckpointFolder folder(std::filesystem::path(recipe_.output) / "checkpoints",
                                      static_cast<int>(recipe_.keep_checkpoints));
  const auto saved = folder.Save(sources);
  const double seconds = timeline.Leave(SpanKind::kCheckpoint, sources.step);
  if (saved.ok()) {
    failures_ = 0;
    report.Checkpointed(sources.step, saved->path, saved->bytes, seconds, saved->not_removed);
    return absl::OkStatus();
  }
  report.CheckpointFailed(sources.step, saved.status(), ++failures_);
  if (need == Need::kLast) return saved.status();
  if (failures_ < kMostFailures) return absl::OkStatus();
  return base::Annotate(saved.status(),
                        absl::StrCat(failures_, " checkpoints in a row could not be saved"));
}

}  // namespace tutti::train
