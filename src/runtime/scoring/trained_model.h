// TrainedModel is a network with what its folder says of it: images in, answers out. No libtorch in
// this header.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/image.h"
#include "runtime/scoring/heads/output_head.h"

namespace tutti::scoring {

// Servable is what batches are made for: a model, or a fake of one in tests. Thread-safe.
class Servable {
 public:
  virtual ~Servable() = default;
  // Returns how many values an image has: height * width * 3.
  virtual size_t values() const = 0;
  // Decodes an image, resizes and normalises it as the model's training did, into values() fp32
  // values, [height, width, 3]. Returns the size that it had. Errors say what the image is not.
  virtual absl::StatusOr<data::ImageSize> Decode(absl::string_view encoded, float* pixels) = 0;
  // Returns an answer for each of these images, of values() values.
  virtual std::vector<Answer> Run(std::span<const float* const> images) = 0;
};

struct ModelFacts {
  std::string task;
  std::string platform;              // "tutti", "torchscript"
  std::string precision;             // "fp32", "bf16"
  std::string precision_why;         // why it was taken; empty where it was named
  std::vector<std::string> classes;  // by label
  int64_t height = 0, width = 0;     // of its input
};

class TrainedModel final : public Servable {
 public:
  // Opens a folder that tutti-train wrote (docs/formats/checkpoint.md), of which every byte is
  // verified, or one with TorchScript and model.yml (foreign_model.h). Errors name the file that is
  // wrong, and the remedy where there is one.
  //
  // `precision`: "fp32", "bf16" (convolutions and linear layers in bfloat16) or "auto": fp32 of
  // what was trained in it or by others, else what is fastest on this processor. bf16 that it
  // emulates is warned of.
  static absl::StatusOr<std::unique_ptr<TrainedModel>> Open(const std::filesystem::path& path,
                                                            absl::string_view precision);
  ~TrainedModel() override;

  const ModelFacts& facts() const;
  const Head& head() const;

  size_t values() const override;
  absl::StatusOr<data::ImageSize> Decode(absl::string_view encoded, float* pixels) override;
  std::vector<Answer> Run(std::span<const float* const> images) override;
  // Answers by the mean of the outputs for an image and for its mirror image.
  std::vector<Answer> RunMirrored(std::span<const float* const> images);

 private:
  struct Loaded;
  explicit TrainedModel(std::unique_ptr<Loaded> loaded);
  const std::unique_ptr<Loaded> loaded_;
};

}  // namespace tutti::scoring
