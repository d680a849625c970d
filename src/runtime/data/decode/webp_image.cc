// Reads WebP by libwebp, where the build has it. What is transparent is left out; of an animation
// the first image is taken.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/data/decode/image_codec.h"

#ifdef TUTTI_HAS_WEBP
#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>
#include <memory>
#endif

namespace tutti::data {
namespace {

bool IsWebp(absl::string_view encoded) {
  return absl::StartsWith(encoded, "RIFF") && encoded.size() >= 12 &&
         encoded.substr(8, 4) == "WEBP";
}

#ifdef TUTTI_HAS_WEBP

const uint8_t* BytesOf(absl::string_view encoded) {
  return reinterpret_cast<const uint8_t*>(encoded.data());
}

absl::Status DamagedWebp() { return absl::DataLossError("damaged WebP: libwebp can not read it"); }

absl::StatusOr<WebPBitstreamFeatures> ReadFeatures(absl::string_view encoded, int64_t max_pixels) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(BytesOf(encoded), encoded.size(), &features) != VP8_STATUS_OK) {
    return DamagedWebp();
  }
  if (int64_t{features.width} * features.height > max_pixels) {
    return absl::InvalidArgumentError(absl::StrCat("a WebP image of ", features.width, "x",
                                                   features.height, " pixels; the most is ",
                                                   max_pixels));
  }
  return features;
}

bool DecodeFirstOfAnimation(absl::string_view encoded, ImageSize size, uint8_t* pixels) {
  const WebPData data{BytesOf(encoded), encoded.size()};
  const std::unique_ptr<WebPAnimDecoder, void (*)(WebPAnimDecoder*)> decoder(
      WebPAnimDecoderNew(&data, nullptr), WebPAnimDecoderDelete);
  WebPAnimInfo info;
  uint8_t* canvas = nullptr;
  int time = 0;
  if (decoder == nullptr || WebPAnimDecoderGetInfo(decoder.get(), &info) == 0 ||
      ImageSize{static_cast<int>(info.canvas_width), static_cast<int>(info.canvas_height)} !=
          size ||
      WebPAnimDecoderGetNext(decoder.get(), &canvas, &time) == 0) {
    return false;
  }
  std::memcpy(pixels, canvas, size_t{info.canvas_width} * info.canvas_height * kBytesPerPixel);
  return true;
}

absl::StatusOr<ImageSize> SizeOfWebp(absl::string_view encoded, int64_t max_pixels) {
  TUTTI_ASSIGN_OR_RETURN(const WebPBitstreamFeatures features, ReadFeatures(encoded, max_pixels));
  return ImageSize{features.width, features.height};
}

absl::StatusOr<ImageView> DecodeWebp(absl::string_view encoded, int64_t max_pixels,
                                     std::vector<uint8_t>& memory) {
  TUTTI_ASSIGN_OR_RETURN(const WebPBitstreamFeatures features, ReadFeatures(encoded, max_pixels));
  const int stride = features.width * kBytesPerPixel;
  const size_t bytes = static_cast<size_t>(stride) * static_cast<size_t>(features.height);
  if (memory.size() < bytes) memory.resize(bytes);
  const bool decoded =
      features.has_animation != 0
          ? DecodeFirstOfAnimation(encoded, {features.width, features.height}, memory.data())
          : WebPDecodeRGBAInto(BytesOf(encoded), encoded.size(), memory.data(), bytes, stride) !=
                nullptr;
  if (!decoded) return DamagedWebp();
  return ImageView{memory.data(), features.width, features.height};
}

#else

absl::Status WithoutWebp() {
  return absl::FailedPreconditionError(
      "a WebP image, and this tutti was built without libwebp: install libwebp-dev where it is "
      "built and build it anew, or convert the image to PNG");
}

absl::StatusOr<ImageSize> SizeOfWebp(absl::string_view, int64_t) { return WithoutWebp(); }

absl::StatusOr<ImageView> DecodeWebp(absl::string_view, int64_t, std::vector<uint8_t>&) {
  return WithoutWebp();
}

#endif

}  // namespace

extern const ImageCodec kWebpCodec;
const ImageCodec kWebpCodec = {"WebP", {"webp", ""}, IsWebp, WholeReader<SizeOfWebp, DecodeWebp>};

}  // namespace tutti::data
