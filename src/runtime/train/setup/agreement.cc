#include "runtime/train/setup/agreement.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::train {
namespace {

constexpr std::array<absl::string_view, 11> kMayDiffer = {
    "data",         "weights",     "output", "resume",     "threads",  "workers",
    "step-timeout", "tensorboard", "mlflow", "data-cache", "data-disk"};

// 48 bits: a sum in which all others are zero keeps them.
double Fingerprint(absl::string_view text) {
  const base::Sha256Digest digest = base::Sha256Of(text);
  uint64_t bits = 0;
  for (size_t i = 0; i < 6; ++i) bits = bits << 8 | digest[i];
  return static_cast<double>(bits);
}

std::string Describe(const Recipe& recipe) {
  Recipe copy = recipe;
  std::string text;
  for (const Field& field : FieldsOf(copy)) {
    if (std::find(kMayDiffer.begin(), kMayDiffer.end(), field.name) != kMayDiffer.end()) continue;
    absl::StrAppend(&text, field.name, "=", FieldText(field), "\n");
  }
  return text;
}

// Classes and every label, or the images' names, and their boxes; not pixels and masks, which
// would have to be read.
absl::StatusOr<std::string> Describe(const data::Dataset& images) {
  std::string text = absl::StrCat(absl::StrJoin(images.classes(), "\n"), "\n\n"), scratch;
  if (const std::string parts = images.Fingerprint(); !parts.empty()) return text + parts;
  for (int64_t i = 0; i < images.size(); ++i) {
    if (images.annotations() == data::Annotations::kLabels) {
      absl::StrAppend(&text, images.label(i), " ");
      continue;
    }
    absl::StrAppend(&text, images.Describe(i), "\n");
    if (images.annotations() != data::Annotations::kBoxes) continue;
    TUTTI_ASSIGN_OR_RETURN(const absl::string_view boxes, images.Annotation(i, scratch));
    absl::StrAppend(&text, boxes, "\n");
  }
  return text;
}

// What each rank says of as many subjects, one rank after the other.
absl::Status Compare(const std::vector<double>& said,
                     const std::vector<absl::string_view>& subjects) {
  for (size_t i = subjects.size(); i < said.size(); ++i) {
    const size_t subject = i % subjects.size();
    if (said[i] == said[subject]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", i / subjects.size(), " has ", subjects[subject], " than rank 0"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSameRecipe(const Recipe& recipe, comm::Communicator& group,
                             base::Deadline deadline) {
  const double own = Fingerprint(Describe(recipe));
  std::vector<double> said(static_cast<size_t>(group.size()));
  TUTTI_RETURN_IF_ERROR(group.AllGather(&own, sizeof(own), said.data(), deadline));
  return Compare(said, {"another recipe"});
}

absl::Status CheckSameImages(const Input& input, parallel::Strategy& strategy,
                             absl::Duration timeout) {
  const auto ranks = static_cast<size_t>(strategy.world_size());
  if (ranks == 1) return absl::OkStatus();
  std::vector<double> said(2 * ranks);
  double* const own = &said[2 * static_cast<size_t>(strategy.rank())];
  TUTTI_ASSIGN_OR_RETURN(const std::string training, Describe(*input.train_images));
  TUTTI_ASSIGN_OR_RETURN(const std::string test, Describe(*input.test_images));
  own[0] = Fingerprint(training);
  own[1] = Fingerprint(test);
  TUTTI_RETURN_IF_ERROR(strategy.SumOverRanks(said, base::Deadline::After(timeout)));
  return Compare(said, {"other training images", "other test images"});
}

}  // namespace tutti::train
