// CutIntoPieces: JPEG to JPEG by libjpeg-turbo, coefficient by coefficient.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
// jpeglib.h needs <cstdio> before it.
#include <jpeglib.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/data/decode/jpeg/jpeg_pieces.h"

namespace tutti::data {
namespace {

// libjpeg calls back with the address of its own struct, the first member.
struct TranscodeErrors {
  jpeg_error_mgr errors;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void LeaveTranscoding(jpeg_common_struct* info) {
  auto* errors = reinterpret_cast<TranscodeErrors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->jump, 1);
}

void WarningsAreErrors(jpeg_common_struct* info, int level) {
  if (level < 0) LeaveTranscoding(info);
}

// A divisor of the units in a row, near 4: smaller pieces cost bytes, larger ones cut less well.
unsigned PieceOf(unsigned units) {
  for (const unsigned piece : {4u, 5u, 3u, 6u, 7u, 2u}) {
    if (units % piece == 0) return piece;
  }
  return units;
}

struct Transcoding {
  bool supported = true;
  TranscodeErrors errors;
  jpeg_decompress_struct from;
  jpeg_compress_struct to;
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
};

// Owns nothing that needs a destructor: longjmp runs none. False: `errors` has the message.
bool Transcode(absl::string_view jpeg, Transcoding& t) {
  t.from.err = t.to.err = jpeg_std_error(&t.errors.errors);
  t.errors.errors.error_exit = &LeaveTranscoding;
  t.errors.errors.emit_message = &WarningsAreErrors;
  jpeg_create_decompress(&t.from);
  jpeg_create_compress(&t.to);
  if (setjmp(t.errors.jump) != 0) return false;
  jpeg_mem_src(&t.from, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&t.from, TRUE);
  if (t.from.num_components != 1 && t.from.num_components != 3) {
    t.supported = false;
    return false;
  }
  jvirt_barray_ptr* coefficients = jpeg_read_coefficients(&t.from);
  jpeg_copy_critical_parameters(&t.from, &t.to);
  const unsigned block = t.from.num_components == 1
                             ? DCTSIZE
                             : DCTSIZE * static_cast<unsigned>(t.from.max_h_samp_factor);
  t.to.restart_interval = PieceOf((t.from.image_width + block - 1) / block);
  t.to.optimize_coding = TRUE;
  jpeg_mem_dest(&t.to, &t.bytes, &t.size);
  jpeg_write_coefficients(&t.to, coefficients);
  jpeg_finish_compress(&t.to);
  jpeg_finish_decompress(&t.from);
  return true;
}

}  // namespace

absl::StatusOr<std::string> CutIntoPieces(absl::string_view jpeg) {
  if (!absl::StartsWith(jpeg, "\xff\xd8\xff")) return absl::InvalidArgumentError("not a JPEG");
  Transcoding t;
  const bool done = Transcode(jpeg, t);
  std::string result;
  if (done) result.assign(reinterpret_cast<char*>(t.bytes), t.size);
  jpeg_destroy_compress(&t.to);
  jpeg_destroy_decompress(&t.from);
  std::free(t.bytes);
  if (done) return result;
  if (!t.supported) return absl::InvalidArgumentError("a JPEG of four colours stays as it is");
  return absl::DataLossError(absl::StrCat("cannot be rewritten: ", t.errors.message));
}

}  // namespace tutti::data
