#include <gmock/gmock.h>

#include "absl/strings/escaping.h"
#include "runtime/data/decode/image_codec.h"

namespace tutti::data {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMostOfWebp = 1 << 20;

// As libwebp wrote them: (200, 100, 50) half transparent beside (0, 255, 7), without loss.
constexpr char kStill[] =
    "5249464622000000574542505650384c150000002f010000100ff0b2ff41fec1ca03ff230d19d1ff"
    "0000";
// The same as the first of two images.
constexpr char kAnimation[] =
    "524946469000000057454250565038580a00000012000000010000000000414e494d060000000000"
    "00000000414e4d4630000000000000000000010000000000280000025650384c170000002f010000"
    "100f70b2cde3205fa6fa7f80a1850a44f43f0000414e4d462c000000000000000000010000000000"
    "280000005650384c140000002f01000000075081540820000a9afec78888fe07";

class WebpImageTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status status = reader_->Open(absl::HexStringToBytes(kStill)).status();
    if (absl::IsFailedPrecondition(status)) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("install libwebp-dev"));
      GTEST_SKIP() << "built without libwebp";
    }
  }
  const ImageCodec& codec_ = *CodecOf(absl::HexStringToBytes(kStill));
  const std::unique_ptr<ImageReader> reader_ = codec_.reader(kMostOfWebp);
};

TEST_F(WebpImageTest, PixelsAreAsTheyWereWrittenWithoutTransparency) {
  const std::string encoded = absl::HexStringToBytes(kStill);
  EXPECT_EQ(*reader_->Open(encoded), (ImageSize{2, 1}));
  const auto view = reader_->Decode();
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(std::vector<int>(view->pixels, view->pixels + 3), (std::vector<int>{200, 100, 50}));
  EXPECT_EQ(std::vector<int>(view->pixels + 4, view->pixels + 7), (std::vector<int>{0, 255, 7}));
}

TEST_F(WebpImageTest, OfAnAnimationTheFirstImageIsTaken) {
  const std::string encoded = absl::HexStringToBytes(kAnimation);
  EXPECT_EQ(*reader_->Open(encoded), (ImageSize{2, 1}));
  const auto view = reader_->Decode();
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(std::vector<int>(view->pixels + 4, view->pixels + 7), (std::vector<int>{0, 255, 7}));
}

TEST_F(WebpImageTest, DamageAndSizeAreErrors) {
  for (const char* hex : {kStill, kAnimation}) {
    const std::string encoded = absl::HexStringToBytes(hex);
    for (size_t length = 0; length < 40; ++length) {
      const std::string part = encoded.substr(0, length);
      const absl::Status opened = reader_->Open(part).status();
      EXPECT_TRUE(absl::IsDataLoss(opened.ok() ? reader_->Decode().status() : opened)) << length;
    }
    EXPECT_EQ(codec_.reader(1)->Open(encoded).status(),
              absl::InvalidArgumentError("a WebP image of 2x1 pixels; the most is 1"));
  }
}

}  // namespace
}  // namespace tutti::data
