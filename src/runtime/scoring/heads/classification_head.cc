// Classification: [n, classes] logits become probabilities by softmax.
#include <torch/types.h>

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/scoring/heads/output_head.h"

namespace tutti::scoring {
namespace {

constexpr int kTop = 5;

class ClassificationHead final : public Head {
 public:
  explicit ClassificationHead(HeadSpec spec) : classes_(std::move(spec.classes)) {}

  absl::Status Check(const at::Tensor& output) const override {
    const auto classes = static_cast<int64_t>(classes_.size());
    if (output.dim() == 2 && output.size(0) == 1 && output.size(1) == classes) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("for one image it returns [", absl::StrJoin(output.sizes(), ", "),
                     "] and should return [1, ", classes, "], a logit a class"));
  }

  std::vector<Answer> Read(const at::Tensor& output) const override {
    const torch::Tensor all = torch::softmax(output, 1, torch::kFloat32).contiguous();
    std::vector<Answer> answers(static_cast<size_t>(all.size(0)));
    const auto classes = static_cast<size_t>(all.size(1));
    const float* from = all.const_data_ptr<float>();
    for (Answer& answer : answers) {
      answer.scores.assign(from, from + classes);
      from += classes;
    }
    return answers;
  }

  std::vector<TensorSpec> outputs() const override {
    return {{"classes", "BYTES", {-1, -1}},
            {"probabilities", "FP32", {-1, -1}},
            {"scores", "FP32", {-1, static_cast<int64_t>(classes_.size())}}};
  }
  size_t default_outputs() const override { return 2; }

  NamedTensor Output(size_t index, std::span<const Answer* const> answers,
                     std::span<const data::ImageSize> images, int top) const override {
    NamedTensor tensor{outputs()[index], ""};
    const size_t count = index == 2 ? classes_.size() : Count(top);
    tensor.spec.shape = {static_cast<int64_t>(answers.size()), static_cast<int64_t>(count)};
    for (const Answer* answer : answers) {
      if (index == 2) {
        for (const float score : answer->scores) AppendValue(score, tensor.bytes);
        continue;
      }
      for (const size_t label : Best(*answer, count)) {
        if (index == 0) {
          AppendText(classes_[label], tensor.bytes);
        } else {
          AppendValue(answer->scores[label], tensor.bytes);
        }
      }
    }
    return tensor;
  }

  absl::string_view rows_name() const override { return "predictions"; }
  std::vector<Column> columns() const override { return {{"probability", true}}; }
  std::vector<Row> Rows(const Answer& answer, data::ImageSize image, int top) const override {
    std::vector<Row> rows;
    for (const size_t label : Best(answer, Count(top))) {
      rows.push_back({classes_[label], {answer.scores[label]}});
    }
    return rows;
  }

 private:
  size_t Count(int top) const {
    return std::min(static_cast<size_t>(top > 0 ? top : kTop), classes_.size());
  }
  // Of equals the one with the lower label comes first.
  static std::vector<size_t> Best(const Answer& answer, size_t count) {
    std::vector<size_t> labels(answer.scores.size());
    std::iota(labels.begin(), labels.end(), size_t{0});
    const auto end = labels.begin() + static_cast<std::ptrdiff_t>(count);
    std::partial_sort(labels.begin(), end, labels.end(), [&](size_t a, size_t b) {
      return answer.scores[a] != answer.scores[b] ? answer.scores[a] > answer.scores[b] : a < b;
    });
    labels.erase(end, labels.end());
    return labels;
  }

  const std::vector<std::string> classes_;
};

}  // namespace

std::unique_ptr<const Head> MakeClassificationHead(HeadSpec spec) {
  return std::make_unique<ClassificationHead>(std::move(spec));
}

}  // namespace tutti::scoring
