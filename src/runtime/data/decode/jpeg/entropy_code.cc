#include "runtime/data/decode/jpeg/entropy_code.h"

#include <cstring>

namespace tutti::data {

EntropyCode::Piece EntropyCode::Next() {
  const char* from = rest_.data();
  const char* const end = from + rest_.size();
  if (bytes_.size() < rest_.size() + kPadding) bytes_.resize(rest_.size() + kPadding);
  uint8_t* to = bytes_.data();
  Piece piece{.bytes = to};
  while (from != end) {
    const auto left = static_cast<size_t>(end - from);
    const void* const found = std::memchr(from, 0xFF, left);
    const size_t plain =
        found == nullptr ? left : static_cast<size_t>(static_cast<const char*>(found) - from);
    std::memcpy(to, from, plain);
    to += plain;
    from += plain;
    if (end - from < 2) {
      from = end;  // a byte of ones that ends the file is part of nothing
      break;
    }
    piece.marker = static_cast<uint8_t>(from[1]);
    from += 2;
    if (piece.marker != 0) break;
    *to++ = 0xFF;
  }
  rest_ = absl::string_view(from, static_cast<size_t>(end - from));
  piece.size = static_cast<size_t>(to - piece.bytes);
  std::memset(to, 0, kPadding);
  return piece;
}

}  // namespace tutti::data
