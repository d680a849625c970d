// SequentialReader decodes the plain kind of JPEG (sequential_scan.h) to planes, for speed: what
// lies outside of the asked region is only passed over, bit by bit as the Huffman code wants it,
// and never becomes numbers.
//
// It reads sound images alone. Whatever else there is in the bytes, the answer is none, and
// libjpeg-turbo has to say what it makes of them. Where there is one, it has libjpeg-turbo's bits.
//
// Keeps its memory from image to image. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/machine/instruction_set.h"
#include "runtime/data/decode/jpeg/entropy_code.h"
#include "runtime/data/decode/jpeg/inverse_transform.h"
#include "runtime/data/decode/jpeg/scan_kernel.h"
#include "runtime/data/decode/jpeg/sequential_scan.h"
#include "runtime/data/image.h"

namespace tutti::data {

class SequentialReader {
 public:
  // The processor must have `set`; the bits are the same with each.
  explicit SequentialReader(base::InstructionSet set = base::UsableInstructionSet());
  // Returns the planes of the coded units that `region` (pixels, inside of the image) touches, in
  // own memory, valid until the next call. What lies below the last of these rows is not read.
  std::optional<Planes> Read(const SequentialScan& scan, const Region& region);

 private:
  struct alignas(64) Line {
    int16_t coefficients[32];
  };
  // Coded units by their place: columns [left, right) and rows [top, bottom), of `across` x `down`.
  struct Grid {
    int left = 0, right = 0, top = 0, bottom = 0, across = 0, down = 0;
  };

  bool MakeTables(const SequentialScan& scan);
  void ListBlocks(const SequentialScan& scan);
  Planes ShapePlanes(const SequentialScan& scan);
  bool ReadRow(bool wanted);
  bool Take(int count, bool wanted);
  bool NextPiece();
  ptrdiff_t BitsLeft() const;
  bool EndsSoundly() const;
  bool StopsSoundly() const;
  void TransformRow(const SequentialScan& scan, const Planes& planes, int row) const;

  UnitReader* const read_units_;
  UnitReader* const skip_units_;
  BlockTransform* const transform_;
  Grid grid_;
  // Tables and what they were made of: the next image may have the same.
  struct {
    HuffmanCode code;
    int bits = 0;
    DcTable table;
  } dc_[NUM_HUFF_TBLS];
  struct {
    HuffmanCode code;
    int bits = 0;
    AcTable table;
  } ac_[NUM_HUFF_TBLS];
  std::vector<UnitBlock> blocks_;
  int16_t* row_[3] = {};  // coefficients of a row of units, by component: rows of blocks
  int last_dc_[3] = {};
  EntropyCode code_;
  EntropyCode::Piece piece_;
  BitSource source_;
  int interval_ = 0, left_in_piece_ = 0, restarts_ = 0;
  std::vector<Line> coefficients_;
  std::vector<uint8_t> samples_;
};

}  // namespace tutti::data
