// JpegDecoder decodes JPEG to pixels or to planes, and no more than is asked for: a region of the
// image (what lies above it skips the inverse transform, rows below are not read at all), at 1,
// 1/2, 1/4 or 1/8 of its size (the inverse transform computes fewer pixels). libjpeg-turbo reads
// every header, all pixels, and planes of unusual or damaged files; planes of the others
// SequentialReader does.
//
// Who resizes takes planes: brightness and colour as the file holds them, colour at half the
// resolution. Enlarging colour and turning it into red, green and blue is then part of the resize,
// once per pixel of the result instead of once per pixel of the image.
//
// A decoder is used for one image after the other and keeps its memory. Not thread-safe: one for
// each thread. libjpeg's way out of an error, longjmp, never leaves decode/jpeg/jpeg.cc.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/image.h"

namespace tutti::data {

struct DecodedRegion {
  ImageView view;  // the decoder's memory, valid until its next call
  int left = 0;    // where the view's first pixel lies in the (scaled) image
  int top = 0;
  ImageSize full;  // of the whole (scaled) image: ceil(size / denominator)
};

class JpegDecoder {
 public:
  // Who reads planes of the plain kind of JPEG: libjpeg-turbo, or the faster SequentialReader,
  // which leaves to libjpeg-turbo what it does not know for sound. Both give the same bits.
  enum class Reader { kFastest, kLibjpeg };

  // Of a progressive image it allocates about 6 bytes a pixel.
  explicit JpegDecoder(int64_t max_pixels = kMaxPixels, Reader reader = Reader::kFastest);
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Reads the headers. InvalidArgument: no JPEG, too large, a colour space that is none of grey,
  // RGB, YCbCr, CMYK and YCCK; DataLoss: damaged. `encoded` must live until Decode returns.
  absl::StatusOr<ImageSize> Open(absl::string_view encoded);

  // Returns the part of the opened image that covers `region` (in pixels of the full size, inside
  // of it, not empty), as RGB; it may be a little larger than asked, since the compression's blocks
  // are whole. At denominator 1 its pixels have the same bits as those of a full decode. Grey and
  // CMYK images become RGB. DataLoss: damaged or cut short in the part that was read; what libjpeg
  // takes for a corrupt-data warning is an error here. Once after each Open.
  absl::StatusOr<DecodedRegion> Decode(const Region& region, int denominator = 1);

  // Returns the planes of the opened image that make the pixels of `region`, with the samples
  // beside it that enlarging colour looks at; they may hold more. The decoder's memory, valid until
  // its next call. At denominator 1 the samples have the same bits as those of a full decode. CMYK
  // images become RGB planes. Where restart markers allow it (jpeg_pieces.h), rows above and
  // columns beside the region are not read at all. Errors and use as Decode.
  absl::StatusOr<Planes> DecodePlanes(const Region& region, int denominator = 1);

 private:
  struct State;
  absl::Status Failure() const;
  void StartDecoding(int denominator);
  void CropColumns(int left, int right, DecodedRegion& decoded);
  void ReadRows(int top, int bottom, DecodedRegion& decoded);
  absl::StatusOr<Planes> DecodeOpened(const Region& region, int denominator);
  absl::StatusOr<bool> OpenPart(const Region& part);
  absl::Status ShapePlanes(int top, int bottom, Planes& planes);
  void ReadPlanes(int first, int last, const Planes& planes);

  std::unique_ptr<State> state_;
};

}  // namespace tutti::data
