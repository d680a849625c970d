#include "runtime/data/decode/jpeg/sequential_scan.h"

#include <algorithm>

namespace tutti::data {
namespace {

constexpr int kMaxBlocksInUnit = D_MAX_BLOCKS_IN_MCU;

// One scan of 8 bits in sequence, of Huffman code, with all components in their order.
bool IsPlain(const jpeg_decompress_struct& info) {
  const bool one_scan = info.comps_in_scan == info.num_components && info.Ss == 0 &&
                        info.Se == DCTSIZE2 - 1 && info.Ah == 0 && info.Al == 0;
  if (!one_scan || info.progressive_mode || info.arith_code || info.data_precision != 8)
    return false;
  if (info.num_components != 1 && info.num_components != 3) return false;
  for (int c = 0; c < info.num_components; ++c) {
    if (info.cur_comp_info[c] != &info.comp_info[c]) return false;
  }
  return info.jpeg_color_space == JCS_GRAYSCALE || info.jpeg_color_space == JCS_YCbCr ||
         info.jpeg_color_space == JCS_RGB;
}

bool CopyCode(const JHUFF_TBL* table, HuffmanCode& to) {
  if (table == nullptr) return false;
  std::copy_n(table->bits, to.counts.size(), to.counts.begin());
  std::copy_n(table->huffval, to.symbols.size(), to.symbols.begin());
  to.counts[0] = 0;
  return true;
}

bool CopyComponent(const jpeg_decompress_struct& info, int c, SequentialScan& scan) {
  const jpeg_component_info& from = info.comp_info[c];
  const auto in_range = [](int table, int tables) { return table >= 0 && table < tables; };
  if (!in_range(from.dc_tbl_no, NUM_HUFF_TBLS) || !in_range(from.ac_tbl_no, NUM_HUFF_TBLS) ||
      !in_range(from.quant_tbl_no, NUM_QUANT_TBLS)) {
    return false;
  }
  ScanComponent& to = scan.component[c];
  to.across = from.h_samp_factor;
  to.down = from.v_samp_factor;
  to.block = from.DCT_scaled_size;
  to.whole = {static_cast<int>(from.downsampled_width), static_cast<int>(from.downsampled_height)};
  to.dc_table = from.dc_tbl_no;
  to.ac_table = from.ac_tbl_no;
  const int across = to.across * to.block, down = to.down * to.block;
  const int columns = info.max_h_samp_factor * info.min_DCT_scaled_size;
  const int rows = info.max_v_samp_factor * info.min_DCT_scaled_size;
  const JQUANT_TBL* const steps = info.quant_tbl_ptrs[from.quant_tbl_no];
  if (columns % across != 0 || rows % down != 0 || steps == nullptr) return false;
  to.pixels_x = columns / across;
  to.pixels_y = rows / down;
  to.steps = steps->quantval;
  return CopyCode(info.dc_huff_tbl_ptrs[to.dc_table], scan.dc[to.dc_table]) &&
         CopyCode(info.ac_huff_tbl_ptrs[to.ac_table], scan.ac[to.ac_table]);
}

}  // namespace

std::optional<SequentialScan> FindSequentialScan(jpeg_decompress_struct& info, int denominator) {
  if (!IsPlain(info)) return std::nullopt;
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(denominator);
  jpeg_calc_output_dimensions(&info);
  SequentialScan scan;
  scan.code = {reinterpret_cast<const char*>(info.src->next_input_byte), info.src->bytes_in_buffer};
  scan.size = {static_cast<int>(info.image_width), static_cast<int>(info.image_height)};
  scan.unit = {info.max_h_samp_factor * DCTSIZE, info.max_v_samp_factor * DCTSIZE};
  scan.restart_interval = static_cast<int>(info.restart_interval);
  scan.components = info.num_components;
  scan.colors = info.num_components == 1             ? Colors::kGrey
                : info.jpeg_color_space == JCS_YCbCr ? Colors::kYCbCr
                                                     : Colors::kRgb;
  int blocks = 0;
  for (int c = 0; c < scan.components; ++c) {
    if (!CopyComponent(info, c, scan)) return std::nullopt;
    blocks += scan.component[c].across * scan.component[c].down;
  }
  // libjpeg orders the blocks of a single component as if its sampling were 1 x 1.
  if (blocks > kMaxBlocksInUnit || (scan.components == 1 && blocks != 1)) return std::nullopt;
  return scan;
}

}  // namespace tutti::data
