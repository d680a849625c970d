// Covers: classification_head.cc, segmentation_head.cc, detection_head.cc.
#include "runtime/scoring/heads/output_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstring>

#include "runtime/data/annotation/mask.h"

namespace tutti::scoring {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using torch::Tensor;

std::unique_ptr<const Head> HeadFor(const std::string& task) {
  return *MakeHead({task, {"cat", "dog", "frog"}, /*height=*/2, /*width=*/2});
}

std::vector<float> Floats(const NamedTensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

TEST(Head, IsOneOfThreeTasks) {
  EXPECT_THAT(std::string(MakeHead({"regression", {"a"}, 1, 1}).status().message()),
              HasSubstr("regression is not one of classification, segmentation and detection"));
}

// The contract of all heads: default outputs are among the outputs, each has the shape that was
// announced but for what is free, and names and columns are there.
TEST(Head, GivesWhatItAnnounces) {
  const std::map<std::string, Tensor> outputs = {
      {"classification", torch::randn({3, 3})},
      {"segmentation", torch::randn({3, 3, 2, 2})},
      {"detection", torch::cat({torch::rand({3, 7, 4}), torch::rand({3, 7, 4}).softmax(2)}, 2)}};
  for (const auto& [task, output] : outputs) {
    const auto head = HeadFor(task);
    EXPECT_TRUE(head->Check(output.narrow(0, 0, 1)).ok()) << task;
    const absl::Status wrong = head->Check(torch::zeros({1, 2}));
    EXPECT_THAT(std::string(wrong.message()), HasSubstr("returns [1, 2] and should return"))
        << task;
    const std::vector<Answer> answers = head->Read(output);
    ASSERT_EQ(answers.size(), 3u) << task;
    std::vector<const Answer*> all;
    for (const Answer& answer : answers) all.push_back(&answer);
    const std::vector<data::ImageSize> sizes(3, {10, 20});
    const std::vector<TensorSpec> specs = head->outputs();
    ASSERT_LE(head->default_outputs(), specs.size());
    for (size_t i = 0; i < specs.size(); ++i) {
      const NamedTensor tensor = head->Output(i, all, sizes, 0);
      EXPECT_EQ(tensor.spec.name, specs[i].name);
      ASSERT_EQ(tensor.spec.shape.size(), specs[i].shape.size()) << specs[i].name;
      size_t count = 1;
      for (size_t k = 0; k < specs[i].shape.size(); ++k) {
        count *= static_cast<size_t>(tensor.spec.shape[k]);
        if (specs[i].shape[k] < 0) continue;
        EXPECT_EQ(tensor.spec.shape[k], specs[i].shape[k]);
      }
      const std::map<std::string, size_t> bytes = {{"FP32", 4}, {"INT64", 8}, {"UINT8", 1}};
      if (bytes.count(tensor.spec.datatype) > 0) {
        EXPECT_EQ(tensor.bytes.size(), count * bytes.at(tensor.spec.datatype)) << specs[i].name;
      }
    }
    for (const Row& row : head->Rows(answers[0], {10, 20}, 0)) {
      EXPECT_EQ(row.values.size(), head->columns().size()) << task;
    }
  }
}

TEST(ClassificationHead, RanksTheProbabilities) {
  const auto head = HeadFor("classification");
  const Tensor logits = torch::tensor({{0.0, 2.0, 1.0}}, torch::kFloat32);
  const Answer answer = head->Read(logits)[0];
  const Tensor expected = torch::softmax(logits[0], 0);
  const std::vector<Row> rows = head->Rows(answer, {}, 2);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].label, "dog");
  EXPECT_EQ(rows[1].label, "frog");
  EXPECT_FLOAT_EQ(static_cast<float>(rows[0].values[0]), expected[1].item<float>());
  EXPECT_EQ(head->Rows(answer, {}, 0).size(), 3u) << "five, or as many as there are";
  EXPECT_EQ(head->Png(answer), "");
}

TEST(SegmentationHead, GivesTheLikeliestClassOfEachPixel) {
  const auto head = HeadFor("segmentation");
  Tensor logits = torch::zeros({1, 3, 2, 2});
  logits[0][2][0][0] = 5;
  logits[0][1][1][1] = 5;
  logits[0][2][0][1] = 5;
  const Answer answer = head->Read(logits)[0];
  EXPECT_THAT(answer.mask, ElementsAre(2, 2, 0, 1));
  const std::vector<Row> rows = head->Rows(answer, {}, 0);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].label, "frog");
  EXPECT_EQ(rows[0].values[0], 0.5);
  std::vector<uint8_t> memory;
  const auto mask = data::DecodeMask(head->Png(answer), memory);
  ASSERT_TRUE(mask.ok()) << mask.status();
  EXPECT_EQ(std::vector<uint8_t>(mask->classes, mask->classes + 4), answer.mask);
}

TEST(DetectionHead, LeavesOutBoxesThatRepeatOthers) {
  const auto head = HeadFor("detection");
  // Two that overlap by more than half, one apart, one of nothing.
  const Tensor output = torch::tensor({{{0.0, 0.0, 0.5, 0.5, 0.1, 0.9, 0.0, 0.0},
                                        {0.0, 0.0, 0.5, 0.4, 0.2, 0.8, 0.0, 0.0},
                                        {0.6, 0.6, 1.0, 1.0, 0.3, 0.0, 0.7, 0.0},
                                        {0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0}}},
                                      torch::kFloat32);
  const Answer answer = head->Read(output)[0];
  const std::vector<Row> rows = head->Rows(answer, {200, 100}, 0);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].label, "cat");
  EXPECT_THAT(rows[0].values, ElementsAre(testing::DoubleNear(0.9, 1e-6), 0, 0, 100, 50));
  EXPECT_EQ(rows[1].label, "dog");
  EXPECT_EQ(head->Rows(answer, {200, 100}, 1).size(), 1u);
  const Answer none;
  const std::vector<const Answer*> both = {&answer, &none};
  const std::vector<data::ImageSize> sizes = {{200, 100}, {1, 1}};
  const NamedTensor boxes = head->Output(0, both, sizes, 0);
  EXPECT_THAT(boxes.spec.shape, ElementsAre(2, 2, 4));
  EXPECT_EQ(Floats(boxes)[2], 100);
  EXPECT_EQ(Floats(boxes)[8], 0) << "the other image has none";
}

}  // namespace
}  // namespace tutti::scoring
