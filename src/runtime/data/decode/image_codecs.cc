// The list of what tutti reads. It stands alone, so that a program with a list of its own links
// that (another_codec/).
#include "runtime/data/decode/image_codec.h"

namespace tutti::data {

extern const ImageCodec kJpegCodec, kPngCodec, kPnmCodec, kBmpCodec, kTiffCodec, kWebpCodec;

std::span<const ImageCodec* const> ImageCodecs() {
  static constexpr const ImageCodec* kCodecs[] = {&kJpegCodec, &kPngCodec,  &kPnmCodec,
                                                  &kBmpCodec,  &kTiffCodec, &kWebpCodec};
  return kCodecs;
}

}  // namespace tutti::data
