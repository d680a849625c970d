// FindSequentialScan parses the plain kind of JPEG, which nearly all photographs are: one scan of
// Huffman code with all components, in sequence, 8 bits a sample.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
// jpeglib.h needs <cstdio> before it.
#include <jpeglib.h>

#include "absl/strings/string_view.h"
#include "runtime/data/decode/jpeg/huffman.h"
#include "runtime/data/image.h"

namespace tutti::data {

struct ScanComponent {
  int across = 1, down = 1;         // blocks in a coded unit
  int block = 8;                    // samples of a block's side as it is asked for: 8, 4, 2 or 1
  int pixels_x = 1, pixels_y = 1;   // as Plane's across and down
  ImageSize whole;                  // in samples
  const uint16_t* steps = nullptr;  // of quantisation, 64 in rows; libjpeg's
  int dc_table = 0, ac_table = 0;   // which of the scan's
};

struct SequentialScan {
  absl::string_view code;  // from the scan's first byte to the end of the file
  ImageSize size;          // pixels
  ImageSize unit;          // pixels of a coded unit
  int restart_interval = 0;
  Colors colors = Colors::kGrey;
  int components = 1;
  ScanComponent component[3];
  HuffmanCode dc[NUM_HUFF_TBLS], ac[NUM_HUFF_TBLS];  // those that components name
};

// Returns the scan of the image whose header libjpeg has read, scaled by 1/denominator (1, 2, 4 or
// 8); none if it is of another kind or there is any doubt: then it is libjpeg's to read. This is
// the one place where that is decided from a header. `info` and its file must live as long as the
// scan.
std::optional<SequentialScan> FindSequentialScan(jpeg_decompress_struct& info, int denominator);

}  // namespace tutti::data
