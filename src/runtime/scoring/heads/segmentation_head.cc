// Segmentation: [n, classes, height, width] logits become the likeliest class of each pixel.
#include <torch/types.h>

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/data/annotation/mask.h"
#include "runtime/scoring/heads/output_head.h"

namespace tutti::scoring {
namespace {

class SegmentationHead final : public Head {
 public:
  explicit SegmentationHead(HeadSpec spec) : spec_(std::move(spec)) {}

  absl::Status Check(const at::Tensor& output) const override {
    const std::vector<int64_t> expected = {1, static_cast<int64_t>(spec_.classes.size()),
                                           spec_.height, spec_.width};
    if (output.sizes() == expected) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "for one image it returns [", absl::StrJoin(output.sizes(), ", "), "] and should return [",
        absl::StrJoin(expected, ", "), "], a logit for each class of each pixel"));
  }

  std::vector<Answer> Read(const at::Tensor& output) const override {
    const torch::Tensor all = output.argmax(1).to(torch::kUInt8).contiguous();
    const auto pixels = static_cast<size_t>(spec_.height * spec_.width);
    std::vector<Answer> answers(static_cast<size_t>(all.size(0)));
    const uint8_t* from = all.const_data_ptr<uint8_t>();
    for (Answer& answer : answers) {
      answer.mask.assign(from, from + pixels);
      from += pixels;
    }
    return answers;
  }

  std::vector<TensorSpec> outputs() const override {
    return {{"mask", "UINT8", {-1, spec_.height, spec_.width}}};
  }
  size_t default_outputs() const override { return 1; }
  NamedTensor Output(size_t index, std::span<const Answer* const> answers,
                     std::span<const data::ImageSize> images, int top) const override {
    NamedTensor tensor{outputs()[index], ""};
    tensor.spec.shape[0] = static_cast<int64_t>(answers.size());
    for (const Answer* answer : answers) {
      tensor.bytes.append(answer->mask.begin(), answer->mask.end());
    }
    return tensor;
  }

  absl::string_view rows_name() const override { return "classes"; }
  std::vector<Column> columns() const override { return {{"share", true}}; }
  // The classes that the mask has, by their share of its pixels.
  std::vector<Row> Rows(const Answer& answer, data::ImageSize image, int top) const override {
    std::vector<int64_t> counts(spec_.classes.size());
    for (const uint8_t label : answer.mask) ++counts[label];
    std::vector<Row> rows;
    for (size_t label = 0; label < counts.size(); ++label) {
      if (counts[label] == 0) continue;
      rows.push_back(
          {spec_.classes[label],
           {static_cast<double>(counts[label]) / static_cast<double>(answer.mask.size())}});
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.values[0] > b.values[0]; });
    if (top > 0 && rows.size() > static_cast<size_t>(top)) rows.resize(static_cast<size_t>(top));
    return rows;
  }
  std::string Png(const Answer& answer) const override {
    return data::EncodeMask(
        {answer.mask.data(), {static_cast<int>(spec_.width), static_cast<int>(spec_.height)}});
  }

 private:
  const HeadSpec spec_;
};

}  // namespace

std::unique_ptr<const Head> MakeSegmentationHead(HeadSpec spec) {
  return std::make_unique<SegmentationHead>(std::move(spec));
}

}  // namespace tutti::scoring
