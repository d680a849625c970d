// EntropyCode reads the entropy code of a JPEG's scan, piece by piece between its markers, as bits
// that follow one another: without the zero that the file has after each byte of ones (ITU T.81,
// B.1.1.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::data {

// Keeps its memory from scan to scan. Not thread-safe.
class EntropyCode {
 public:
  // So many bytes of zeros lie behind a piece: who reads on for a while notices later.
  static constexpr size_t kPadding = 512;

  struct Piece {
    const uint8_t* bytes = nullptr;  // valid until the next call
    size_t size = 0;
    int marker = 0;  // the second byte of what follows it; 0: the file ends there
  };

  // Reads what follows the scan's header, to the end of the file; must live as long as it is read.
  void Open(absl::string_view scan) { rest_ = scan; }
  // Returns the piece up to the next marker, which is passed over.
  Piece Next();

 private:
  absl::string_view rest_;
  std::vector<uint8_t> bytes_;
};

}  // namespace tutti::data
