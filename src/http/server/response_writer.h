// ResponseWriter turns the answers of one connection into bytes, a part at a time: each part must
// be sent before the next is added. Internal to this room. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/unique_fd.h"
#include "http/message.h"
#include "http/server/request_reader.h"

namespace tutti::http {

class ResponseWriter {
 public:
  // Begins an answer with its header, and with its body if that is in memory. If the body is a
  // file, opens it; if that fails, the answer says so. `response` must live until the answer is
  // complete.
  void Begin(const Response& response, const AnswerForm& form);
  const AnswerForm& form() const { return form_; }
  int status() const { return status_; }  // of the answer that was begun

  // Returns the bytes that are to be sent now.
  absl::string_view unsent() const { return absl::string_view(bytes_).substr(sent_); }
  void Sent(size_t bytes) { sent_ += bytes; }
  // Returns whether nothing follows the part that was added last.
  bool complete() const { return complete_; }
  bool has_file() const { return file_.valid(); }

  // Adds the next part, from the file (DataLoss if it has become shorter) or of a stream.
  absl::Status AddFromFile();
  void Add(const Piece& piece);

 private:
  // Adds the header. Without a `length` the body is chunked (for HTTP/1.0 it lasts until the end of
  // the connection).
  void AddHeader(const Response& response, std::optional<uint64_t> length);
  void BeginFile(const Response& response);
  void Clear();

  AnswerForm form_;
  int status_ = 200;
  std::string bytes_;
  size_t sent_ = 0;
  bool complete_ = true;
  bool chunked_ = false;
  base::UniqueFd file_;
  uint64_t left_ = 0;  // of the file
};

}  // namespace tutti::http
