// RawImages is a dataset of images of one size that lie in memory as bare pixels; it gives them as
// PNM.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/source/shard_bytes.h"

namespace tutti::data {

class RawImages final : public Dataset {
 public:
  struct Image {
    const char* samples;  // in one of the files
    int32_t label;
    uint32_t file;    // for Describe
    uint32_t number;  // in that file
  };
  // Planar: all of one colour, then the next; else pixel by pixel.
  struct Shape {
    int width, height, channels;
    bool planar;
    size_t bytes() const { return static_cast<size_t>(width * height * channels); }
  };

  explicit RawImages(Shape shape) : shape_(shape) {}

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  int64_t label(int64_t index) const override { return at(index).label; }
  absl::StatusOr<absl::string_view> Encoded(int64_t index, std::string& scratch) const override;
  // Returns "data_batch_2.bin:17".
  std::string Describe(int64_t index) const override;

  // Keeps the file; its number, for images.
  uint32_t AddFile(std::string name, ShardBytes bytes);
  absl::string_view file(uint32_t number) const { return files_.at(number).second.view(); }
  void Add(const Image& image) { images_.push_back(image); }
  void SetClasses(std::vector<std::string> classes) { classes_ = std::move(classes); }
  const std::vector<Image>& images() const { return images_; }

 private:
  const Image& at(int64_t index) const { return images_.at(static_cast<size_t>(index)); }

  const Shape shape_;
  std::vector<std::pair<std::string, ShardBytes>> files_;
  std::vector<Image> images_;
  std::vector<std::string> classes_;
};

// Returns "0", "1", … for classes that have no names.
std::vector<std::string> NumberedClasses(int64_t count);

}  // namespace tutti::data
