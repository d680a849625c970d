// A kind of images that tests alone read: "RAW", width and height, a byte each, then R, G, B.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/data/decode/image_codec.h"

namespace tutti::data {
namespace {

constexpr size_t kRawHeader = 5;

bool IsRaw(absl::string_view encoded) { return absl::StartsWith(encoded, "RAW"); }

absl::StatusOr<ImageSize> SizeOfRaw(absl::string_view encoded, int64_t max_pixels) {
  const auto side = [&](size_t at) {
    return at < encoded.size() ? static_cast<uint8_t>(encoded[at]) : 0;
  };
  const ImageSize size{side(3), side(4)};
  const int64_t pixels = int64_t{size.width} * size.height;
  if (pixels > max_pixels) return absl::InvalidArgumentError("a RAW image too large");
  if (static_cast<int64_t>(encoded.size()) != static_cast<int64_t>(kRawHeader) + 3 * pixels) {
    return absl::DataLossError(absl::StrCat("damaged RAW: ", encoded.size(), " bytes"));
  }
  return size;
}

absl::StatusOr<ImageView> DecodeRaw(absl::string_view encoded, int64_t max_pixels,
                                    std::vector<uint8_t>& memory) {
  const auto size = SizeOfRaw(encoded, max_pixels);
  if (!size.ok()) return size.status();
  memory.clear();
  for (size_t at = kRawHeader; at < encoded.size(); at += 3) {
    memory.insert(memory.end(), encoded.begin() + at, encoded.begin() + at + 3);
    memory.push_back(0);
  }
  return ImageView{memory.data(), size->width, size->height};
}

}  // namespace

extern const ImageCodec kPngCodec;
constexpr ImageCodec kRawCodec = {"RAW", {"raw", ""}, IsRaw, WholeReader<SizeOfRaw, DecodeRaw>};

// This program's list, in the place of decode/image_codecs.cc.
std::span<const ImageCodec* const> ImageCodecs() {
  static constexpr const ImageCodec* kCodecs[] = {&kPngCodec, &kRawCodec};
  return kCodecs;
}

}  // namespace tutti::data
