// Detection: [n, boxes, 4 + 1 + classes] as tasks::Detection::Answer gives it becomes the boxes
// that are likely and repeat no other.
#include <torch/types.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/scoring/heads/output_head.h"
#include "runtime/tasks/detection.h"

namespace tutti::scoring {
namespace {

class DetectionHead final : public Head {
 public:
  explicit DetectionHead(HeadSpec spec) : classes_(std::move(spec.classes)) {}

  absl::Status Check(const at::Tensor& output) const override {
    const auto values = static_cast<int64_t>(4 + 1 + classes_.size());
    if (output.dim() == 3 && output.size(0) == 1 && output.size(2) == values) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "for one image it returns [", absl::StrJoin(output.sizes(), ", "),
        "] and should return [1, boxes, ", values,
        "]: left, top, right, bottom, then the probabilities of nothing and of each class"));
  }

  std::vector<Answer> Read(const at::Tensor& output) const override {
    std::vector<Answer> answers;
    for (int64_t i = 0; i < output.size(0); ++i) {
      const tasks::Detections found = tasks::Detect(output[i]);
      const torch::Tensor boxes = found.boxes.contiguous(), scores = found.scores.contiguous();
      const torch::Tensor labels = found.classes.to(torch::kInt32).contiguous();
      const auto count = static_cast<size_t>(scores.numel());
      Answer& answer = answers.emplace_back();
      answer.scores.assign(scores.const_data_ptr<float>(), scores.const_data_ptr<float>() + count);
      answer.labels.assign(labels.const_data_ptr<int32_t>(),
                           labels.const_data_ptr<int32_t>() + count);
      answer.boxes.assign(boxes.const_data_ptr<float>(), boxes.const_data_ptr<float>() + 4 * count);
    }
    return answers;
  }

  std::vector<TensorSpec> outputs() const override {
    return {{"boxes", "FP32", {-1, -1, 4}},
            {"classes", "BYTES", {-1, -1}},
            {"scores", "FP32", {-1, -1}},
            {"counts", "INT64", {-1}}};
  }
  size_t default_outputs() const override { return 4; }

  // Every image has as many places as the one with the most boxes; those without one are zeros.
  NamedTensor Output(size_t index, std::span<const Answer* const> answers,
                     std::span<const data::ImageSize> images, int top) const override {
    NamedTensor tensor{outputs()[index], ""};
    size_t most = 0;
    for (const Answer* answer : answers) most = std::max(most, Count(*answer, top));
    tensor.spec.shape[0] = static_cast<int64_t>(answers.size());
    if (tensor.spec.shape.size() > 1) tensor.spec.shape[1] = static_cast<int64_t>(most);
    for (size_t i = 0; i < answers.size(); ++i) {
      const Answer& answer = *answers[i];
      const size_t count = Count(answer, top);
      if (index == 3) AppendValue(static_cast<int64_t>(count), tensor.bytes);
      if (index == 3) continue;
      for (size_t k = 0; k < most; ++k) {
        const bool is_there = k < count;
        if (index == 1) {
          AppendText(is_there ? classes_[static_cast<size_t>(answer.labels[k])] : "", tensor.bytes);
        } else if (index == 2) {
          AppendValue(is_there ? answer.scores[k] : 0.0f, tensor.bytes);
        } else {
          for (size_t side = 0; side < 4; ++side) {
            AppendValue(is_there ? Pixels(answer, k, side, images[i]) : 0.0f, tensor.bytes);
          }
        }
      }
    }
    return tensor;
  }

  absl::string_view rows_name() const override { return "boxes"; }
  std::vector<Column> columns() const override {
    return {{"score", true}, {"left"}, {"top"}, {"right"}, {"bottom"}};
  }
  std::vector<Row> Rows(const Answer& answer, data::ImageSize image, int top) const override {
    std::vector<Row> rows;
    for (size_t k = 0; k < Count(answer, top); ++k) {
      Row row{classes_[static_cast<size_t>(answer.labels[k])], {answer.scores[k]}};
      for (size_t side = 0; side < 4; ++side) row.values.push_back(Pixels(answer, k, side, image));
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  static size_t Count(const Answer& answer, int top) {
    return top <= 0 ? answer.scores.size()
                    : std::min(static_cast<size_t>(top), answer.scores.size());
  }
  static float Pixels(const Answer& answer, size_t box, size_t side, data::ImageSize image) {
    return answer.boxes[4 * box + side] *
           static_cast<float>(side % 2 == 0 ? image.width : image.height);
  }

  const std::vector<std::string> classes_;
};

}  // namespace

std::unique_ptr<const Head> MakeDetectionHead(HeadSpec spec) {
  return std::make_unique<DetectionHead>(std::move(spec));
}

}  // namespace tutti::scoring
