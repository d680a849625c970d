#include "runtime/data/decode/jpeg/jpeg.h"

#include <csetjmp>
#include <cstdio>
// jpeglib.h needs <cstdio> before it.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/data/decode/jpeg/jpeg_pieces.h"
#include "runtime/data/decode/jpeg/planes.h"
#include "runtime/data/decode/jpeg/sequential_reader.h"

namespace tutti::data {
namespace {

constexpr int kMaxScans = 100;  // of a progressive file; each costs a pass over the whole image

// Adobe writes CMYK inverted; ink absorbs light in proportion.
void CmykToRgb(uint8_t* pixels, size_t count, bool inverted) {
  for (uint8_t* p = pixels; p != pixels + count * kBytesPerPixel; p += kBytesPerPixel) {
    const unsigned flip = inverted ? 0 : 255, k = p[3] ^ flip;
    for (int c = 0; c < 3; ++c) p[c] = static_cast<uint8_t>(((p[c] ^ flip) * k + 127) / 255);
  }
}

}  // namespace

// libjpeg calls back with the address of its own structs, which are the first members of ours.
struct JpegDecoder::State {
  jpeg_error_mgr errors;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
  jpeg_progress_mgr progress;
  jpeg_decompress_struct info;
  bool created = false;
  int64_t max_pixels;
  std::vector<uint8_t> pixels;  // or planes
  std::vector<uint8_t> split;   // of a CMYK image
  absl::string_view encoded;
  JpegPieces pieces;
  bool reads_plain_scans = true;
  SequentialReader reader;

  [[noreturn]] static void Fail(jpeg_common_struct* info) {
    State& state = *reinterpret_cast<State*>(info->err);
    info->err->format_message(info, state.message);
    std::longjmp(state.jump, 1);
  }
  // Level -1 is a warning of corrupt data. Two of them are about headers that nobody needs.
  static void Message(jpeg_common_struct* info, int level) {
    const int code = info->err->msg_code;
    if (level < 0 && code != JWRN_JFIF_MAJOR && code != JWRN_ADOBE_XFORM) Fail(info);
  }
  static void Progress(jpeg_common_struct* info) {
    const auto* decompress = reinterpret_cast<jpeg_decompress_struct*>(info);
    if (decompress->input_scan_number <= kMaxScans) return;
    State& state = *reinterpret_cast<State*>(info->err);
    std::snprintf(state.message, sizeof state.message, "more than %d scans", kMaxScans);
    std::longjmp(state.jump, 1);
  }

  // Runs calls into libjpeg; false if one of them failed, with its text in `message`. `calls` must
  // own nothing that needs a destructor: longjmp runs none.
  template <typename Calls>
  [[gnu::noinline]] bool Run(const Calls& calls) {
    if (setjmp(jump) != 0) return false;
    calls();
    return true;
  }
};

JpegDecoder::JpegDecoder(int64_t max_pixels, Reader reader) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.reads_plain_scans = reader == Reader::kFastest;
  s.max_pixels = max_pixels;
  s.info.err = jpeg_std_error(&s.errors);
  s.errors.error_exit = &State::Fail;
  s.errors.emit_message = &State::Message;
  s.created = s.Run([&s] { jpeg_create_decompress(&s.info); });
  s.progress.progress_monitor = &State::Progress;
  s.info.progress = &s.progress;
}

JpegDecoder::~JpegDecoder() {
  if (state_->created) jpeg_destroy_decompress(&state_->info);
}

absl::Status JpegDecoder::Failure() const {
  State& s = *state_;
  absl::Status status = absl::DataLossError(absl::StrCat("damaged JPEG: ", s.message));
  jpeg_abort_decompress(&s.info);
  return status;
}

absl::StatusOr<ImageSize> JpegDecoder::Open(absl::string_view encoded) {
  State& s = *state_;
  if (!s.created) return absl::ResourceExhaustedError("no memory for a JPEG decoder");
  if (!absl::StartsWith(encoded, "\xff\xd8\xff")) return absl::InvalidArgumentError("not a JPEG");
  jpeg_abort_decompress(&s.info);
  s.encoded = encoded;
  const bool read = s.Run([&] {
    jpeg_mem_src(&s.info, reinterpret_cast<const unsigned char*>(encoded.data()), encoded.size());
    jpeg_read_header(&s.info, TRUE);
  });
  if (!read) return Failure();
  const ImageSize size{static_cast<int>(s.info.image_width), static_cast<int>(s.info.image_height)};
  if (int64_t{size.width} * size.height > s.max_pixels) {
    return absl::InvalidArgumentError(absl::StrCat("a JPEG of ", size.width, "x", size.height,
                                                   " pixels; the most is ", s.max_pixels));
  }
  if (s.info.jpeg_color_space == JCS_UNKNOWN) {
    return absl::InvalidArgumentError(
        absl::StrCat("a JPEG of ", s.info.num_components,
                     " components; supported: grey, RGB, YCbCr, CMYK, YCCK"));
  }
  return size;
}

void JpegDecoder::StartDecoding(int denominator) {
  jpeg_decompress_struct& info = state_->info;
  const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = cmyk ? JCS_CMYK : JCS_EXT_RGBX;
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(denominator);
  jpeg_start_decompress(&info);
}

// Whole blocks, and one more on either side: upsampling the chroma of a block's edge looks at its
// neighbour, so with the margin the asked columns have the bits of a full decode.
void JpegDecoder::CropColumns(int left, int right, DecodedRegion& decoded) {
  jpeg_decompress_struct& info = state_->info;
  const int width = static_cast<int>(info.output_width);
  const int block = info.max_h_samp_factor * info.min_DCT_scaled_size;
  left = std::max(0, left - block);
  right = std::min(width, right + block);
  JDIMENSION offset = static_cast<JDIMENSION>(left);
  JDIMENSION count = static_cast<JDIMENSION>(right - left);
  if (right - left < width) jpeg_crop_scanline(&info, &offset, &count);
  decoded.left = static_cast<int>(offset);
  decoded.view.width = static_cast<int>(count);
}

void JpegDecoder::ReadRows(int top, int bottom, DecodedRegion& decoded) {
  jpeg_decompress_struct& info = state_->info;
  if (top > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(top));
  const size_t stride = static_cast<size_t>(decoded.view.width) * kBytesPerPixel;
  for (int y = top; y < bottom;) {
    JSAMPROW rows[16];
    const int wanted = std::min(16, bottom - y);
    for (int i = 0; i < wanted; ++i) {
      rows[i] = state_->pixels.data() + static_cast<size_t>(y - top + i) * stride;
    }
    y += static_cast<int>(jpeg_read_scanlines(&info, rows, static_cast<JDIMENSION>(wanted)));
  }
  if (info.output_scanline == info.output_height) {
    jpeg_finish_decompress(&info);
  } else {
    jpeg_abort_decompress(&info);
  }
}

// Lays the planes of the rows that hold [top, bottom), in units of whole blocks, into `pixels`.
absl::Status JpegDecoder::ShapePlanes(int top, int bottom, Planes& planes) {
  State& s = *state_;
  const int lines = s.info.max_v_samp_factor * s.info.min_DCT_scaled_size;
  const int first = top / lines, last = (bottom + lines - 1) / lines;
  planes.colors = s.info.num_components == 1             ? Colors::kGrey
                  : s.info.jpeg_color_space == JCS_YCbCr ? Colors::kYCbCr
                                                         : Colors::kRgb;
  size_t offsets[3] = {}, bytes = 0;
  for (int c = 0; c < planes.count(); ++c) {
    const jpeg_component_info& component = s.info.comp_info[c];
    const int across = component.h_samp_factor * component.DCT_scaled_size;
    const int down = component.v_samp_factor * component.DCT_scaled_size;
    const int columns = s.info.max_h_samp_factor * s.info.min_DCT_scaled_size;
    if (columns % across != 0 || lines % down != 0) {
      jpeg_abort_decompress(&s.info);
      return absl::InvalidArgumentError("a JPEG whose colour is sampled at a fraction of a pixel");
    }
    Plane& plane = planes.plane[c];
    plane.stride = component.width_in_blocks * static_cast<size_t>(component.DCT_scaled_size);
    plane.top = first * down;
    plane.whole = {static_cast<int>(component.downsampled_width),
                   static_cast<int>(component.downsampled_height)};
    plane.across = columns / across;
    plane.down = lines / down;
    offsets[c] = bytes;
    bytes += plane.stride * static_cast<size_t>((last - first) * down);
  }
  if (s.pixels.size() < bytes + kPlanePadding) s.pixels.resize(bytes + kPlanePadding);
  for (int c = 0; c < planes.count(); ++c) planes.plane[c].samples = s.pixels.data() + offsets[c];
  return absl::OkStatus();
}

// The rows of blocks [first, last); those above are passed over without their inverse transform,
// which libjpeg leaves out for a component that is not needed.
void JpegDecoder::ReadPlanes(int first, int last, const Planes& planes) {
  jpeg_decompress_struct& info = state_->info;
  constexpr int kMaxRows = MAX_SAMP_FACTOR * DCTSIZE;
  JSAMPROW rows[3][kMaxRows];
  JSAMPARRAY components[3] = {rows[0], rows[1], rows[2]};
  const int lines = info.max_v_samp_factor * info.min_DCT_scaled_size;
  for (int block = 0; block < last; ++block) {
    for (int c = 0; c < planes.count(); ++c) {
      info.comp_info[c].component_needed = block >= first ? TRUE : FALSE;
      const Plane& plane = planes.plane[c];
      const int down = lines / plane.down;
      const int above = std::max(0, block - first) * down;
      for (int y = 0; y < down; ++y) {
        rows[c][y] =
            const_cast<uint8_t*>(plane.samples) + static_cast<size_t>(above + y) * plane.stride;
      }
    }
    jpeg_read_raw_data(&info, components, static_cast<JDIMENSION>(lines));
  }
  if (info.output_scanline >= info.output_height) {
    jpeg_finish_decompress(&info);
  } else {
    jpeg_abort_decompress(&info);
  }
}

absl::StatusOr<Planes> JpegDecoder::DecodeOpened(const Region& region, int denominator) {
  State& s = *state_;
  std::optional<SequentialScan> scan;
  if (s.reads_plain_scans && !s.Run([&] { scan = FindSequentialScan(s.info, denominator); })) {
    return Failure();
  }
  if (scan) {
    if (const std::optional<Planes> planes = s.reader.Read(*scan, region)) return *planes;
  }
  const bool started = s.Run([&] {
    s.info.raw_data_out = TRUE;
    StartDecoding(denominator);
  });
  if (!started) return Failure();
  const int height = static_cast<int>(s.info.output_height);
  const int top = region.top / denominator;
  const int bottom = std::min(height, (region.top + region.height + denominator - 1) / denominator);
  Planes planes;
  TUTTI_RETURN_IF_ERROR(ShapePlanes(top, bottom, planes));
  const int lines = s.info.max_v_samp_factor * s.info.min_DCT_scaled_size;
  const int first = top / lines, last = (bottom + lines - 1) / lines;
  if (!s.Run([&] { ReadPlanes(first, last, planes); })) return Failure();
  return planes;
}

// Goes on with the JPEG of a part; false if the image cannot be cut.
absl::StatusOr<bool> JpegDecoder::OpenPart(const Region& part) {
  State& s = *state_;
  const absl::string_view cut = s.pieces.Cut(part);
  if (cut.empty()) return false;
  jpeg_abort_decompress(&s.info);
  const bool read = s.Run([&] {
    jpeg_mem_src(&s.info, reinterpret_cast<const unsigned char*>(cut.data()), cut.size());
    jpeg_read_header(&s.info, TRUE);
  });
  if (!read) return Failure();
  return true;
}

absl::StatusOr<Planes> JpegDecoder::DecodePlanes(const Region& region, int denominator) {
  State& s = *state_;
  if (s.info.jpeg_color_space == JCS_CMYK || s.info.jpeg_color_space == JCS_YCCK) {
    TUTTI_ASSIGN_OR_RETURN(const DecodedRegion decoded, Decode(region, denominator));
    return SplitIntoPlanes(decoded.view, decoded.left, decoded.top, decoded.full, s.split);
  }
  // Enlarging colour looks at one sample more, two pixels.
  const ImageSize size{static_cast<int>(s.info.image_width), static_cast<int>(s.info.image_height)};
  const int margin = 2 * denominator;
  Region wanted{std::max(0, region.left - margin), std::max(0, region.top - margin)};
  wanted.width = std::min(size.width, region.left + region.width + margin) - wanted.left;
  wanted.height = std::min(size.height, region.top + region.height + margin) - wanted.top;
  if (s.info.restart_interval == 0 || s.info.progressive_mode || !s.pieces.Open(s.encoded)) {
    return DecodeOpened(wanted, denominator);
  }
  const Region part = s.pieces.Around(wanted);
  TUTTI_ASSIGN_OR_RETURN(const bool is_cut, OpenPart(part));
  if (!is_cut) return DecodeOpened(wanted, denominator);
  TUTTI_ASSIGN_OR_RETURN(Planes planes, DecodeOpened({0, 0, part.width, part.height}, denominator));
  for (int c = 0; c < planes.count(); ++c) {
    Plane& plane = planes.plane[c];
    const auto samples = [denominator](int pixels, int ratio) {
      return (pixels + denominator * ratio - 1) / (denominator * ratio);
    };
    plane.left = samples(part.left, plane.across);
    plane.top = samples(part.top, plane.down);
    plane.whole = {samples(size.width, plane.across), samples(size.height, plane.down)};
  }
  return planes;
}

absl::StatusOr<DecodedRegion> JpegDecoder::Decode(const Region& region, int denominator) {
  State& s = *state_;
  const int left = region.left / denominator, top = region.top / denominator;
  const int right = (region.left + region.width + denominator - 1) / denominator;
  const int bottom = (region.top + region.height + denominator - 1) / denominator;
  DecodedRegion decoded{.top = top};
  const bool started = s.Run([&] {
    StartDecoding(denominator);
    CropColumns(left, right, decoded);
  });
  if (!started) return Failure();
  decoded.full = {static_cast<int>((s.info.image_width + denominator - 1) / denominator),
                  static_cast<int>(s.info.output_height)};
  decoded.view.height = bottom - top;
  const size_t pixels = static_cast<size_t>(decoded.view.width) * (bottom - top);
  if (s.pixels.size() < pixels * kBytesPerPixel) s.pixels.resize(pixels * kBytesPerPixel);
  const bool cmyk = s.info.out_color_space == JCS_CMYK, inverted = s.info.saw_Adobe_marker;
  if (!s.Run([&] { ReadRows(top, bottom, decoded); })) return Failure();
  if (cmyk) CmykToRgb(s.pixels.data(), pixels, inverted);
  decoded.view.pixels = s.pixels.data();
  return decoded;
}

}  // namespace tutti::data
