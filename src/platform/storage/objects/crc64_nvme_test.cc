#include "platform/storage/objects/crc64_nvme.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti::storage {
namespace {

// NVM Express, NVM Command Set Specification 1.0, figure "64b CRC Test Cases for 4 KiB".
TEST(Crc64Nvme, IsThatOfItsSpecification) {
  std::string rising, falling;
  for (int i = 0; i < 4096; ++i) {
    rising.push_back(static_cast<char>(i));
    falling.push_back(static_cast<char>(255 - i));
  }
  EXPECT_EQ(Crc64Nvme(std::string(4096, '\0')), 0x6482D367EB22B64Eu);
  EXPECT_EQ(Crc64Nvme(std::string(4096, '\xff')), 0xC0DDBA7302ECA3ACu);
  EXPECT_EQ(Crc64Nvme(rising), 0x3E729F5F6750449Cu);
  EXPECT_EQ(Crc64Nvme(falling), 0x9A2DF64B8E9E517Eu);
  EXPECT_EQ(Crc64Nvme(rising.substr(77), Crc64Nvme(rising.substr(0, 77))), 0x3E729F5F6750449Cu);
}

TEST(Crc64Nvme, IsTheSameByTheProcessorsMultiplicationAndByTables) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes.push_back(static_cast<char>(i * 131 + i / 7));
  for (size_t size = 0; size < 400; ++size) {
    for (const size_t from : {0, 1, 7, 8, 61}) {
      const absl::string_view some = absl::string_view(bytes).substr(from, size);
      EXPECT_EQ(Crc64Nvme(some), Crc64NvmeByTables(some)) << from << " " << size;
      EXPECT_EQ(Crc64Nvme(some, 12345), Crc64NvmeByTables(some, 12345)) << from << " " << size;
    }
  }
}

}  // namespace
}  // namespace tutti::storage
