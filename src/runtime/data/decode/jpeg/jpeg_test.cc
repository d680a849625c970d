#include "runtime/data/decode/jpeg/jpeg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/data/decode/jpeg/jpeg_fake.h"

namespace tutti::data {
namespace {

using ::testing::HasSubstr;

struct Image {
  ImageSize size;
  std::vector<uint8_t> pixels;
  const uint8_t* at(int x, int y) const {
    return pixels.data() + (static_cast<size_t>(y) * size.width + x) * kBytesPerPixel;
  }
};

absl::StatusOr<Image> DecodeWhole(JpegDecoder& decoder, absl::string_view encoded) {
  const auto size = decoder.Open(encoded);
  if (!size.ok()) return size.status();
  const auto decoded = decoder.Decode({0, 0, size->width, size->height});
  if (!decoded.ok()) return decoded.status();
  EXPECT_EQ(decoded->full, *size);
  EXPECT_EQ((ImageSize{decoded->view.width, decoded->view.height}), *size);
  const uint8_t* end = decoded->view.row(decoded->view.height);
  return Image{*size, {decoded->view.pixels, end}};
}

absl::Status DecodeError(absl::string_view encoded) {
  JpegDecoder decoder;
  return DecodeWhole(decoder, encoded).status();
}

TEST(Jpeg, DecodesWhatWasEncoded) {
  JpegDecoder decoder;
  const auto value = [](int x, int y, int c) {
    return static_cast<uint8_t>(4 * x + 2 * y + 40 * c);
  };
  for (const bool progressive : {false, true}) {
    const auto image = DecodeWhole(
        decoder, EncodeJpeg({.width = 33, .height = 17, .progressive = progressive}, value));
    ASSERT_TRUE(image.ok()) << image.status();
    ASSERT_EQ(image->size, (ImageSize{33, 17}));
    for (int y = 0; y < 17; ++y) {
      for (int x = 0; x < 33; ++x) {
        for (int c = 0; c < 3; ++c) ASSERT_NEAR(image->at(x, y)[c], value(x, y, c), 12);
      }
    }
  }
}

TEST(Jpeg, GreyBecomesRgb) {
  JpegDecoder decoder;
  const auto image = DecodeWhole(
      decoder, EncodeJpeg({.components = 1}, [](int x, int, int) { return uint8_t(8 * x); }));
  ASSERT_TRUE(image.ok()) << image.status();
  for (int x = 0; x < 32; ++x) {
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(image->at(x, 9)[c], 8 * x, 3);
  }
}

TEST(Jpeg, AColourProfileChangesNoPixel) {
  JpegDecoder decoder;
  std::string encoded = EncodePattern({});
  const auto plain = DecodeWhole(decoder, encoded);
  encoded.insert(2, absl::StrCat("\xFF\xE2", absl::string_view("\0\x14ICC_PROFILE\0\1\1none", 20)));
  const auto profiled = DecodeWhole(decoder, encoded);
  ASSERT_TRUE(plain.ok() && profiled.ok()) << plain.status() << profiled.status();
  EXPECT_EQ(profiled->pixels, plain->pixels);
}

// libjpeg writes CMYK with Adobe's marker, so that 255 means no ink.
TEST(Jpeg, CmykBecomesRgb) {
  JpegDecoder decoder;
  const uint8_t ink[] = {255, 100, 0, 128};
  const auto image =
      DecodeWhole(decoder, EncodeJpeg({.components = 4}, [&](int, int, int c) { return ink[c]; }));
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_NEAR(image->at(5, 5)[0], 128, 2);
  EXPECT_NEAR(image->at(5, 5)[1], 50, 2);
  EXPECT_NEAR(image->at(5, 5)[2], 0, 2);
}

struct PartialCase {
  JpegOptions options;
  Region region;
};

class PartialDecode : public testing::TestWithParam<PartialCase> {};

TEST_P(PartialDecode, HasTheBitsOfAFullDecode) {
  const auto& [options, region] = GetParam();
  const std::string jpeg = EncodePattern(options);
  JpegDecoder decoder;
  const auto whole = DecodeWhole(decoder, jpeg);
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_TRUE(decoder.Open(jpeg).ok());
  const auto part = decoder.Decode(region);
  ASSERT_TRUE(part.ok()) << part.status();
  ASSERT_LE(part->left, region.left);
  ASSERT_EQ(part->top, region.top);
  ASSERT_EQ(part->view.height, region.height);
  ASSERT_GE(part->left + part->view.width, region.left + region.width);
  for (int y = 0; y < region.height; ++y) {
    for (int x = region.left; x < region.left + region.width; ++x) {
      ASSERT_EQ(std::memcmp(part->view.row(y) + (x - part->left) * kBytesPerPixel,
                            whole->at(x, region.top + y), 3),
                0)
          << x << "," << y;
    }
  }
}

std::vector<PartialCase> PartialCases() {
  std::vector<PartialCase> cases;
  std::srand(1);
  for (int i = 0; i < 120; ++i) {
    JpegOptions options{.width = 1 + std::rand() % 200, .height = 1 + std::rand() % 200};
    options.components = i % 5 == 0 ? 1 : i % 11 == 0 ? 4 : 3;
    options.subsample = i % 3 != 0;
    options.progressive = i % 4 == 0;
    Region region{std::rand() % options.width, std::rand() % options.height};
    region.width = 1 + std::rand() % (options.width - region.left);
    region.height = 1 + std::rand() % (options.height - region.top);
    cases.push_back({options, region});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Jpeg, PartialDecode, testing::ValuesIn(PartialCases()));

TEST(Jpeg, ScaledDecodeIsTheImageMadeSmall) {
  // A ramp, so that every scale has the same value at the same relative place.
  const std::string jpeg =
      EncodeJpeg({.width = 200, .height = 120}, [](int x, int, int) { return uint8_t(x); });
  JpegDecoder decoder;
  for (const int denominator : {1, 2, 4, 8}) {
    ASSERT_TRUE(decoder.Open(jpeg).ok());
    const auto decoded = decoder.Decode({64, 32, 80, 64}, denominator);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->full, (ImageSize{200 / denominator, 120 / denominator}));
    EXPECT_EQ(decoded->top, 32 / denominator);
    EXPECT_EQ(decoded->view.height, 64 / denominator);
    const int x = 100 / denominator;
    const uint8_t* pixel = decoded->view.row(3) + (x - decoded->left) * kBytesPerPixel;
    EXPECT_NEAR(pixel[1], (x + 0.5) * denominator - 0.5, 3) << "1/" << denominator;
  }
}

TEST(Jpeg, AFileThatIsNoJpegIsRefused) {
  for (const absl::string_view other : {"\x89PNG\r\n\x1a\n and more", "\xff\xd8", ""}) {
    EXPECT_EQ(DecodeError(other), absl::InvalidArgumentError("not a JPEG"));
  }
}

TEST(Jpeg, AFileCutShortAtAnyByteIsAnError) {
  for (const bool progressive : {false, true}) {
    const std::string jpeg = EncodePattern({.progressive = progressive});
    JpegDecoder decoder;
    for (size_t length = 0; length < jpeg.size(); ++length) {
      const auto image = DecodeWhole(decoder, absl::string_view(jpeg).substr(0, length));
      ASSERT_FALSE(image.ok()) << "cut to " << length << " of " << jpeg.size();
    }
    EXPECT_TRUE(DecodeWhole(decoder, jpeg).ok()) << "the decoder is as new after errors";
  }
}

TEST(Jpeg, ErrorsSayWhatIsWrong) {
  std::string jpeg = EncodePattern({});
  EXPECT_EQ(DecodeError(jpeg.substr(0, jpeg.size() / 2)).message(),
            "damaged JPEG: Premature end of JPEG file");
  EXPECT_EQ(DecodeError(jpeg.substr(0, jpeg.size() / 2)).code(), absl::StatusCode::kDataLoss);
  const size_t scan = jpeg.find("\xff\xda");
  EXPECT_THAT(std::string(DecodeError(jpeg.replace(scan, 2, "\xff\xc8")).message()),
              HasSubstr("SOF type 0xc8"));
}

TEST(Jpeg, RefusesImagesThatAreTooLarge) {
  JpegDecoder decoder(32 * 32);
  EXPECT_TRUE(DecodeWhole(decoder, EncodePattern({})).ok());
  const absl::Status status = DecodeWhole(decoder, EncodePattern({.width = 33})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "a JPEG of 33x32 pixels; the most is 1024");
}

// A small file whose header claims 65500 x 65500 pixels is refused before anything is allocated.
TEST(Jpeg, RefusesAHeaderThatPromisesTooMuch) {
  std::string jpeg = EncodePattern({});
  const size_t frame = jpeg.find("\xff\xc0");
  jpeg.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  EXPECT_EQ(DecodeError(jpeg).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tutti::data
