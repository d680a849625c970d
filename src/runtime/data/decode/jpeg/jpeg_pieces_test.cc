// Covers: jpeg_transcode.cc, runtime/data/image.h.
#include "runtime/data/decode/jpeg/jpeg_pieces.h"

#include <gtest/gtest.h>

#include "runtime/data/decode/jpeg/jpeg.h"
#include "runtime/data/decode/jpeg/jpeg_fake.h"
#include "runtime/data/decode/jpeg/planes_fake.h"

namespace tutti::data {
namespace {

std::vector<uint8_t> PixelsOf(absl::string_view jpeg) {
  JpegDecoder decoder;
  const ImageSize size = *decoder.Open(jpeg);
  const ImageView view = decoder.Decode({0, 0, size.width, size.height})->view;
  return {view.pixels, view.pixels + size_t(view.width) * size_t(view.height) * kBytesPerPixel};
}

TEST(JpegPieces, RewritingLosesNothing) {
  for (const JpegOptions& options : {JpegOptions{.width = 97, .height = 61},
                                     {.width = 97, .height = 61, .subsample = false},
                                     {.width = 97, .height = 61, .progressive = true},
                                     {.width = 97, .height = 61, .components = 1}}) {
    const std::string jpeg = EncodePattern(options);
    const auto pieces = CutIntoPieces(jpeg);
    ASSERT_TRUE(pieces.ok()) << pieces.status();
    EXPECT_EQ(PixelsOf(*pieces), PixelsOf(jpeg));
    EXPECT_TRUE(JpegPieces().Open(*pieces));
    EXPECT_FALSE(JpegPieces().Open(jpeg));
  }
  EXPECT_FALSE(CutIntoPieces(EncodePattern({.components = 4})).ok());
  EXPECT_FALSE(CutIntoPieces("GIF89a").ok());
  const std::string jpeg = EncodePattern({.width = 97, .height = 61});
  EXPECT_TRUE(absl::IsDataLoss(CutIntoPieces(jpeg.substr(0, jpeg.size() / 2)).status()));
}

TEST(JpegPieces, APartHasTheSamplesOfTheWhole) {
  for (const JpegOptions& options : {JpegOptions{.width = 203, .height = 150},
                                     {.width = 203, .height = 150, .subsample = false},
                                     {.width = 203, .height = 150, .components = 1},
                                     {.width = 16 * 11, .height = 40}}) {
    const std::string jpeg = EncodePattern(options), pieces = *CutIntoPieces(jpeg);
    for (const int denominator : {1, 2, 4, 8}) {
      for (const Region& region : {Region{0, 0, options.width, options.height},
                                   {0, 0, 1, 1},
                                   {options.width - 1, options.height - 1, 1, 1},
                                   {70, 30, 40, 9},
                                   {64, 16, 64, 16},
                                   {63, 15, 66, 18},
                                   {100, 0, 50, 40}}) {
        JpegDecoder one, other;
        ASSERT_TRUE(one.Open(pieces).ok() && other.Open(jpeg).ok());
        const auto part = one.DecodePlanes(region, denominator);
        const auto whole = other.DecodePlanes(region, denominator);
        ASSERT_TRUE(part.ok() && whole.ok()) << part.status();
        ASSERT_TRUE(SameSamples(*part, *whole, region, denominator));
      }
    }
  }
}

TEST(JpegPieces, DamageInThePartIsAnErrorAndElsewhereIsNotSeen) {
  std::string jpeg = *CutIntoPieces(EncodePattern({.width = 256, .height = 256}));
  JpegDecoder decoder;
  const Region top{0, 0, 100, 20}, bottom{0, 220, 100, 20};
  const std::string cut = jpeg.substr(0, jpeg.size() / 2);
  ASSERT_TRUE(decoder.Open(cut).ok());
  EXPECT_TRUE(decoder.DecodePlanes(top).ok());
  ASSERT_TRUE(decoder.Open(cut).ok());
  EXPECT_FALSE(decoder.DecodePlanes(bottom).ok());
}

}  // namespace
}  // namespace tutti::data
