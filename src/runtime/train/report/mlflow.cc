#include "runtime/train/report/mlflow.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::train {
namespace {

namespace fs = std::filesystem;

// The shortest text that is read back as the same number.
std::string Number(double value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

// A metric without a value, or half a one, would be an error of every reader of the run.
absl::Status Append(const fs::path& path, absl::string_view line) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(path.parent_path()));
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd, base::Open(path, O_WRONLY | O_CREAT | O_APPEND));
  const off_t before = ::lseek(fd.get(), 0, SEEK_END);
  absl::Status written = base::AppendWhole(fd.get(), line, path.string());
  if (!written.ok() && before == 0) ::unlink(path.c_str());
  return written;
}

absl::StatusOr<std::optional<fs::path>> RunToGoOnIn(const MlflowTarget& target,
                                                    const Recipe& recipe, const fs::path& kept) {
  if (!target.run_id.empty()) {
    auto named = FindMlflowRun(target.store, target.run_id);
    if (named) return named;
    return absl::NotFoundError(absl::StrCat("MLFLOW_RUN_ID: ", target.store.string(),
                                            " has no run ", target.run_id,
                                            ": name one that it has, or none for a new one"));
  }
  if (recipe.resume == "no") return std::nullopt;
  const auto id = base::ReadFile(kept);
  if (!id.ok()) return std::nullopt;
  return FindMlflowRun(target.store, std::string(absl::StripAsciiWhitespace(*id)));
}

}  // namespace

std::string MlflowName(absl::string_view tag) {
  std::string name(tag);
  for (char& c : name) {
    const bool allowed = absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                         absl::string_view("_/.- :").find(c) != absl::string_view::npos;
    if (!allowed) c = '_';
  }
  return name;
}

absl::StatusOr<MlflowRun> MlflowRun::Open(const MlflowTarget& target, const Recipe& recipe,
                                          const base::Clock& clock) {
  const fs::path kept = fs::path(recipe.output) / "mlflow-run";
  TUTTI_ASSIGN_OR_RETURN(std::optional<fs::path> folder, RunToGoOnIn(target, recipe, kept));
  if (folder) {
    TUTTI_RETURN_IF_ERROR(SetMlflowStatus(*folder, MlflowStatus::kRunning, clock.Now()));
  } else {
    TUTTI_ASSIGN_OR_RETURN(const fs::path experiment, MlflowExperiment(target, clock.Now()));
    TUTTI_ASSIGN_OR_RETURN(folder, MakeMlflowRun(experiment, recipe.model, clock.Now()));
  }
  MlflowRun run(*folder, clock);
  TUTTI_RETURN_IF_ERROR(run.WriteParams(recipe));
  const std::string id = folder->filename();
  TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(kept, absl::StrCat(id, "\n")));
  return run;
}

absl::Status MlflowRun::WriteParams(const Recipe& recipe) {
  for (const auto& [name, text] : FieldTexts(recipe)) {
    const fs::path path = folder_ / "params" / name;
    std::error_code error;
    if (fs::exists(path, error)) continue;
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(path.parent_path()));
    TUTTI_RETURN_IF_ERROR(base::ReplaceFile(path, text));
  }
  return absl::OkStatus();
}

absl::Status MlflowRun::Write(int64_t step, std::span<const Scalar> scalars) {
  const int64_t now = absl::ToUnixMillis(clock_->Now());
  for (const Scalar& scalar : scalars) {
    TUTTI_RETURN_IF_ERROR(Append(folder_ / "metrics" / MlflowName(scalar.tag),
                                 absl::StrCat(now, " ", Number(scalar.value), " ", step, "\n")));
  }
  return absl::OkStatus();
}

}  // namespace tutti::train
