#include "runtime/data/decode/jpeg/sequential_reader.h"

#include <algorithm>
#include <climits>

namespace tutti::data {
namespace {

constexpr int kFirstRestartMarker = 0xD0, kEndMarker = 0xD9;
constexpr ptrdiff_t kReadAheadBits = 256;  // more than libjpeg-turbo does

// Large tables are fast to read with, but are made for each image anew: few are coded alike.
int TableBits(size_t bytes) { return bytes < 8192 ? 8 : bytes < 32768 ? 10 : 11; }
constexpr int kDcBits = 10;

int DivideUp(int value, int by) { return (value + by - 1) / by; }

}  // namespace

SequentialReader::SequentialReader(base::InstructionSet set)
    : read_units_(kReadUnits.For(set)),
      skip_units_(kSkipUnits.For(set)),
      transform_(kInverseTransform.For(set)) {}

bool SequentialReader::MakeTables(const SequentialScan& scan) {
  const int ac_bits = TableBits(scan.code.size()), dc_bits = std::min(ac_bits, kDcBits);
  for (int c = 0; c < scan.components; ++c) {
    const ScanComponent& component = scan.component[c];
    auto& dc = dc_[component.dc_table];
    const HuffmanCode& dc_code = scan.dc[component.dc_table];
    if (dc.bits != dc_bits || dc.code != dc_code) {
      dc.bits = 0;
      if (!MakeDcTable(dc_code, dc_bits, dc.table)) return false;
      dc.code = dc_code;
      dc.bits = dc_bits;
    }
    auto& ac = ac_[component.ac_table];
    const HuffmanCode& ac_code = scan.ac[component.ac_table];
    if (ac.bits != ac_bits || ac.code != ac_code) {
      ac.bits = 0;
      if (!MakeAcTable(ac_code, ac_bits, ac.table)) return false;
      ac.code = ac_code;
      ac.bits = ac_bits;
    }
  }
  return true;
}

// The blocks of a unit, and where those of the wanted units in a row have their coefficients.
void SequentialReader::ListBlocks(const SequentialScan& scan) {
  const auto columns = static_cast<size_t>(grid_.right - grid_.left);
  size_t lines = 0, begins[3] = {};
  for (int c = 0; c < scan.components; ++c) {
    const ScanComponent& component = scan.component[c];
    begins[c] = lines;
    lines += 2 * columns * static_cast<size_t>(component.across * component.down);
  }
  if (coefficients_.size() < lines) coefficients_.resize(lines);
  blocks_.clear();
  for (int c = 0; c < scan.components; ++c) {
    const ScanComponent& component = scan.component[c];
    const auto across = static_cast<size_t>(component.across);
    row_[c] = coefficients_[begins[c]].coefficients;
    for (int y = 0; y < component.down; ++y) {
      for (size_t x = 0; x < across; ++x) {
        blocks_.push_back(
            {.dc = &dc_[component.dc_table].table,
             .ac = &ac_[component.ac_table].table,
             .component = c,
             .coefficients = row_[c] + 64 * (static_cast<size_t>(y) * columns * across + x),
             .step = 64 * component.across});
      }
    }
  }
}

Planes SequentialReader::ShapePlanes(const SequentialScan& scan) {
  Planes planes{.colors = scan.colors};
  size_t begins[3] = {}, bytes = kPlanePadding;
  for (int c = 0; c < scan.components; ++c) {
    const ScanComponent& component = scan.component[c];
    const int width = component.across * component.block, height = component.down * component.block;
    Plane& plane = planes.plane[c];
    plane.stride = static_cast<size_t>((grid_.right - grid_.left) * width);
    plane.left = grid_.left * width;
    plane.top = grid_.top * height;
    plane.whole = component.whole;
    plane.across = component.pixels_x;
    plane.down = component.pixels_y;
    begins[c] = bytes;
    bytes += plane.stride * static_cast<size_t>((grid_.bottom - grid_.top) * height);
  }
  if (samples_.size() < bytes + kPlanePadding) samples_.resize(bytes + kPlanePadding);
  for (int c = 0; c < scan.components; ++c) planes.plane[c].samples = samples_.data() + begins[c];
  return planes;
}

// Returns how many bits are left of the piece; negative if more were read than it has.
ptrdiff_t SequentialReader::BitsLeft() const {
  return static_cast<ptrdiff_t>(piece_.size) * 8 - source_.Used();
}

bool SequentialReader::EndsSoundly() const { return BitsLeft() >= 0 && BitsLeft() < 8; }

// Behind the last row that was wanted. libjpeg goes on to the end of the image from its last row,
// and elsewhere reads so far ahead that it notices the file's end.
bool SequentialReader::StopsSoundly() const {
  if (grid_.bottom == grid_.down) return EndsSoundly() && piece_.marker == kEndMarker;
  return BitsLeft() >= (piece_.marker == 0 ? kReadAheadBits : 0);
}

// The first piece, or the one behind the restart marker that must stand here.
bool SequentialReader::NextPiece() {
  if (restarts_ > 0 &&
      (!EndsSoundly() || piece_.marker != kFirstRestartMarker + (restarts_ - 1) % 8)) {
    return false;
  }
  ++restarts_;
  piece_ = code_.Next();
  source_ = {.next = piece_.bytes, .begin = piece_.bytes, .end = piece_.bytes + piece_.size};
  left_in_piece_ = interval_;
  std::fill_n(last_dc_, 3, 0);
  return true;
}

bool SequentialReader::Take(int count, bool wanted) {
  for (int done = 0; done < count;) {
    if (left_in_piece_ == 0 && !NextPiece()) return false;
    const int now = std::min(count - done, left_in_piece_);
    const Units units{blocks_.data(), static_cast<int>(blocks_.size()), last_dc_, done};
    if (!(wanted ? read_units_ : skip_units_)(units, now, source_)) return false;
    left_in_piece_ -= now;
    done += now;
  }
  return true;
}

bool SequentialReader::ReadRow(bool wanted) {
  if (!wanted) return Take(grid_.across, false);
  return Take(grid_.left, false) && Take(grid_.right - grid_.left, true) &&
         Take(grid_.across - grid_.right, false);
}

// `row` counts from the first wanted one.
void SequentialReader::TransformRow(const SequentialScan& scan, const Planes& planes,
                                    int row) const {
  for (int c = 0; c < scan.components; ++c) {
    const ScanComponent& component = scan.component[c];
    const int blocks = (grid_.right - grid_.left) * component.across;
    const Plane& plane = planes.plane[c];
    for (int y = 0; y < component.down; ++y) {
      const int first = (row * component.down + y) * component.block;
      uint8_t* const to =
          const_cast<uint8_t*>(plane.samples) + static_cast<size_t>(first) * plane.stride;
      transform_(row_[c] + static_cast<ptrdiff_t>(64) * y * blocks, blocks, component.steps,
                 component.block, to, plane.stride);
    }
  }
}

std::optional<Planes> SequentialReader::Read(const SequentialScan& scan, const Region& region) {
  if (!MakeTables(scan)) return std::nullopt;
  grid_ = {.left = region.left / scan.unit.width,
           .right = DivideUp(region.left + region.width, scan.unit.width),
           .top = region.top / scan.unit.height,
           .bottom = DivideUp(region.top + region.height, scan.unit.height),
           .across = DivideUp(scan.size.width, scan.unit.width),
           .down = DivideUp(scan.size.height, scan.unit.height)};
  ListBlocks(scan);
  const Planes planes = ShapePlanes(scan);
  code_.Open(scan.code);
  interval_ = scan.restart_interval > 0 ? scan.restart_interval : INT_MAX;
  left_in_piece_ = restarts_ = 0;
  for (int y = 0; y < grid_.bottom; ++y) {
    if (!ReadRow(y >= grid_.top)) return std::nullopt;
    if (y >= grid_.top) TransformRow(scan, planes, y - grid_.top);
  }
  if (!StopsSoundly()) return std::nullopt;
  return planes;
}

}  // namespace tutti::data
