#include "runtime/data/source/tar/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/data/source/tar/tar_fake.h"

namespace tutti::data {
namespace {

using ::testing::HasSubstr;

struct File {
  std::string name, content;
  bool operator==(const File&) const = default;
};

absl::StatusOr<std::vector<File>> ReadAll(absl::string_view archive) {
  TarReader reader(archive);
  std::vector<File> files;
  while (true) {
    const auto member = reader.Next();
    if (!member.ok()) return member.status();
    if (!*member) return files;
    files.push_back({(*member)->name, std::string((*member)->content)});
  }
}

TEST(Tar, ReadsWhatWasWritten) {
  const std::string archive =
      TarBuilder().Add("a/0.jpg", "image").Add("a/0.cls", "3").Add("b", "").Finish();
  const auto files = ReadAll(archive);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(*files, (std::vector<File>{{"a/0.jpg", "image"}, {"a/0.cls", "3"}, {"b", ""}}));
}

TEST(Tar, ReadsLongNamesOfGnuAndPax) {
  const std::string gnu = absl::StrCat(std::string(150, 'g'), ".jpg");
  const std::string pax = absl::StrCat(std::string(300, 'p'), ".jpg");
  const std::string archive =
      TarBuilder().AddWithGnuName(gnu, "1").AddWithPaxPath(pax, "2").Add("short.jpg", "3").Finish();
  const auto files = ReadAll(archive);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(*files, (std::vector<File>{{gnu, "1"}, {pax, "2"}, {"short.jpg", "3"}}));
}

TEST(Tar, JoinsThePrefixOfUstar) {
  std::string archive = TarBuilder().Add("0.jpg", "x").Finish();
  archive.replace(345, 7, "train/a");
  FixTarChecksum(archive, 0);
  EXPECT_EQ(ReadAll(archive)->at(0).name, "train/a/0.jpg");
  archive.replace(257, 8, absl::string_view("ustar  \0", 8).data(), 8);  // GNU has no prefix
  FixTarChecksum(archive, 0);
  EXPECT_EQ(ReadAll(archive)->at(0).name, "0.jpg");
}

TEST(Tar, PassesOverFoldersAndLinks) {
  const std::string archive = TarBuilder()
                                  .Add("pax_global_header", PaxRecord("comment", "abc"), 'g')
                                  .Add("a/", "", '5')
                                  .Add("link.jpg", "", '2')
                                  .Add("a/0.jpg", "x")
                                  .Finish();
  EXPECT_EQ(*ReadAll(archive), (std::vector<File>{{"a/0.jpg", "x"}}));
}

TEST(Tar, ReadsSizesInBase256AndInPax) {
  std::string archive = TarBuilder().Add("a", "hello").Finish();
  archive.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x05", 12));
  FixTarChecksum(archive, 0);
  EXPECT_EQ(ReadAll(archive)->at(0).content, "hello");
  const std::string pax =
      TarBuilder().Add("x", PaxRecord("size", "3"), 'x').Add("a", "hello").Finish();
  EXPECT_EQ(ReadAll(pax)->at(0).content, "hel");
}

TEST(Tar, AnArchiveCutShortAtAnyByteIsDataLoss) {
  const std::string archive = TarBuilder()
                                  .Add("a/0.jpg", std::string(700, 'p'))
                                  .AddWithGnuName(std::string(120, 'n'), "12")
                                  .Add("a/0.cls", "3")
                                  .Finish();
  const size_t whole = archive.size() - kTarBlock;  // the second zero block may be missing
  for (size_t length = 0; length < whole; ++length) {
    const auto files = ReadAll(absl::string_view(archive).substr(0, length));
    ASSERT_EQ(files.status().code(), absl::StatusCode::kDataLoss) << "cut to " << length;
    ASSERT_THAT(std::string(files.status().message()), HasSubstr("cut short")) << length;
    ASSERT_THAT(std::string(files.status().message()), HasSubstr("at byte ")) << length;
  }
  EXPECT_TRUE(ReadAll(absl::string_view(archive).substr(0, whole)).ok());
}

TEST(Tar, AnyFlippedBitOfAHeaderIsDataLoss) {
  const std::string archive = TarBuilder().Add("a/0.jpg", "x").Finish();
  for (size_t bit = 0; bit < 8 * kTarBlock; ++bit) {
    if (bit / 8 >= 148 && bit / 8 < 156) continue;  // the checksum has spare characters of its own
    std::string damaged = archive;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    ASSERT_EQ(ReadAll(damaged).status().code(), absl::StatusCode::kDataLoss) << "bit " << bit;
  }
}

TEST(Tar, NamesTheOffsetOfABadChecksum) {
  std::string archive = TarBuilder().Add("a", "x").Add("b", "y").Finish();
  archive[1024 + 148] ^= 1;
  EXPECT_THAT(std::string(ReadAll(archive).status().message()),
              HasSubstr("at byte 1024 of 3072: the header's checksum is wrong"));
}

TEST(Tar, RefusesSizesBeyondTheArchive) {
  for (const uint64_t size : {uint64_t{1025}, uint64_t{1} << 32}) {
    const std::string archive = TarBuilder().AddHeader("big.jpg", size).Finish();
    const auto files = ReadAll(archive);
    EXPECT_EQ(files.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(files.status().message()), HasSubstr("big.jpg has "));
  }
  std::string huge = TarBuilder().AddHeader("big.jpg", 0).Finish();
  huge.replace(124, 12, std::string("\x80") + std::string(3, '\0') + std::string(8, '\xff'));
  FixTarChecksum(huge, 0);
  EXPECT_EQ(ReadAll(huge).status().code(), absl::StatusCode::kDataLoss);
}

TEST(Tar, RefusesMalformedPaxRecords) {
  for (const absl::string_view records :
       {"x", "5 ab", "99 path=a\n", "0 path=a\n", "3 \n", "9 path=ab", "18446744073709551616 a=b\n",
        "11 size=1x\n"}) {
    const std::string archive = TarBuilder().Add("x", records, 'x').Add("a", "1").Finish();
    EXPECT_EQ(ReadAll(archive).status().code(), absl::StatusCode::kDataLoss) << records;
  }
}

TEST(Tar, RefusesArchivesJoinedByCat) {
  const std::string archive = TarBuilder().Add("a", "1").Finish();
  EXPECT_THAT(std::string(ReadAll(archive + archive).status().message()), HasSubstr("joined"));
}

TEST(Tar, RefusesAFileThatIsNoArchive) {
  EXPECT_EQ(ReadAll(std::string(4096, 'x')).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadAll("").status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tutti::data
