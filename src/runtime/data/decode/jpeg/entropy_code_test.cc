#include "runtime/data/decode/jpeg/entropy_code.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti::data {
namespace {

using namespace std::string_literals;

std::string BytesOf(const EntropyCode::Piece& piece) {
  return {reinterpret_cast<const char*>(piece.bytes), piece.size};
}

TEST(EntropyCode, GivesPiecesWithoutStuffedBytes) {
  const std::string scan = "ab\xff\x00"s + "c\xff\x00\xff\x00\xff\xd0"s + "d\xff\xd9rest"s;
  EntropyCode code;
  code.Open(scan);
  EntropyCode::Piece piece = code.Next();
  EXPECT_EQ(BytesOf(piece),
            "ab\xff"
            "c\xff\xff");
  EXPECT_EQ(piece.marker, 0xD0);
  EXPECT_EQ(piece.bytes[piece.size + EntropyCode::kPadding - 1], 0);
  piece = code.Next();
  EXPECT_EQ(BytesOf(piece), "d");
  EXPECT_EQ(piece.marker, 0xD9);
}

TEST(EntropyCode, EndsWithTheFile) {
  EntropyCode code;
  for (const std::string& scan : {"abc"s, "abc\xff"s}) {
    code.Open(scan);
    const EntropyCode::Piece piece = code.Next();
    EXPECT_EQ(BytesOf(piece), "abc");
    EXPECT_EQ(piece.marker, 0);
    EXPECT_EQ(code.Next().size, 0u);
  }
  code.Open("");
  EXPECT_EQ(code.Next().size, 0u);
}

}  // namespace
}  // namespace tutti::data
