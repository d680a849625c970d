#include "runtime/data/decode/image_decoder.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/data/decode/bmp.h"
#include "runtime/data/decode/jpeg/planes.h"
#include "runtime/data/decode/png_image.h"
#include "runtime/data/decode/pnm.h"
#include "runtime/data/decode/tiff_image.h"
#include "runtime/data/decode/webp_image.h"

namespace tutti::data {
namespace {

constexpr int64_t kMaxPixels = JpegDecoder::kMaxPixels;

absl::StatusOr<ImageSize> SizeOfPnm(absl::string_view encoded, int64_t max_pixels) {
  TUTTI_ASSIGN_OR_RETURN(const Pnm pnm, ParsePnm(encoded, max_pixels));
  return pnm.size;
}

absl::StatusOr<ImageView> DecodePnm(absl::string_view encoded, int64_t max_pixels,
                                    std::vector<uint8_t>& memory) {
  TUTTI_ASSIGN_OR_RETURN(const Pnm pnm, ParsePnm(encoded, max_pixels));
  const size_t pixels = static_cast<size_t>(pnm.size.width) * static_cast<size_t>(pnm.size.height);
  if (memory.size() < pixels * kBytesPerPixel) memory.resize(pixels * kBytesPerPixel);
  const auto* from = reinterpret_cast<const uint8_t*>(pnm.samples.data());
  const size_t step = static_cast<size_t>(pnm.channels), next = step == 3 ? 1 : 0;
  for (uint8_t* to = memory.data(); to != memory.data() + pixels * kBytesPerPixel;
       to += kBytesPerPixel, from += step) {
    for (size_t c = 0; c < 3; ++c) to[c] = from[c * next];
  }
  return ImageView{memory.data(), pnm.size.width, pnm.size.height};
}

bool IsPnm(absl::string_view encoded) {
  return absl::StartsWith(encoded, "P5") || absl::StartsWith(encoded, "P6");
}

bool IsGreyPnm(absl::string_view encoded) { return absl::StartsWith(encoded, "P5"); }

// Tells classic and big TIFF, of both orders of bytes.
bool IsTiff(absl::string_view encoded) {
  const absl::string_view start = encoded.substr(0, 4);
  return start == absl::string_view("II*\0", 4) || start == absl::string_view("MM\0*", 4) ||
         start == absl::string_view("II+\0", 4) || start == absl::string_view("MM\0+", 4);
}

constexpr ImageCodec kCodecs[] = {
    {"JPEG",
     {"jpg", "jpeg"},
     [](absl::string_view encoded) { return absl::StartsWith(encoded, "\xFF\xD8"); },
     nullptr,
     nullptr},
    {"PNG",
     {"png", ""},
     [](absl::string_view encoded) { return absl::StartsWith(encoded, "\x89PNG"); },
     SizeOfPng,
     DecodePng},
    {"PNM", {"ppm", "pgm"}, IsPnm, SizeOfPnm, DecodePnm, IsGreyPnm},
    {"BMP",
     {"bmp", ""},
     [](absl::string_view encoded) { return absl::StartsWith(encoded, "BM"); },
     SizeOfBmp,
     DecodeBmp},
    {"TIFF", {"tif", "tiff"}, IsTiff, SizeOfTiff, DecodeTiff},
    {"WebP",
     {"webp", ""},
     [](absl::string_view encoded) {
       return absl::StartsWith(encoded, "RIFF") && encoded.size() >= 12 &&
              encoded.substr(8, 4) == "WEBP";
     },
     SizeOfWebp,
     DecodeWebp},
};

// Returns what a message calls a file of a known kind that is not read.
absl::string_view UnreadKindOf(absl::string_view encoded) {
  if (absl::StartsWith(encoded, "GIF8")) return "a GIF image";
  const absl::string_view brand = encoded.substr(std::min<size_t>(4, encoded.size()), 8);
  if (brand == "ftypheic" || brand == "ftypmif1") return "a HEIC image";
  return brand == "ftypavif" ? "an AVIF image" : "";
}

}  // namespace

std::span<const ImageCodec> ImageCodecs() { return kCodecs; }

absl::string_view EndingOf(const ImageCodec& codec, absl::string_view encoded) {
  const bool second = codec.takes_second_ending != nullptr && codec.takes_second_ending(encoded);
  return codec.endings[second ? 1 : 0];
}

bool IsImageExtension(absl::string_view extension) {
  return !extension.empty() &&
         std::any_of(std::begin(kCodecs), std::end(kCodecs), [&](const auto& codec) {
           return extension == codec.endings[0] || extension == codec.endings[1];
         });
}

std::string ImageEndings() {
  std::vector<absl::string_view> endings;
  for (const ImageCodec& codec : kCodecs) {
    for (const absl::string_view ending : codec.endings) {
      if (!ending.empty()) endings.push_back(ending);
    }
  }
  std::string text;
  for (const absl::string_view& ending : endings) {
    const bool last = &ending == &endings.back();
    absl::StrAppend(&text, text.empty() ? "" : last ? " or " : ", ", ".", ending);
  }
  return text;
}

absl::StatusOr<ImageSize> ImageDecoder::Open(absl::string_view encoded) {
  encoded_ = encoded;
  const auto* const codec = std::find_if(std::begin(kCodecs), std::end(kCodecs),
                                         [&](const ImageCodec& one) { return one.is(encoded); });
  if (codec == std::end(kCodecs)) return NotAJpeg(encoded, UnreadKindOf(encoded));
  codec_ = codec;
  TUTTI_ASSIGN_OR_RETURN(size_,
                         is_jpeg() ? jpeg_.Open(encoded) : codec_->size(encoded, kMaxPixels));
  return size_;
}

absl::StatusOr<ImageView> ImageDecoder::Decode() {
  if (!is_jpeg()) return codec_->decode(encoded_, kMaxPixels, pixels_);
  TUTTI_ASSIGN_OR_RETURN(const DecodedRegion whole,
                         jpeg_.Decode({0, 0, size_.width, size_.height}));
  return whole.view;
}

absl::StatusOr<Planes> ImageDecoder::DecodePlanes(const Region& region, int denominator) {
  if (is_jpeg()) return jpeg_.DecodePlanes(region, denominator);
  TUTTI_ASSIGN_OR_RETURN(const ImageView view, Decode());
  return SplitIntoPlanes(view, 0, 0, size_, planes_);
}

}  // namespace tutti::data
