// ImageDecoder decodes an image of any kind that tutti reads (JPEG, PNG, PNM), told by its first
// bytes, to pixels or planes. What a file's name says does not matter: one of ImageNet's .JPEG
// files is a PNG.
//
// Used for one image after the other, keeps its memory. Not thread-safe: one for each thread.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/decode/jpeg/jpeg.h"
#include "runtime/data/image.h"

namespace tutti::data {

enum class ImageKind { kJpeg, kPng, kPnm };

class ImageDecoder {
 public:
  // Reads the headers; `encoded` must live until it is decoded. Errors as JpegDecoder's.
  absl::StatusOr<ImageSize> Open(absl::string_view encoded);

  ImageKind kind() const { return kind_; }  // of the opened image
  // Returns what DecodePlanes may divide the image's size by, beside 1: 8 for a JPEG.
  int max_denominator() const { return kind_ == ImageKind::kJpeg ? 8 : 1; }

  // Returns the whole opened image as packed pixels, or the planes of a part of it; the decoder's
  // memory, valid until its next call. One of them, once after each Open. As JpegDecoder's.
  absl::StatusOr<ImageView> Decode();
  absl::StatusOr<Planes> DecodePlanes(const Region& region, int denominator = 1);

 private:
  ImageKind kind_ = ImageKind::kJpeg;
  absl::string_view encoded_;
  ImageSize size_;
  JpegDecoder jpeg_;
  std::vector<uint8_t> pixels_, planes_;
};

}  // namespace tutti::data
