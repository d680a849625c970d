// JpegPieces cuts a part out of a JPEG without reading what lies before it. Restart markers cut a
// JPEG's entropy code into pieces that need nothing of each other; where a row of blocks is a whole
// number of pieces, the pieces that a rectangle touches are a smaller JPEG with the same
// coefficients.
//
// Cameras write no such markers; tutti-data pack --fast-crops adds them without loss.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/image.h"

namespace tutti::data {

// Keeps its memory from image to image. Not thread-safe.
class JpegPieces {
 public:
  // Opens an image; true if `jpeg`, which must live as long as it is used, has such pieces: one
  // scan of Huffman code with restart markers. Bytes that are no sound JPEG may be taken for one
  // here: the decoder of what is cut tells.
  bool Open(absl::string_view jpeg);

  // Returns the smallest rectangle of whole pieces around `region`.
  Region Around(const Region& region) const;
  // Returns the JPEG of such a rectangle, in own memory; empty if its pieces are not all there.
  absl::string_view Cut(const Region& pieces);

 private:
  bool ReadFrame(absl::string_view segment);
  bool FindPieces(size_t count);

  absl::string_view jpeg_, scan_;
  ImageSize size_, block_;    // of the image and of a minimal coded unit, pixels
  int units_ = 0;             // in a row
  int interval_ = 0;          // units in a piece
  std::string header_, cut_;  // up to the scan, without comments and thumbnails
  size_t frame_ = 0;          // where the sizes stand in header_
  std::vector<size_t> ends_;  // of pieces in scan_, without their markers
};

// Returns the same coefficients with a restart marker every few units, as Huffman code in one scan:
// it decodes to the same bits. Comments and thumbnails are left out. InvalidArgument: CMYK, or no
// JPEG; DataLoss: damaged.
absl::StatusOr<std::string> CutIntoPieces(absl::string_view jpeg);

}  // namespace tutti::data
