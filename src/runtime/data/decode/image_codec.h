// ImageCodec is a kind of images that tutti reads: all that shards, surveys, messages and decoders
// know of it. Each stands in a file of its own, NAME.cc, whose functions nobody else calls, and in
// the list (image_codecs.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/image.h"

namespace tutti::data {

// Reads one image of a kind after the other, and keeps its memory. Not thread-safe: one for each
// thread.
class ImageReader {
 public:
  virtual ~ImageReader() = default;

  // Reads the headers; `encoded` must live until it is decoded. InvalidArgument: larger than the
  // reader was made for, or not read for a reason that the message tells; DataLoss: damaged;
  // FailedPrecondition: this build lacks the kind's library.
  virtual absl::StatusOr<ImageSize> Open(absl::string_view encoded) = 0;

  // Returns the whole opened image as packed RGB, what is transparent left out; the reader's
  // memory, valid until its next call. Once after each Open. Errors as above.
  virtual absl::StatusOr<ImageView> Decode() = 0;

  // Returns the planes of a part of the opened image, `denominator` times smaller; they may hold
  // more. In place of Decode, and as that. By default all is decoded, and split.
  virtual absl::StatusOr<Planes> DecodePlanes(const Region& region, int denominator);
  // Returns what DecodePlanes may divide the image's size by, beside 1.
  virtual int max_denominator() const { return 1; }

 private:
  std::vector<uint8_t> planes_;
};

struct ImageCodec {
  absl::string_view name;                 // "JPEG"
  absl::string_view endings[2];           // of files' names: "jpg", "jpeg"; the second may be ""
  bool (*is)(absl::string_view encoded);  // tells by the first bytes whether it is of this kind
  std::unique_ptr<ImageReader> (*reader)(int64_t max_pixels);
  // Tells whether a file of this kind is named by the second ending; null where it never must be.
  bool (*takes_second_ending)(absl::string_view encoded) = nullptr;
};

// Returns a reader of a kind that is read whole, by two functions that each look at all that was
// encoded: SIZE(encoded, max_pixels), and DECODE(encoded, max_pixels, memory), whose view is of
// `memory`.
template <auto SIZE, auto DECODE>
std::unique_ptr<ImageReader> WholeReader(int64_t max_pixels) {
  class Reader final : public ImageReader {
   public:
    explicit Reader(int64_t max_pixels) : max_pixels_(max_pixels) {}
    absl::StatusOr<ImageSize> Open(absl::string_view encoded) override {
      encoded_ = encoded;
      return SIZE(encoded, max_pixels_);
    }
    absl::StatusOr<ImageView> Decode() override { return DECODE(encoded_, max_pixels_, pixels_); }

   private:
    const int64_t max_pixels_;
    absl::string_view encoded_;
    std::vector<uint8_t> pixels_;
  };
  return std::make_unique<Reader>(max_pixels);
}

// Returns all kinds, in their order.
std::span<const ImageCodec* const> ImageCodecs();

// Returns the kind that these first bytes are of, or null.
const ImageCodec* CodecOf(absl::string_view encoded);

// Returns the ending that a file of this kind is written with, without the dot: "pgm" for a PNM of
// grey levels.
absl::string_view EndingOf(const ImageCodec& codec, absl::string_view encoded);

// Returns whether files of this ending are taken for images; in lower case, without the dot.
bool IsImageExtension(absl::string_view extension);
// Returns ".jpg, .jpeg, .png, … or .webp", for messages.
std::string ImageEndings();
// Returns "JPEG, PNG, … or WebP".
std::string ImageKinds();

}  // namespace tutti::data
