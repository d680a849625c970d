#include "runtime/data/decode/image_decoder.h"

#include "absl/strings/match.h"
#include "base/status.h"
#include "runtime/data/decode/jpeg/planes.h"
#include "runtime/data/decode/png_image.h"
#include "runtime/data/decode/pnm.h"

namespace tutti::data {
namespace {

constexpr int64_t kMaxPixels = JpegDecoder::kMaxPixels;

ImageView Unpack(const Pnm& pnm, std::vector<uint8_t>& memory) {
  const size_t pixels = static_cast<size_t>(pnm.size.width) * static_cast<size_t>(pnm.size.height);
  if (memory.size() < pixels * kBytesPerPixel) memory.resize(pixels * kBytesPerPixel);
  const auto* from = reinterpret_cast<const uint8_t*>(pnm.samples.data());
  const size_t step = static_cast<size_t>(pnm.channels), next = step == 3 ? 1 : 0;
  for (uint8_t* to = memory.data(); to != memory.data() + pixels * kBytesPerPixel;
       to += kBytesPerPixel, from += step) {
    for (size_t c = 0; c < 3; ++c) to[c] = from[c * next];
  }
  return {memory.data(), pnm.size.width, pnm.size.height};
}

}  // namespace

absl::StatusOr<ImageSize> ImageDecoder::Open(absl::string_view encoded) {
  encoded_ = encoded;
  if (absl::StartsWith(encoded, "\x89PNG")) {
    kind_ = ImageKind::kPng;
    TUTTI_ASSIGN_OR_RETURN(size_, SizeOfPng(encoded, kMaxPixels));
  } else if (absl::StartsWith(encoded, "P5") || absl::StartsWith(encoded, "P6")) {
    kind_ = ImageKind::kPnm;
    TUTTI_ASSIGN_OR_RETURN(const Pnm pnm, ParsePnm(encoded, kMaxPixels));
    size_ = pnm.size;
  } else {
    kind_ = ImageKind::kJpeg;
    TUTTI_ASSIGN_OR_RETURN(size_, jpeg_.Open(encoded));
  }
  return size_;
}

absl::StatusOr<ImageView> ImageDecoder::Decode() {
  switch (kind_) {
    case ImageKind::kPng:
      return DecodePng(encoded_, kMaxPixels, pixels_);
    case ImageKind::kPnm: {
      TUTTI_ASSIGN_OR_RETURN(const Pnm pnm, ParsePnm(encoded_, kMaxPixels));
      return Unpack(pnm, pixels_);
    }
    case ImageKind::kJpeg:
      break;
  }
  TUTTI_ASSIGN_OR_RETURN(const DecodedRegion whole,
                         jpeg_.Decode({0, 0, size_.width, size_.height}));
  return whole.view;
}

absl::StatusOr<Planes> ImageDecoder::DecodePlanes(const Region& region, int denominator) {
  if (kind_ == ImageKind::kJpeg) return jpeg_.DecodePlanes(region, denominator);
  TUTTI_ASSIGN_OR_RETURN(const ImageView view, Decode());
  return SplitIntoPlanes(view, 0, 0, size_, planes_);
}

}  // namespace tutti::data
