// ResponseWriter turns the answers of one connection into bytes, a part at a time: who sends them
// does so before it asks for the next. Internal to this room. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/unique_fd.h"
#include "platform/http/message.h"
#include "platform/http/server/request_reader.h"

namespace tutti::http {

class ResponseWriter {
 public:
  // Begins with the header, and the body if it is in memory. The file of one with a file is opened:
  // it is an error's answer if that fails. `response` stays until the end of it.
  void Begin(const Response& response, const AnswerForm& form);
  const AnswerForm& form() const { return form_; }
  int status() const { return status_; }  // of the answer that was begun

  // Returns what is to be sent now.
  absl::string_view unsent() const { return absl::string_view(bytes_).substr(sent_); }
  void Sent(size_t bytes) { sent_ += bytes; }
  // After the last part nothing follows.
  bool complete() const { return complete_; }
  bool has_file() const { return file_.valid(); }

  // Adds the next parts. DataLoss: the file has become shorter.
  absl::Status AddFromFile();
  void Add(const Piece& piece);

 private:
  // Adds the header; `length`: nullopt for a chunked body (HTTP/1.0: until the end of the
  // connection).
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
