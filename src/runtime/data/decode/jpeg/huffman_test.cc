#include "runtime/data/decode/jpeg/huffman.h"

#include <gtest/gtest.h>

namespace tutti::data {
namespace {

// Codes 0, 10, 110 for the symbols given.
HuffmanCode SmallCode(uint8_t first, uint8_t second, uint8_t third) {
  HuffmanCode code;
  code.counts[1] = code.counts[2] = code.counts[3] = 1;
  code.symbols = {first, second, third};
  return code;
}

TEST(Huffman, OneLookGivesADifference) {
  DcTable table;
  ASSERT_TRUE(MakeDcTable(SmallCode(0, 2, 11), 8, table));
  const uint32_t nothing = table.entries[0b01111111], two = table.entries[0b10011111];
  EXPECT_EQ(Difference::Bits(nothing), 1);
  EXPECT_EQ(Difference::Value(nothing), 0);
  EXPECT_EQ(Difference::Bits(two), 4);
  EXPECT_EQ(Difference::Value(two), -2);
  EXPECT_EQ(Difference::Bits(table.entries[0b11000000]), 0) << "14 bits are read in steps";
}

TEST(Huffman, OneLookGivesTwoCoefficients) {
  AcTable table;
  ASSERT_TRUE(MakeAcTable(SmallCode(0x00, 0x01, 0x22), 8, table));
  const uint32_t two = table.entries[0b10111010];  // a one, then after two zeros a two
  EXPECT_EQ(Coefficients::Bits(two), 8);
  EXPECT_EQ(Coefficients::First(two), 1);
  EXPECT_EQ(Coefficients::FirstValue(two), 1);
  EXPECT_EQ(Coefficients::Last(two), 4);
  EXPECT_EQ(Coefficients::LastValue(two), 2);
  const uint32_t last = table.entries[0b10001111];  // minus one, then the end
  EXPECT_EQ(Coefficients::Bits(last), 4);
  EXPECT_EQ(Coefficients::FirstValue(last), -1);
  EXPECT_EQ(Coefficients::Last(last), Coefficients::kEnd + 1);
  EXPECT_EQ(Coefficients::Last(table.entries[0b11100000]), Coefficients::kNone);
}

TEST(Huffman, OneLookGivesTheLengthsOfALongValue) {
  AcTable table;
  ASSERT_TRUE(MakeAcTable(SmallCode(0x00, 0x01, 0x28), 8, table));
  const uint32_t entry = table.entries[0b11010101];  // after two zeros a value of eight bits
  ASSERT_TRUE(Coefficients::IsLong(entry));
  EXPECT_EQ(Coefficients::Bits(entry), 3 + 8);
  EXPECT_EQ(Coefficients::CodeBits(entry), 3);
  EXPECT_EQ(Coefficients::ValueBits(entry), 8);
  EXPECT_EQ(Coefficients::Last(entry), 3);
  EXPECT_FALSE(Coefficients::IsLong(table.entries[0b10111010]));
}

TEST(Huffman, RefusesDifferencesOfMoreThan15Bits) {
  DcTable table;
  EXPECT_FALSE(MakeDcTable(SmallCode(0, 16, 1), 8, table));
}

TEST(Huffman, RefusesLengthsOfNoPrefixCode) {
  HuffmanCode code = SmallCode(0, 1, 2);
  AcTable ac;
  DcTable dc;
  code.counts[3] = 2;  // 111: ones only
  EXPECT_FALSE(MakeAcTable(code, 8, ac));
  EXPECT_FALSE(MakeDcTable(code, 8, dc));
  code.counts[3] = 200;
  EXPECT_FALSE(MakeAcTable(code, 8, ac));
  code = {};
  code.counts[16] = code.counts[15] = code.counts[14] = 255;  // more than there are symbols
  EXPECT_FALSE(MakeAcTable(code, 8, ac));
}

}  // namespace
}  // namespace tutti::data
