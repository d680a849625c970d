#include "runtime/train/setup/source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/train/setup/batch_tensors.h"

namespace tutti::train {
namespace {

class ImageSource final : public Source {
 public:
  ImageSource(data::Loader& loader, ImageSourceOptions options)
      : loader_(loader), options_(std::move(options)) {}

  int64_t steps_per_epoch() const override { return loader_.steps_per_epoch(); }
  int64_t unreadable() const override { return loader_.unreadable(); }

  void Want(int64_t step) override {
    loader_.Want(step / steps_per_epoch(), step % steps_per_epoch());
  }
  absl::StatusOr<parallel::Batch> Next(base::Deadline deadline) override {
    const auto next = loader_.Next(deadline);
    if (!next.ok()) return WithRemark(next.status());
    const data::Batch& batch = *next;
    SetPosition(batch.epoch * steps_per_epoch() + batch.step + 1);
    parallel::Batch made{{}, options_.targets(batch)};
    const torch::Tensor images = ImagesOf(batch, options_.augmentation, options_.bf16);
    if (images.defined()) made.inputs.push_back(images);
    return made;
  }

  parallel::Batch Like(int64_t samples) const override {
    const torch::Tensor images =
        torch::randn({samples, 3, options_.augmentation.height, options_.augmentation.width});
    return {{images.to(options_.bf16 ? torch::kBFloat16 : torch::kFloat32)
                 .contiguous(torch::MemoryFormat::ChannelsLast)},
            {}};
  }

  parallel::State state() override {
    return {{.name = "sampler.position",
             .tensor = position_,
             .part = parallel::StateTensor::Part::kRun,
             .common = true,
             .may_lack = true}};
  }
  void SetPosition(int64_t step) override {
    position()[0] = step / steps_per_epoch();
    position()[1] = step % steps_per_epoch();
  }
  absl::Status Seek() override {
    const int64_t epoch = position()[0], step = position()[1];
    if (epoch < 0 || step < 0 || step >= steps_per_epoch()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the checkpoint's sampler.position, step ", step, " of epoch ", epoch,
                       ", is none of this run's, whose epochs have ", steps_per_epoch(), " steps"));
    }
    loader_.Seek(epoch, step);
    return absl::OkStatus();
  }

 private:
  int64_t* position() const { return position_.mutable_data_ptr<int64_t>(); }
  absl::Status WithRemark(const absl::Status& status) const {
    const bool is_of_an_image = absl::IsDataLoss(status) || absl::IsInvalidArgument(status);
    if (options_.remark.empty() || !is_of_an_image) return status;
    return absl::Status(status.code(), absl::StrCat(status.message(), "; ", options_.remark));
  }

  data::Loader& loader_;
  const ImageSourceOptions options_;
  const torch::Tensor position_ = torch::zeros({2}, torch::kInt64);  // epoch, step in it
};

}  // namespace

std::unique_ptr<Source> MakeImageSource(data::Loader& loader, ImageSourceOptions options) {
  return std::make_unique<ImageSource>(loader, std::move(options));
}

}  // namespace tutti::train
