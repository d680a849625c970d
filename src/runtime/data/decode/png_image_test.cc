#include "runtime/data/decode/png_image.h"

#include <gmock/gmock.h>
#include <png.h>

#include <string>

namespace tutti::data {
namespace {

using ::testing::StartsWith;

constexpr int64_t kMost = 1 << 20;

// A PNG of `pixels`, which are of libpng's format.
std::string PngOf(int width, int height, int format, const std::vector<uint8_t>& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string encoded(bytes, '\0');
  EXPECT_NE(png_image_write_to_memory(&image, encoded.data(), &bytes, 0, pixels.data(), 0, nullptr),
            0);
  encoded.resize(bytes);
  return encoded;
}

std::vector<int> PixelAt(const ImageView& view, int index) {
  std::vector<int> rgb;
  for (int channel = 0; channel < 3; ++channel) rgb.push_back(view.pixels[4 * index + channel]);
  return rgb;
}

TEST(PngImageTest, TellsTheSizeOfTheFirstChunk) {
  const std::string encoded = PngOf(3, 2, PNG_FORMAT_RGB, std::vector<uint8_t>(18, 7));
  const auto size = SizeOfPng(encoded, kMost);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(size->width, 3);
  EXPECT_EQ(size->height, 2);
}

TEST(PngImageTest, PixelsAreAsTheyWereWritten) {
  const std::string encoded = PngOf(2, 1, PNG_FORMAT_RGB, {10, 20, 30, 250, 0, 1});
  std::vector<uint8_t> memory;
  const auto view = DecodePng(encoded, kMost, memory);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(PixelAt(*view, 0), (std::vector<int>{10, 20, 30}));
  EXPECT_EQ(PixelAt(*view, 1), (std::vector<int>{250, 0, 1}));
}

TEST(PngImageTest, TransparencyDoesNotChangeTheColour) {
  const std::string encoded = PngOf(1, 1, PNG_FORMAT_RGBA, {200, 100, 50, 128});
  std::vector<uint8_t> memory;
  const auto view = DecodePng(encoded, kMost, memory);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(PixelAt(*view, 0), (std::vector<int>{200, 100, 50}));
}

TEST(PngImageTest, GreyIsOfThreeEqualChannels) {
  const std::string encoded = PngOf(1, 1, PNG_FORMAT_GRAY, {77});
  std::vector<uint8_t> memory;
  const auto view = DecodePng(encoded, kMost, memory);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(PixelAt(*view, 0), (std::vector<int>{77, 77, 77}));
}

TEST(PngImageTest, MemoryIsKeptForTheNext) {
  std::vector<uint8_t> memory(1000);
  const uint8_t* const before = memory.data();
  const auto view = DecodePng(PngOf(1, 1, PNG_FORMAT_GRAY, {77}), kMost, memory);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->pixels, before);
}

TEST(PngImageTest, WhatIsTooLargeIsRefusedBeforeItIsDecoded) {
  const std::string encoded = PngOf(3, 2, PNG_FORMAT_RGB, std::vector<uint8_t>(18, 7));
  std::vector<uint8_t> memory;
  const auto view = DecodePng(encoded, 5, memory);
  EXPECT_EQ(view.status(), absl::InvalidArgumentError("a PNG of 3x2 pixels; the most is 5"));
  EXPECT_TRUE(memory.empty());
  EXPECT_TRUE(absl::IsInvalidArgument(SizeOfPng(encoded, 5).status()));
}

TEST(PngImageTest, DamageIsToldWhereverItIs) {
  const std::string encoded = PngOf(3, 2, PNG_FORMAT_RGB, std::vector<uint8_t>(18, 7));
  std::vector<uint8_t> memory;
  for (const size_t length : {size_t{0}, size_t{7}, size_t{20}, encoded.size() / 2}) {
    const auto view = DecodePng(encoded.substr(0, length), kMost, memory);
    EXPECT_TRUE(absl::IsDataLoss(view.status())) << length << ": " << view.status();
    EXPECT_THAT(std::string(view.status().message()), StartsWith("damaged PNG: "));
  }
}

}  // namespace
}  // namespace tutti::data
