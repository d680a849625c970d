// Covers: sequential_scan.cc, scan_kernel.cc.
#include "runtime/data/decode/jpeg/sequential_reader.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/data/decode/jpeg/jpeg.h"
#include "runtime/data/decode/jpeg/jpeg_fake.h"
#include "runtime/data/decode/jpeg/planes_fake.h"
#include "runtime/data/instruction_kernels_fake.h"

namespace tutti::data {
namespace {

using Reader = JpegDecoder::Reader;

// A file that libjpeg has read the header of.
class OpenJpeg {
 public:
  explicit OpenJpeg(absl::string_view file) {
    info_.err = jpeg_std_error(&errors_);  // ends the program: the files are sound
    jpeg_create_decompress(&info_);
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&info_, TRUE);
  }
  ~OpenJpeg() { jpeg_destroy_decompress(&info_); }
  std::optional<SequentialScan> Scan(int denominator) {
    return FindSequentialScan(info_, denominator);
  }
  Region Whole() const {
    return {0, 0, static_cast<int>(info_.image_width), static_cast<int>(info_.image_height)};
  }

 private:
  jpeg_error_mgr errors_;
  jpeg_decompress_struct info_;
};

// Whether it is read without libjpeg-turbo's help.
bool IsReadDirectly(absl::string_view file) {
  OpenJpeg jpeg(file);
  const auto scan = jpeg.Scan(1);
  return scan && SequentialReader().Read(*scan, jpeg.Whole()).has_value();
}

Region SomeRegion(std::minstd_rand& random, ImageSize size) {
  const auto below = [&random](int limit) { return static_cast<int>(random() >> 8) % limit; };
  Region region{below(size.width), below(size.height)};
  region.width = 1 + below(size.width - region.left);
  region.height = 1 + below(size.height - region.top);
  return region;
}

class SequentialReading : public testing::TestWithParam<JpegOptions> {};

TEST_P(SequentialReading, HasTheBitsOfLibjpegTurbo) {
  const JpegOptions& options = GetParam();
  JpegDecoder ours(kMaxPixels), theirs(kMaxPixels, Reader::kLibjpeg);
  std::minstd_rand random(1);
  for (const std::string& file : {EncodePattern(options), EncodeNoise(options)}) {
    ASSERT_TRUE(IsReadDirectly(file));
    for (int i = 0; i < 24; ++i) {
      const int denominator = 1 << i % 4;
      const ImageSize size = *ours.Open(file);
      ASSERT_TRUE(theirs.Open(file).ok());
      const Region region =
          i < 4 ? Region{0, 0, size.width, size.height} : SomeRegion(random, size);
      const auto one = ours.DecodePlanes(region, denominator);
      const auto other = theirs.DecodePlanes(region, denominator);
      ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
      ASSERT_TRUE(SameSamples(*one, *other, region, denominator)) << i;
    }
  }
}

TEST_P(SequentialReading, HasTheSameBitsWithEachInstructionSet) {
  for (const std::string& file : {EncodePattern(GetParam()), EncodeNoise(GetParam())}) {
    for (const int denominator : {1, 2, 4, 8}) {
      OpenJpeg jpeg(file);
      const auto scan = jpeg.Scan(denominator);
      ASSERT_TRUE(scan);
      SequentialReader plain(base::InstructionSet::kPlain);
      const auto expected = plain.Read(*scan, jpeg.Whole());
      ASSERT_TRUE(expected);
      for (const base::InstructionSet set : SetsOfThisProcessor()) {
        SequentialReader reader(set);
        const auto planes = reader.Read(*scan, jpeg.Whole());
        ASSERT_TRUE(planes);
        ASSERT_TRUE(SameSamples(*planes, *expected, jpeg.Whole(), denominator));
      }
    }
  }
}

std::vector<JpegOptions> Kinds() {
  std::vector<JpegOptions> kinds;
  const int samplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}, {3, 1}};
  const ImageSize sizes[] = {{1, 1}, {16, 16}, {97, 61}, {203, 150}, {64, 129}};
  const int qualities[] = {5, 50, 75, 90, 98, 100};
  for (size_t i = 0; i < 42; ++i) {
    const ImageSize size = sizes[i % 5];
    JpegOptions kind{.width = size.width, .height = size.height, .quality = qualities[i % 6]};
    kind.across = samplings[i % 7][0];
    kind.down = samplings[i % 7][1];
    kind.restart_interval = i % 4 == 1 ? 1 : i % 4 == 2 ? 7 : 0;
    kind.optimize = i % 3 == 0;
    kind.rgb = i % 11 == 0;
    kinds.push_back(kind);
    if (i % 3 == 2) {
      kind.components = kind.across = kind.down = 1;
      kind.rgb = false;
      kinds.push_back(kind);
    }
  }
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Kinds, SequentialReading, testing::ValuesIn(Kinds()));

TEST(SequentialReader, LeavesOtherKindsToLibjpeg) {
  OpenJpeg progressive(EncodePattern({.progressive = true}));
  EXPECT_FALSE(progressive.Scan(1));
  OpenJpeg cmyk(EncodePattern({.components = 4}));
  EXPECT_FALSE(cmyk.Scan(1));
}

// What both decoders make of a file: the same error, or the same samples. On other processors than
// x86 libjpeg-turbo wraps around where vectors of 16 bits are full, so that coefficients that no
// image has make other samples there.
void ExpectSameOutcome(const std::string& file, const Region& region, int denominator) {
  JpegDecoder ours(1 << 20), theirs(1 << 20, Reader::kLibjpeg);
  const auto size = ours.Open(file);
  ASSERT_EQ(theirs.Open(file).status(), size.status());
  if (!size.ok() || region.left + region.width > size->width ||
      region.top + region.height > size->height) {
    return;
  }
  const auto one = ours.DecodePlanes(region, denominator);
  const auto other = theirs.DecodePlanes(region, denominator);
  ASSERT_EQ(one.status(), other.status());
#if defined(__x86_64__)
  if (one.ok()) {
    ASSERT_TRUE(SameSamples(*one, *other, region, denominator));
  }
#endif
}

TEST(SequentialReader, AFileCutShortHasTheOutcomeThatLibjpegGivesIt) {
  for (const int interval : {0, 3}) {
    const std::string file =
        EncodePattern({.width = 80, .height = 64, .restart_interval = interval});
    for (size_t length = 0; length < file.size(); ++length) {
      ASSERT_NO_FATAL_FAILURE(ExpectSameOutcome(file.substr(0, length), {10, 9, 60, 30}, 1))
          << length;
      ASSERT_NO_FATAL_FAILURE(ExpectSameOutcome(file.substr(0, length), {0, 0, 80, 64}, 1))
          << length;
    }
  }
}

// Among them coefficients that no image has, codes that mean nothing, blocks that do not end.
TEST(SequentialReader, ADamagedFileHasTheOutcomeThatLibjpegGivesIt) {
  std::minstd_rand random(7);
  for (int i = 0; i < 4000; ++i) {
    const JpegOptions options{.width = 48,
                              .height = 40,
                              .quality = i % 3 == 0 ? 5 : 95,
                              .components = i % 5 == 0 ? 1 : 3,
                              .subsample = i % 2 == 0,
                              .restart_interval = i % 7 == 0 ? 2 : 0};
    std::string file = i % 4 == 0 ? EncodeNoise(options) : EncodePattern(options, i);
    for (int k = 0; k <= i % 3; ++k) {
      file[2 + random() % (file.size() - 2)] = static_cast<char>(random() >> 8);
    }
    const Region region = SomeRegion(random, {48, 40});
    ASSERT_NO_FATAL_FAILURE(ExpectSameOutcome(file, region, 1 << i % 4)) << i;
  }
}

TEST(SequentialReader, ABlockOfMoreCoefficientsThanItHasPlacesIsLeftToLibjpeg) {
  std::string file = EncodeNoise({.width = 64, .height = 64, .quality = 100});
  ASSERT_TRUE(IsReadDirectly(file));
  // The run of zeros becomes the longest before every coefficient of brightness.
  const size_t code = file.find(std::string("\x00\xb5\x10", 3));
  ASSERT_NE(code, std::string::npos);
  for (size_t i = code + 3 + 16; i < code + 0xb5; ++i) {
    if ((file[i] & 15) != 0) file[i] = static_cast<char>(file[i] | 0xF0);
  }
  EXPECT_FALSE(IsReadDirectly(file));
  ExpectSameOutcome(file, {0, 0, 64, 64}, 1);
}

}  // namespace
}  // namespace tutti::data
