#include "absl/strings/match.h"
#include "base/status.h"
#include "runtime/data/decode/image_codec.h"
#include "runtime/data/decode/jpeg/jpeg.h"

namespace tutti::data {
namespace {

class JpegReader final : public ImageReader {
 public:
  explicit JpegReader(int64_t max_pixels) : decoder_(max_pixels) {}

  absl::StatusOr<ImageSize> Open(absl::string_view encoded) override {
    TUTTI_ASSIGN_OR_RETURN(size_, decoder_.Open(encoded));
    return size_;
  }
  absl::StatusOr<ImageView> Decode() override {
    TUTTI_ASSIGN_OR_RETURN(const DecodedRegion whole,
                           decoder_.Decode({0, 0, size_.width, size_.height}));
    return whole.view;
  }
  absl::StatusOr<Planes> DecodePlanes(const Region& region, int denominator) override {
    return decoder_.DecodePlanes(region, denominator);
  }
  int max_denominator() const override { return 8; }

 private:
  JpegDecoder decoder_;
  ImageSize size_;
};

bool IsJpeg(absl::string_view encoded) { return absl::StartsWith(encoded, "\xFF\xD8\xFF"); }

std::unique_ptr<ImageReader> MakeJpegReader(int64_t max_pixels) {
  return std::make_unique<JpegReader>(max_pixels);
}

}  // namespace

extern const ImageCodec kJpegCodec;
const ImageCodec kJpegCodec = {"JPEG", {"jpg", "jpeg"}, IsJpeg, MakeJpegReader};

}  // namespace tutti::data
