#include "runtime/data/decode/jpeg/jpeg_encoder.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
// jpeglib.h needs <cstdio> before it.
#include <jpeglib.h>

#include "absl/strings/str_cat.h"

namespace tutti::data {
namespace {

// libjpeg calls back with the address of its own struct, the first member.
struct EncoderErrors {
  jpeg_error_mgr errors;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void LeaveEncoder(jpeg_common_struct* info) {
  auto* errors = reinterpret_cast<EncoderErrors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->jump, 1);
}

struct Encoded {
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
};

// Owns nothing that needs a destructor: longjmp runs none.
bool Encode(const uint8_t* rgb, ImageSize size, int quality, EncoderErrors& errors,
            Encoded& encoded) {
  jpeg_compress_struct info;
  info.err = jpeg_std_error(&errors.errors);
  errors.errors.error_exit = &LeaveEncoder;
  jpeg_create_compress(&info);
  if (setjmp(errors.jump) != 0) {
    jpeg_destroy_compress(&info);
    return false;
  }
  jpeg_mem_dest(&info, &encoded.bytes, &encoded.size);
  info.image_width = static_cast<JDIMENSION>(size.width);
  info.image_height = static_cast<JDIMENSION>(size.height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  info.optimize_coding = TRUE;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(rgb) +
                   size_t{info.next_scanline} * static_cast<size_t>(size.width) * 3;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  return true;
}

}  // namespace

absl::StatusOr<std::string> EncodeRgbAsJpeg(const uint8_t* rgb, ImageSize size, int quality) {
  EncoderErrors errors;
  Encoded encoded;
  const bool done = Encode(rgb, size, quality, errors, encoded);
  std::string jpeg;
  if (done) jpeg.assign(reinterpret_cast<char*>(encoded.bytes), encoded.size);
  std::free(encoded.bytes);
  if (done) return jpeg;
  return absl::InvalidArgumentError(absl::StrCat("cannot be a JPEG: ", errors.message));
}

}  // namespace tutti::data
