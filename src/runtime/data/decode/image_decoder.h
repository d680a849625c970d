// ImageDecoder decodes an image of any kind that tutti reads, told by its first bytes, to pixels or
// planes. What a file's name says does not matter: one of ImageNet's .JPEG files is a PNG.
//
// Used for one image after the other, keeps its memory. Not thread-safe: one for each thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/decode/jpeg/jpeg.h"
#include "runtime/data/image.h"

namespace tutti::data {

// A kind of images that tutti reads. The table of them in image_decoder.cc is all that shards,
// surveys and messages know of kinds: a codec is its reader and one row there.
struct ImageCodec {
  absl::string_view name;                 // "JPEG"
  absl::string_view endings[2];           // of files' names: "jpg", "jpeg"; the second may be ""
  bool (*is)(absl::string_view encoded);  // tells by the first bytes whether it is of this kind
  // These are as SizeOfPng and DecodePng; null for JPEG alone, whose reader keeps state
  // (JpegDecoder).
  absl::StatusOr<ImageSize> (*size)(absl::string_view encoded, int64_t max_pixels);
  absl::StatusOr<ImageView> (*decode)(absl::string_view encoded, int64_t max_pixels,
                                      std::vector<uint8_t>& memory);
  // Tells whether a file of this kind is named by the second ending; null where it never must be.
  bool (*takes_second_ending)(absl::string_view encoded) = nullptr;
};

// Returns all kinds, in their order.
std::span<const ImageCodec> ImageCodecs();

// Returns the ending that a file of this kind is written with, without the dot: "pgm" for a PNM of
// grey levels.
absl::string_view EndingOf(const ImageCodec& codec, absl::string_view encoded);

// Returns whether files of this ending are taken for images; in lower case, without the dot.
bool IsImageExtension(absl::string_view extension);
// Returns ".jpg, .jpeg, .png, … or .webp", for messages.
std::string ImageEndings();

class ImageDecoder {
 public:
  // Reads the headers; `encoded` must live until it is decoded. Errors as JpegDecoder's;
  // InvalidArgument: of no kind in the table; FailedPrecondition: of a kind whose library this
  // build lacks.
  absl::StatusOr<ImageSize> Open(absl::string_view encoded);

  const ImageCodec& codec() const { return *codec_; }  // of the opened image
  // Returns what DecodePlanes may divide the image's size by, beside 1: 8 for a JPEG.
  int max_denominator() const { return is_jpeg() ? 8 : 1; }

  // Returns the whole opened image as packed pixels, or the planes of a part of it; the decoder's
  // memory, valid until its next call. One of them, once after each Open. As JpegDecoder's.
  absl::StatusOr<ImageView> Decode();
  absl::StatusOr<Planes> DecodePlanes(const Region& region, int denominator = 1);

 private:
  bool is_jpeg() const { return codec_->decode == nullptr; }

  const ImageCodec* codec_ = ImageCodecs().data();
  absl::string_view encoded_;
  ImageSize size_;
  JpegDecoder jpeg_;
  std::vector<uint8_t> pixels_, planes_;
};

}  // namespace tutti::data
