#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/data/annotation/annotation.h"
#include "runtime/data/augment/geometry.h"
#include "runtime/data/augment/mix.h"
#include "runtime/data/loader.h"
#include "runtime/data/prefetch/prefetch_loader.h"

namespace tutti::data {
namespace {

constexpr int kMaxGlobalBatch = 1 << 20;
constexpr int kMaxThreads = 256;
constexpr int kMaxPrefetch = 256;

absl::Status CheckRange(absl::string_view name, int value, int least, int most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("loader: ", name, " is ", value, "; allowed are ", least, " to ", most));
}

absl::Status CheckLabelsOnly(const Dataset& dataset, const LoaderOptions& options) {
  if (!options.labels_only) return absl::OkStatus();
  if (dataset.annotations() != Annotations::kLabels) {
    return absl::InvalidArgumentError(absl::StrCat(
        "loader: labels_only is for images with labels, not with ", NameOf(dataset.annotations())));
  }
  if (options.max_unreadable > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("loader: max_unreadable is ", options.max_unreadable,
                     "; with labels_only it must be 0, as nobody sees which images are replaced"));
  }
  return absl::OkStatus();
}

absl::Status Validate(const Dataset& dataset, const LoaderOptions& options) {
  TUTTI_RETURN_IF_ERROR(CheckRange("global_batch", options.global_batch, 1, kMaxGlobalBatch));
  TUTTI_RETURN_IF_ERROR(CheckRange("world_size", options.world_size, 1, options.global_batch));
  TUTTI_RETURN_IF_ERROR(CheckRange("rank", options.rank, 0, options.world_size - 1));
  TUTTI_RETURN_IF_ERROR(CheckRange("threads", options.threads, 0, kMaxThreads));
  TUTTI_RETURN_IF_ERROR(CheckRange("prefetch", options.prefetch, 1, kMaxPrefetch));
  if (options.max_unreadable < 0) {
    return absl::InvalidArgumentError("loader: max_unreadable is below 0");
  }
  TUTTI_RETURN_IF_ERROR(CheckLabelsOnly(dataset, options));
  TUTTI_RETURN_IF_ERROR(Validate(options.augmentation));
  TUTTI_RETURN_IF_ERROR(Validate(options.mixing));
  if (options.mixing.any() && dataset.annotations() != Annotations::kLabels) {
    return absl::InvalidArgumentError(
        "loader: only images with labels are mixed, not those with masks or boxes");
  }
  if (dataset.size() == 0) return absl::InvalidArgumentError("loader: the dataset is empty");
  if (options.drop_last && dataset.size() < options.global_batch) {
    return absl::InvalidArgumentError(
        absl::StrCat("loader: ", dataset.size(), " samples make no batch of ", options.global_batch,
                     "; take a smaller global_batch or drop_last = false"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Loader>> MakeLoader(std::shared_ptr<const Dataset> dataset,
                                                   const LoaderOptions& options) {
  TUTTI_RETURN_IF_ERROR(Validate(*dataset, options));
  return std::make_unique<PrefetchLoader>(std::move(dataset), options);
}

}  // namespace tutti::data
