#include "runtime/data/decode/png_image.h"

#include <gmock/gmock.h>
#include <png.h>
#include <zlib.h>

#include <string>

#include "runtime/data/decode/image_codec.h"

namespace tutti::data {
namespace {

using ::testing::StartsWith;

constexpr int64_t kMost = 1 << 20;

std::unique_ptr<ImageReader> PngReader(int64_t max_pixels = kMost) {
  return CodecOf("\x89PNG")->reader(max_pixels);
}

absl::StatusOr<ImageView> DecodeBy(ImageReader& reader, absl::string_view encoded) {
  const auto size = reader.Open(encoded);
  return size.ok() ? reader.Decode() : size.status();
}

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

std::string BigEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string Chunk(const std::string& type, const std::string& data) {
  const std::string summed = type + data;
  const auto sum =
      crc32(0, reinterpret_cast<const Bytef*>(summed.data()), static_cast<uInt>(summed.size()));
  return BigEndian(static_cast<uint32_t>(data.size())) + summed +
         BigEndian(static_cast<uint32_t>(sum));
}

std::string Deflate(const std::string& bytes) {
  std::string packed(compressBound(bytes.size()), '\0');
  uLongf size = packed.size();
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                     reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()),
            Z_OK);
  packed.resize(size);
  return packed;
}

// A PNG of one row, of these bytes; `chunks` stand before the image's.
std::string PngOfRow(uint32_t width, int depth, int type, const std::string& row,
                     const std::string& chunks = "") {
  const std::string header = BigEndian(width) + BigEndian(1) + static_cast<char>(depth) +
                             static_cast<char>(type) + std::string(3, '\0');
  return "\x89PNG\r\n\x1a\n" + Chunk("IHDR", header) + chunks +
         Chunk("IDAT", Deflate(std::string(1, '\0') + row)) + Chunk("IEND", "");
}

// What tells of colours: light that is linear, other primaries, a profile.
std::string ColourChunks() {
  std::string primaries;
  for (const uint32_t part : {31270, 32900, 73470, 26530, 11500, 82600, 15700, 1800}) {
    primaries += BigEndian(part);
  }
  return Chunk("gAMA", BigEndian(100000)) + Chunk("cHRM", primaries) +
         Chunk("iCCP", std::string("profile\0\0", 9) + Deflate("none"));
}

std::vector<int> PixelAt(const ImageView& view, int index) {
  std::vector<int> rgb;
  for (int channel = 0; channel < 3; ++channel) rgb.push_back(view.pixels[4 * index + channel]);
  return rgb;
}

TEST(PngImageTest, TellsTheSizeOfTheFirstChunk) {
  const std::string encoded = PngOf(3, 2, PNG_FORMAT_RGB, std::vector<uint8_t>(18, 7));
  const auto size = PngReader()->Open(encoded);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(size->width, 3);
  EXPECT_EQ(size->height, 2);
}

TEST(PngImageTest, PixelsAreAsTheyWereWritten) {
  const std::string encoded = PngOf(2, 1, PNG_FORMAT_RGB, {10, 20, 30, 250, 0, 1});
  const auto reader = PngReader();
  const auto view = DecodeBy(*reader, encoded);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(PixelAt(*view, 0), (std::vector<int>{10, 20, 30}));
  EXPECT_EQ(PixelAt(*view, 1), (std::vector<int>{250, 0, 1}));
}

TEST(PngImageTest, TransparencyDoesNotChangeTheColour) {
  const std::string encoded = PngOf(1, 1, PNG_FORMAT_RGBA, {200, 100, 50, 128});
  const auto reader = PngReader();
  const auto view = DecodeBy(*reader, encoded);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(PixelAt(*view, 0), (std::vector<int>{200, 100, 50}));
}

TEST(PngImageTest, GreyIsOfThreeEqualChannels) {
  const std::string encoded = PngOf(1, 1, PNG_FORMAT_GRAY, {77});
  const auto reader = PngReader();
  const auto view = DecodeBy(*reader, encoded);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(PixelAt(*view, 0), (std::vector<int>{77, 77, 77}));
}

TEST(PngImageTest, OfSixteenBitsTheUpperEightAreTaken) {
  const auto reader = PngReader();
  const auto pixel = [&](int type, const std::string& row) {
    const std::string encoded = PngOfRow(1, 16, type, row);
    const auto view = DecodeBy(*reader, encoded);
    EXPECT_TRUE(view.ok()) << view.status();
    return PixelAt(*view, 0);
  };
  const std::vector<int> grey{0x40, 0x40, 0x40}, colour{0x40, 0x7F, 0x02};
  EXPECT_EQ(pixel(PNG_COLOR_TYPE_GRAY, "\x40\xFF"), grey);
  EXPECT_EQ(pixel(PNG_COLOR_TYPE_GRAY_ALPHA, "\x40\xFF\x10\x10"), grey);
  EXPECT_EQ(pixel(PNG_COLOR_TYPE_RGB, "\x40\xFF\x7F\xFF\x02\x80"), colour);
  EXPECT_EQ(pixel(PNG_COLOR_TYPE_RGBA, "\x40\xFF\x7F\xFF\x02\x80\x10\x10"), colour);
}

TEST(PngImageTest, LevelsAreTheFilesWhateverItSaysOfColours) {
  const auto reader = PngReader();
  std::vector<uint8_t> memory;
  const std::string row = "\x05\x40\x80\xC8";
  const std::string palette = Chunk("PLTE", "\x10\x20\x30\xA0\xB0\xC0");
  const auto pixel = [&](int depth, int type, const std::string& chunks) {
    const std::string encoded = PngOfRow(1, depth, type, row, chunks);
    const auto view = DecodeBy(*reader, encoded);
    EXPECT_TRUE(view.ok()) << view.status();
    return PixelAt(*view, 0);
  };
  for (const std::string& colours :
       {std::string(), ColourChunks(), Chunk("sRGB", std::string(1, '\0'))}) {
    EXPECT_EQ(pixel(8, PNG_COLOR_TYPE_GRAY, colours), (std::vector<int>{5, 5, 5}));
    EXPECT_EQ(pixel(4, PNG_COLOR_TYPE_GRAY, colours + Chunk("tRNS", std::string(2, '\0'))),
              (std::vector<int>{0, 0, 0}));
    EXPECT_EQ(pixel(16, PNG_COLOR_TYPE_GRAY, colours), (std::vector<int>{5, 5, 5}));
    EXPECT_EQ(pixel(8, PNG_COLOR_TYPE_GRAY_ALPHA, colours), (std::vector<int>{5, 5, 5}));
    EXPECT_EQ(pixel(8, PNG_COLOR_TYPE_RGBA, colours), (std::vector<int>{5, 0x40, 0x80}));
    EXPECT_EQ(pixel(4, PNG_COLOR_TYPE_PALETTE, colours + palette + Chunk("tRNS", "\x80")),
              (std::vector<int>{0x10, 0x20, 0x30}));
    const std::string grey = PngOfRow(4, 8, PNG_COLOR_TYPE_GRAY, row, colours);
    ASSERT_TRUE(DecodePngIndices(grey, kMost, memory).ok());
    EXPECT_EQ(memory, (std::vector<uint8_t>{0x05, 0x40, 0x80, 0xC8}));
  }
}

TEST(PngImageTest, MemoryIsKeptForTheNext) {
  const auto reader = PngReader();
  const auto before = DecodeBy(*reader, PngOf(3, 2, PNG_FORMAT_RGB, std::vector<uint8_t>(18, 7)));
  const auto view = DecodeBy(*reader, PngOf(1, 1, PNG_FORMAT_GRAY, {77}));
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->pixels, before->pixels);
}

TEST(PngImageTest, WhatIsTooLargeIsRefusedBeforeItIsDecoded) {
  const std::string encoded = PngOf(3, 2, PNG_FORMAT_RGB, std::vector<uint8_t>(18, 7));
  EXPECT_EQ(PngReader(5)->Open(encoded).status(),
            absl::InvalidArgumentError("a PNG of 3x2 pixels; the most is 5"));
}

TEST(PngImageTest, DamageIsToldWhereverItIs) {
  const std::string encoded = PngOf(3, 2, PNG_FORMAT_RGB, std::vector<uint8_t>(18, 7));
  const auto reader = PngReader();
  for (const size_t length : {size_t{0}, size_t{7}, size_t{20}, encoded.size() / 2}) {
    const std::string part = encoded.substr(0, length);
    const auto view = DecodeBy(*reader, part);
    EXPECT_TRUE(absl::IsDataLoss(view.status())) << length << ": " << view.status();
    EXPECT_THAT(std::string(view.status().message()), StartsWith("damaged PNG: "));
  }
}

}  // namespace
}  // namespace tutti::data
