#include "runtime/scoring/scorer.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/data/decode/image_codec.h"
#include "runtime/data/source/image_files.h"

namespace tutti::scoring {
namespace {

constexpr size_t kFilesInABatch = 32;
constexpr uint64_t kMaxImageBytes = uint64_t{256} << 20;

absl::StatusOr<data::ImageSize> Load(TrainedModel& model, const std::string& file, float* pixels) {
  TUTTI_ASSIGN_OR_RETURN(const std::string encoded, base::ReadFile(file, kMaxImageBytes));
  const auto size = model.Decode(encoded, pixels);
  if (!size.ok()) return base::Annotate(size.status(), file);
  return size;
}

void ScoreBatch(TrainedModel& model, std::span<FileScore> scores, int top, bool mirrored) {
  std::vector<std::vector<float>> pixels;
  std::vector<const float*> images;
  std::vector<data::ImageSize> sizes;
  std::vector<FileScore*> readable;
  for (FileScore& score : scores) {
    std::vector<float> values(model.values());
    const auto size = Load(model, score.file, values.data());
    score.status = size.status();
    if (!size.ok()) continue;
    pixels.push_back(std::move(values));
    images.push_back(pixels.back().data());
    sizes.push_back(*size);
    readable.push_back(&score);
  }
  if (readable.empty()) return;
  const auto answers = mirrored ? model.RunMirrored(images) : model.Run(images);
  for (size_t i = 0; i < readable.size(); ++i) {
    FileScore& score = *readable[i];
    score.status = base::Annotate(answers[i].status, score.file);
    if (!score.status.ok()) continue;
    score.rows = model.head().Rows(answers[i], sizes[i], top);
    score.mask = model.head().Png(answers[i]);
  }
}

}  // namespace

absl::StatusOr<FilesToScore> FindFilesToScore(std::span<const std::string> paths) {
  FilesToScore found;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      found.files.push_back(path);
      continue;
    }
    data::LeftOutFiles left_out;
    TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> images,
                           data::ImagesBelow(path, "", left_out));
    for (const std::string& image : images) {
      found.files.push_back((std::filesystem::path(path) / image).string());
    }
    for (std::string& remark : left_out.Remarks()) {
      found.remarks.push_back(absl::StrCat(path, ": ", remark));
    }
    if (images.empty()) {
      return absl::NotFoundError(
          absl::StrCat(path, " has no images: files that end in ", data::ImageEndings()));
    }
  }
  return found;
}

std::vector<FileScore> ScoreFiles(TrainedModel& model, std::span<const std::string> files, int top,
                                  bool mirrored) {
  std::vector<FileScore> scores(files.size());
  for (size_t i = 0; i < files.size(); ++i) scores[i].file = files[i];
  for (size_t i = 0; i < scores.size(); i += kFilesInABatch) {
    const size_t count = std::min(kFilesInABatch, scores.size() - i);
    ScoreBatch(model, std::span(scores).subspan(i, count), top, mirrored);
  }
  return scores;
}

}  // namespace tutti::scoring
