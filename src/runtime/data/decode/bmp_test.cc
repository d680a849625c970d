#include <gmock/gmock.h>

#include "runtime/data/decode/image_codec.h"

namespace tutti::data {
namespace {

using ::testing::HasSubstr;
using Rgb = std::vector<int>;

constexpr int64_t kMostOfBmp = 1 << 20;

std::string LittleEndian(uint32_t value, int bytes = 4) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
  return text;
}

struct Options {
  int bits = 24;
  uint32_t compression = 0;
  std::string behind;  // the header: masks, a palette
  uint32_t colours = 0;
};

// Rows as they lie in the file, padded to four bytes.
std::string BmpOf(int width, int height, const Options& options, const std::string& rows) {
  const auto offset = static_cast<uint32_t>(54 + options.behind.size());
  return "BM" + LittleEndian(0) + LittleEndian(0) + LittleEndian(offset) + LittleEndian(40) +
         LittleEndian(static_cast<uint32_t>(width)) + LittleEndian(static_cast<uint32_t>(height)) +
         LittleEndian(1, 2) + LittleEndian(static_cast<uint32_t>(options.bits), 2) +
         LittleEndian(options.compression) + LittleEndian(0) + LittleEndian(0) + LittleEndian(0) +
         LittleEndian(options.colours) + LittleEndian(0) + options.behind + rows;
}

class BmpTest : public testing::Test {
 protected:
  // The pixels from left to right, from the top row to the bottom one.
  std::vector<Rgb> Decode(const std::string& encoded) {
    reader_ = CodecOf("BM")->reader(kMostOfBmp);
    const auto size = reader_->Open(encoded);
    EXPECT_TRUE(size.ok()) << size.status();
    const auto view = reader_->Decode();
    EXPECT_TRUE(view.ok()) << view.status();
    EXPECT_EQ(*size, (ImageSize{view->width, view->height}));
    std::vector<Rgb> pixels;
    for (int i = 0; view.ok() && i < view->width * view->height; ++i) {
      pixels.emplace_back(view->pixels + 4 * i, view->pixels + 4 * i + 3);
    }
    return pixels;
  }
  absl::Status Error(const std::string& encoded, int64_t most = kMostOfBmp) {
    reader_ = CodecOf("BM")->reader(most);
    const absl::Status status = reader_->Open(encoded).status();
    EXPECT_EQ(reader_->Decode().status(), status);
    return status;
  }
  std::unique_ptr<ImageReader> reader_;
};

TEST_F(BmpTest, RowsLieFromTheBottomUpOrFromTheTopDown) {
  const std::string rows("\1\2\3\0\4\5\6\0", 8);  // blue, green, red, padding
  EXPECT_EQ(Decode(BmpOf(1, 2, {}, rows)), (std::vector<Rgb>{{6, 5, 4}, {3, 2, 1}}));
  EXPECT_EQ(Decode(BmpOf(1, -2, {}, rows)), (std::vector<Rgb>{{3, 2, 1}, {6, 5, 4}}));
  EXPECT_EQ(Decode(BmpOf(1, -2, {}, rows.substr(0, 7))).size(), 2u) << "the padding may lack";
}

TEST_F(BmpTest, OfThirtyTwoBitsMasksSayWhichAreWhat) {
  const std::string rows("\1\2\3\xFF", 4);
  EXPECT_EQ(Decode(BmpOf(1, 1, {.bits = 32}, rows)), (std::vector<Rgb>{{3, 2, 1}}));
  const std::string masks = LittleEndian(0xFF) + LittleEndian(0xFF00) + LittleEndian(0xFF0000);
  EXPECT_EQ(Decode(BmpOf(1, 1, {.bits = 32, .compression = 3, .behind = masks}, rows)),
            (std::vector<Rgb>{{1, 2, 3}}));
}

TEST_F(BmpTest, PalettesOfOneFourAndEightBits) {
  const std::string palette("\1\2\3\0\4\5\6\0", 8);
  const Rgb first{3, 2, 1}, second{6, 5, 4}, none{0, 0, 0};
  EXPECT_EQ(Decode(BmpOf(3, 1, {.bits = 1, .behind = palette}, std::string("\xA0\0\0\0", 4))),
            (std::vector<Rgb>{second, first, second}));
  EXPECT_EQ(Decode(BmpOf(3, 1, {.bits = 4, .behind = palette, .colours = 2},
                         std::string("\x01\x20\0\0", 4))),
            (std::vector<Rgb>{first, second, none}));
  EXPECT_EQ(Decode(BmpOf(2, 1, {.bits = 8, .behind = palette}, std::string("\1\0\0\0", 4))),
            (std::vector<Rgb>{second, first}));
}

TEST_F(BmpTest, OldHeadersHavePalettesOfThreeBytes) {
  const std::string header = "BM" + LittleEndian(0) + LittleEndian(0) + LittleEndian(32) +
                             LittleEndian(12) + LittleEndian(2, 2) + LittleEndian(1, 2) +
                             LittleEndian(1, 2) + LittleEndian(1, 2);
  EXPECT_EQ(Decode(header + std::string("\1\2\3\4\5\6\x80\0\0\0", 10)),
            (std::vector<Rgb>{{6, 5, 4}, {3, 2, 1}}));
}

TEST_F(BmpTest, WhatIsNotReadOrDamagedIsNamed) {
  const std::string rows(4, '\0');
  EXPECT_THAT(std::string(Error(BmpOf(1, 1, {.bits = 8, .compression = 1}, rows)).message()),
              HasSubstr("8 bits a pixel with compression 1; read are uncompressed ones"));
  EXPECT_THAT(std::string(Error(BmpOf(1, 1, {.bits = 16}, rows)).message()), HasSubstr("16 bits"));
  EXPECT_EQ(Error(BmpOf(3, 2, {}, ""), 5),
            absl::InvalidArgumentError("a BMP image of 3x2 pixels; the most is 5"));
  EXPECT_FALSE(Error(BmpOf(1 << 30, 1 << 30, {}, rows)).ok());
  EXPECT_TRUE(absl::IsDataLoss(Error(BmpOf(0, 1, {}, rows))));
  EXPECT_TRUE(absl::IsDataLoss(Error(BmpOf(-1, 1, {}, rows))));
  EXPECT_TRUE(absl::IsDataLoss(Error(BmpOf(1, 0, {}, rows))));
  const std::string whole = BmpOf(1, 2, {}, rows + "\1\2\3");
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_TRUE(absl::IsDataLoss(Error(whole.substr(0, length)))) << length;
  }
}

}  // namespace
}  // namespace tutti::data
