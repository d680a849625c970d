#include "http/server/response_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "http/beast.h"

namespace tutti::http {
namespace {

constexpr size_t kFilePart = 256 << 10;

// A value with a line break in it would start a header of its own.
std::string OneLine(std::string value) {
  std::replace_if(
      value.begin(), value.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
  return value;
}

}  // namespace

void ResponseWriter::Clear() {
  bytes_.clear();
  sent_ = 0;
}

void ResponseWriter::Begin(const Response& response, const AnswerForm& form) {
  form_ = form;
  Clear();
  file_.reset();
  complete_ = !response.stream || form_.only_header;
  if (response.stream) {
    AddHeader(response, std::nullopt);
  } else if (!response.file.empty()) {
    BeginFile(response);
  } else {
    AddHeader(response, response.body.size());
    if (!form_.only_header) bytes_ += response.body;
  }
}

void ResponseWriter::AddHeader(const Response& response, std::optional<uint64_t> length) {
  status_ = response.status;
  chunked_ = !length && !form_.http_1_0;
  if (!length && !chunked_) form_.keep_alive = false;
  const auto reason = beast::http::obsolete_reason(
      beast::http::int_to_status(static_cast<unsigned>(response.status)));
  absl::StrAppend(&bytes_, form_.http_1_0 ? "HTTP/1.0 " : "HTTP/1.1 ", response.status, " ",
                  Text(reason), "\r\nServer: tutti\r\n");
  if (!response.content_type.empty()) {
    absl::StrAppend(&bytes_, "Content-Type: ", OneLine(response.content_type), "\r\n");
  }
  for (const auto& [name, value] : response.headers) {
    absl::StrAppend(&bytes_, name, ": ", OneLine(value), "\r\n");
  }
  if (form_.keep_alive == form_.http_1_0) {  // other than what the version means by itself
    absl::StrAppend(&bytes_, "Connection: ", form_.keep_alive ? "keep-alive" : "close", "\r\n");
  }
  if (chunked_) {
    bytes_ += "Transfer-Encoding: chunked\r\n";
  } else if (length && response.status != 204 && response.status != 304) {
    absl::StrAppend(&bytes_, "Content-Length: ", *length, "\r\n");
  }
  bytes_ += "\r\n";
}

void ResponseWriter::BeginFile(const Response& response) {
  auto file = base::Open(response.file, O_RDONLY);
  struct stat info;
  if (!file.ok() || ::fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Begin(
        file.ok() ? ErrorResponse(404, "not_found", "not a file") : ErrorResponse(file.status()),
        form_);
  }
  left_ = static_cast<uint64_t>(info.st_size);
  AddHeader(response, left_);
  if (left_ == 0 || form_.only_header) return;
  complete_ = false;
  file_ = *std::move(file);
}

absl::Status ResponseWriter::AddFromFile() {
  Clear();
  bytes_.resize(std::min<uint64_t>(left_, kFilePart));
  ssize_t n;
  do {
    n = ::read(file_.get(), bytes_.data(), bytes_.size());
  } while (n < 0 && errno == EINTR);
  if (n < 0) return base::ErrnoStatus("read");
  if (n == 0) return absl::DataLossError("the file has become shorter");
  bytes_.resize(static_cast<size_t>(n));
  left_ -= static_cast<uint64_t>(n);
  complete_ = left_ == 0;
  if (complete_) file_.reset();
  return absl::OkStatus();
}

void ResponseWriter::Add(const Piece& piece) {
  Clear();
  complete_ = piece.last;
  if (!chunked_) {
    bytes_ = piece.bytes;
    return;
  }
  if (!piece.bytes.empty()) {  // an empty chunk would end the body
    absl::StrAppend(&bytes_, absl::Hex(piece.bytes.size()), "\r\n", piece.bytes, "\r\n");
  }
  if (piece.last) bytes_ += "0\r\n\r\n";
}

}  // namespace tutti::http
