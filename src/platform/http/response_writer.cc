#include "platform/http/response_writer.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/write.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/write.hpp>

#include "base/file.h"
#include "platform/http/beast.h"

namespace tutti::http {
namespace {

absl::Status Gone() { return absl::CancelledError("the client has gone"); }

// A value with a line break in it would start a header of its own.
std::string OneLine(std::string value) {
  std::replace_if(
      value.begin(), value.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
  return value;
}

}  // namespace

bool ResponseWriter::Send(const Response& response, const AnswerForm& form) {
  form_ = form;
  return SendAnyBody(response) && form_.keep_alive;
}

bool ResponseWriter::SendAnyBody(const Response& response) {
  if (response.stream) return SendChunked(response);
  if (!response.file.empty()) return SendFile(response);
  return SendHeader(response, response.body.size()) &&
         (form_.only_header || SendAll(response.body));
}

bool ResponseWriter::SendHeader(const Response& response, std::optional<uint64_t> length) {
  beast::http::response<beast::http::empty_body> header;
  header.result(static_cast<unsigned>(response.status));
  header.version(form_.http_1_0 ? 10 : 11);
  header.set(beast::http::field::server, "tutti");
  if (!response.content_type.empty()) {
    header.set(beast::http::field::content_type, OneLine(response.content_type));
  }
  for (const auto& [name, value] : response.headers) header.insert(name, OneLine(value));
  chunked_ = !length && !form_.http_1_0;
  if (!length && !chunked_) form_.keep_alive = false;
  header.keep_alive(form_.keep_alive);
  if (length && response.status != 204 && response.status != 304) header.content_length(*length);
  if (chunked_) header.chunked(true);
  beast::http::response_serializer<beast::http::empty_body> serializer(header);
  error_code code;
  socket_->ExpectMore(length.value_or(0) > 0 && !form_.only_header);
  beast::http::write_header(*socket_, serializer, code);
  socket_->ExpectMore(false);
  return !code;
}

bool ResponseWriter::SendAll(absl::string_view bytes) {
  error_code code;
  boost::asio::write(*socket_, boost::asio::buffer(bytes.data(), bytes.size()), code);
  return !code;
}

bool ResponseWriter::SendFile(const Response& response) {
  const auto file = base::Open(response.file, O_RDONLY);
  struct stat info;
  if (!file.ok() || ::fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return SendAnyBody(file.ok() ? ErrorResponse(404, "not_found", "not a file")
                                 : ErrorResponse(file.status()));
  }
  uint64_t left = static_cast<uint64_t>(info.st_size);
  if (!SendHeader(response, left)) return false;
  error_code code;
  while (left > 0 && !form_.only_header) {
    const size_t n = socket_->WriteFrom(file->get(), std::min<uint64_t>(left, 1 << 20), code);
    if (code || n == 0) return false;  // n == 0: the file was cut, the length cannot be kept
    left -= n;
  }
  return true;
}

bool ResponseWriter::SendChunked(const Response& response) {
  if (!SendHeader(response, std::nullopt)) return false;
  if (form_.only_header) return true;
  try {
    if (!response.stream(*this).ok()) return false;
  } catch (const std::exception& e) {
    spdlog::error("streamed answer: {}", e.what());
    return false;
  }
  return !chunked_ || SendAll("0\r\n\r\n");
}

absl::Status ResponseWriter::Write(absl::string_view bytes) {
  // Looked at each time: the kernel would take some bytes for a client that has gone.
  if (Closed()) return Gone();
  if (bytes.empty()) return absl::OkStatus();  // an empty chunk would end the body
  error_code code;
  const boost::asio::const_buffer piece(bytes.data(), bytes.size());
  if (chunked_) {
    boost::asio::write(*socket_, beast::http::make_chunk(piece), code);
  } else {
    boost::asio::write(*socket_, piece, code);
  }
  return code ? Gone() : absl::OkStatus();
}

}  // namespace tutti::http
