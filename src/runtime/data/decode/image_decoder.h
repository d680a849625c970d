// ImageDecoder decodes an image of any kind that tutti reads, told by its first bytes, to pixels or
// planes. What a file's name says does not matter: one of ImageNet's .JPEG files is a PNG.
//
// Used for one image after the other, keeps its memory. Not thread-safe: one for each thread.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/decode/image_codec.h"

namespace tutti::data {

class ImageDecoder {
 public:
  // As ImageReader's. InvalidArgument, besides: of none of the kinds.
  absl::StatusOr<ImageSize> Open(absl::string_view encoded);

  const ImageCodec& codec() const { return *codec_; }  // of the opened image
  int max_denominator() const { return reader_->max_denominator(); }

  // Decode the opened image, by its kind's reader. One of them, once after each Open.
  absl::StatusOr<ImageView> Decode() { return reader_->Decode(); }
  absl::StatusOr<Planes> DecodePlanes(const Region& region, int denominator = 1) {
    return reader_->DecodePlanes(region, denominator);
  }

 private:
  const ImageCodec* codec_ = nullptr;
  ImageReader* reader_ = nullptr;
  std::vector<std::pair<const ImageCodec*, std::unique_ptr<ImageReader>>> readers_;  // once needed
};

}  // namespace tutti::data
